package acts

import (
	"bytes"
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A log of which acts were dropped goes on as before, and is the same when it is loaded from its rows: members that have started since agree with others.
func TestDroppedActs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rows := make(map[string][]byte)
		stored := func(number uint64) []byte { return rows[string(Key(number))] }
		log, whole := New(stored), New(nil)
		var all []nodemsg.Act
		for i := range rapid.IntRange(1, 40).Draw(r, "steps") {
			if rapid.IntRange(0, 4).Draw(r, "drop") == 0 {
				first := rapid.Uint64Range(0, uint64(len(all)+2)).Draw(r, "first")
				entry, is := DropIn(EncodeDrop(first))
				if !is || entry != first || In(EncodeDrop(first)) != nil {
					r.Fatal("the entry is read as another one")
				}
				for _, w := range log.Drop(first) {
					if rows[string(w.Key)] = w.Value; w.Value == nil {
						delete(rows, string(w.Key))
					}
				}
			}
			key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(rapid.IntRange(0, 2).Draw(r, "key"))}, 32))
			act := nodemsg.Act{Key: key.Public().(ed25519.PublicKey), Seq: rapid.Uint64Range(uint64(i), uint64(i+3)).Draw(r, "seq") + 1, Name: "a", Text: "x", Signature: make([]byte, 64)}
			writes, err := log.Apply(uint64(i), act)
			if err != nil {
				r.Fatal(err)
			}
			for _, w := range writes {
				rows[string(w.Key)] = w.Value
			}
			if len(writes) > 0 {
				all = append(all, act)
				if err := whole.note(act); err != nil {
					r.Fatal(err)
				}
			}
			log.Stored(uint64(rapid.IntRange(0, i).Draw(r, "stored")))
			again := New(stored)
			keys := []string{}
			for key := range rows {
				keys = append(keys, key)
			}
			slices.SortFunc(keys, strings.Compare)
			for _, key := range keys {
				if err := again.Load([]byte(key), rows[key]); err != nil {
					r.Fatal(err)
				}
			}
			for _, l := range []*Log{log, again} {
				got, known := l.Digest(uint64(len(all)))
				if want, _ := whole.Digest(uint64(len(all))); got != want || !known || l.Count() != uint64(len(all)) || l.Dropped() != log.Dropped() {
					r.Fatalf("%d acts of %d", l.Count(), len(all))
				}
				if l.Has(act) != log.Has(act) || l.Older(act) != log.Older(act) {
					r.Fatal("two members judge an act differently")
				}
				if page, err := l.Page(l.Dropped()); err != nil || len(page) != len(all)-int(l.Dropped()) {
					r.Fatalf("a page of %d acts, %v", len(page), err)
				}
			}
		}
	})
}
