package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// undetected returns the entries of want that an open store returns wrong or not at all, although it neither listed
// them as damaged nor fails to read them. There must be none.
func undetected(t *testing.T, path string, want map[string]string) (opened bool, wrong []string) {
	t.Helper()
	db, err := Open(Options{Path: path})
	if err != nil {
		if !errors.Is(err, kv.ErrDamaged) && !errors.Is(err, ErrFormat) {
			t.Fatal(err)
		}
		return false, nil
	}
	named := make(map[string]bool)
	for _, d := range db.CorruptRows() {
		for _, key := range d.Keys {
			named[d.Table+"/"+string(key)] = true
		}
	}
	got := make(map[string]string)
	for _, table := range []string{"many", "long", "inline"} {
		err := errors.Join(db.Scan(table, nil, func(key, value []byte) error {
			got[table+"/"+string(key)] = string(value)
			return nil
		}))
		if err != nil {
			for key := range want { // Scan reports it
				named[key] = true
			}
		}
	}
	for key, value := range want {
		if got[key] != value && !named[key] {
			wrong = append(wrong, key)
		}
	}
	if len(got) > len(want) {
		wrong = append(wrong, "more than there was")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return true, wrong
}

// Whatever single bit of the file flips: the store does not open, or the damage is listed, or met when read, or
// corrected, or irrelevant.
func TestNoFlipIsSilent(t *testing.T) {
	image, want := sample(t)
	random := rand.New(rand.NewPCG(9, 9))
	path := newPath(t)
	refused, rounds := 0, 1500
	if testing.Short() {
		rounds = 200
	}
	for round := range rounds {
		broken := slices.Clone(image)
		at := random.IntN(len(broken))
		if round%3 == 0 {
			at = at % (2 * os.Getpagesize()) // the meta pages
			at = at&^4095 + at%96
		}
		bit := random.IntN(8)
		broken[at] ^= 1 << bit
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		opened, wrong := undetected(t, path, want)
		if !opened {
			refused++
		}
		if len(wrong) > 0 {
			t.Errorf("bit %d of byte %d: silently wrong: %q", bit, at, wrong)
		}
	}
	t.Logf("%d flips: %d files refused", rounds, refused)
}

// A commit that is too large for the journal goes to the tables. If the meta page that it wrote is invalid after a
// crash, the store must not open without the commit, whether or not later commits went to the journal.
func TestInvalidMetaPageAfterDirectCommit(t *testing.T) {
	for _, later := range []bool{false, true} {
		path := newPath(t)
		db, err := Open(Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- db.Run(context.Background()) }()
		mustCommit(t, db, kv.Write{Table: "t", Key: []byte("small"), Value: []byte("v")})
		mustCommit(t, db, kv.Write{Table: "t", Key: []byte("big"), Value: make([]byte, journalMax+1)})
		if later {
			mustCommit(t, db, kv.Write{Table: "t", Key: []byte("later"), Value: []byte("v")})
		}
		crashed := newPath(t)
		from, to := journalPaths(path), journalPaths(crashed)
		for i := range from {
			image, err := os.ReadFile(from[i])
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err := errors.Join(err, os.WriteFile(to[i], image, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		image, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Close(), <-ended); err != nil {
			t.Fatal(err)
		}
		m, _, err := readMetas(bytes.NewReader(image))
		if err != nil {
			t.Fatal(err)
		}
		image[int64(m.txid%2)*m.pageSize+headerSize+40] ^= 1 // of the newest meta page
		if err := os.WriteFile(crashed, image, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first time must leave the journal
			if db, err = Open(Options{Path: crashed}); err == nil {
				value, err := db.Get("t", []byte("big"))
				db.Close()
				t.Errorf("later commits %v: the store opens, with a value of %d bytes, %v", later, len(value), err)
			} else if !errors.Is(err, kv.ErrDamaged) {
				t.Error(err)
			}
		}
	}
}

// An invalid meta page must not lose the newest commits: after a crash the journal has them, after a clean stop the
// file is refused.
func TestInvalidMetaPage(t *testing.T) {
	const n = 20
	crashed := abandoned(t, n)
	image, err := os.ReadFile(crashed)
	if err != nil {
		t.Fatal(err)
	}
	for _, journal := range []bool{true, false} {
		for bit := headerSize * 8; bit < 8*(headerSize+2*metaSize); bit += 7 {
			at := bit / 8
			if at >= headerSize+metaSize {
				at += os.Getpagesize() - metaSize
			}
			broken := slices.Clone(image)
			broken[at] ^= 1 << (bit % 8)
			path := newPath(t)
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			if journal {
				for i, from := range journalPaths(crashed) {
					copyFile(t, from, journalPaths(path)[i])
				}
			}
			db, err := Open(Options{Path: path})
			if !journal {
				if !errors.Is(err, kv.ErrDamaged) {
					t.Fatalf("byte %d of a store without a journal: %v", at, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("byte %d: %v", at, err)
			}
			if all, err := contents(db); err != nil || len(all) != n+1 || all["last/k"] != fmt.Sprint(n-1) {
				t.Fatalf("byte %d: %d rows, %v", at, len(all), err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDamagedRowsCanBeDeleted(t *testing.T) {
	image, want := sample(t)
	path := newPath(t)
	key := []byte("key 0123")
	at := -1
	for i := range image { // the newest copy of the row is in the last place
		if i+len(key) <= len(image) && string(image[i:i+len(key)]) == string(key) {
			at = i
		}
	}
	image[at+len(key)+2] ^= 4 // of its value
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	db := run(t, Options{Path: path})
	if d := db.CorruptRows(); len(d) != 1 || string(d[0].Keys[0]) != string(key) || len(d[0].Keys) != 3 {
		t.Fatalf("damaged: %v", d)
	}
	n := 0
	if err := db.Keys("many", []byte("key 01"), func([]byte) error { n++; return nil }); err != nil || n != 100 {
		t.Fatalf("%d keys, %v", n, err)
	}
	mustCommit(t, db, kv.Write{Table: "many", Key: key})
	if err := db.Check(); err != nil {
		t.Error(err)
	}
	if got, err := contents(db); err != nil || len(got) != len(want)-1 {
		t.Errorf("%d of %d rows are left, %v", len(got), len(want), err)
	}
	if err := db.Keys("nothing", nil, func([]byte) error { return fmt.Errorf("a key") }); err != nil {
		t.Error(err)
	}
}
