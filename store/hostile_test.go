package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// mimic is a complete record of format 2 with the number 500,000. A guest wrote it by standing at chosen coordinates:
// length, checksum and number are in two of their floats, the nine bytes behind them in others.
var mimic, _ = hex.DecodeString("00000009" + "0e617afb" + "000000000007a120" + "fa00000000bf5eafb6")

// A crash after rows with bytes that mimic a record, at each place within the alignment.
func TestPlantedRecordsAreRows(t *testing.T) {
	for shift := range align {
		path := newPath(t)
		db := run(t, Options{Path: path})
		planted := append(bytes.Repeat([]byte{1}, shift), mimic...)
		for i := range 3 {
			mustCommit(t, db, kv.Write{Table: "players", Key: fmt.Appendf(nil, "guest-%d", i), Value: planted})
		}
		again, err := Open(Options{Path: crashCopy(t, path)})
		if err != nil {
			t.Fatalf("shifted by %d: %v", shift, err)
		}
		for i := range 3 {
			if v, err := again.Get("players", fmt.Appendf(nil, "guest-%d", i)); err != nil || !bytes.Equal(v, planted) {
				t.Errorf("shifted by %d: row %d is %x, %v", shift, i, v, err)
			}
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}

// No salt is used twice, whatever ends a generation: a checkpoint, a commit that bypasses the journal, a crash, a clean
// stop.
func TestEachGenerationHasItsSalt(t *testing.T) {
	path := newPath(t)
	seen := map[uint64]string{}
	note := func(when string, salt uint64) {
		t.Helper()
		if before := seen[salt]; before != "" || salt == 0 {
			t.Errorf("%s the salt is that of %s", when, before)
		}
		seen[salt] = when
	}
	for life := range 3 {
		db := run(t, Options{Path: path})
		for generation := range 4 {
			mustCommit(t, db, put1("t", fmt.Sprint(generation), "v")...)
			when := fmt.Sprintf("in generation %d of life %d", generation, life)
			note(when, db.writer.journal.salts[db.writer.journal.at])
			if generation == 2 {
				mustCommit(t, db, kv.Write{Table: "t", Key: []byte("k"), Value: make([]byte, journalMax)})
			} else if err := db.flush(func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			row, err := db.tables.get(metaTable, journalKey)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := decodeMark(row); err != nil || m.salts != db.writer.journal.salts {
				t.Errorf("%s the tables have other salts: %v, %v", when, m, err)
			}
		}
		mustCommit(t, db, put1("t", "last", "v")...)
		note(fmt.Sprintf("at the end of life %d", life), db.writer.journal.salts[db.writer.journal.at])
		if life == 1 { // a crash
			path = crashCopy(t, path)
		} else if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// With both meta pages damaged, a page in which others chose the bytes is none.
func TestChosenBytesAreNoMetaPage(t *testing.T) {
	image, _ := sample(t)
	size := os.Getpagesize()
	fake := bytes.Clone(image[:headerSize+metaSize])
	native.PutUint32(fake[headerSize+8:], uint32(2*size))
	sum := fnv.New64a()
	sum.Write(fake[headerSize:][:56])
	native.PutUint64(fake[headerSize+56:], sum.Sum64())
	copy(image[2*size:], fake)
	image[headerSize+20] ^= 1
	if m, stale, err := readMetas(bytes.NewReader(image)); err != nil || !stale || m.pageSize != int64(size) {
		t.Fatalf("with one meta page: %v, %v, %v", m, stale, err)
	}
	image[size+headerSize+20] ^= 1
	if m, _, err := readMetas(bytes.NewReader(image)); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("a chosen page was taken for a meta page: %+v, %v", m, err)
	}
}

// FuzzHostileValues writes records with chosen bytes over several generations of both files, and tears the last one
// anywhere. The journal decodes to all that was acknowledged, and at most to the last one beyond.
func FuzzHostileValues(f *testing.F) {
	f.Add(append([]byte{9, 25}, mimic...), uint16(0))
	f.Add(append([]byte{10, 20, 0, 0, 11, 3, 1, 2, 3, 12, 30}, mimic...), uint16(30))
	f.Add([]byte("\x09\x10aaaaaaaaaaaaaaaa\x00\x00\x00\x00\x0b\x02bb\x0d\x03ccc\x0e\x01d"), uint16(7))
	f.Fuzz(func(t *testing.T, script []byte, cut uint16) {
		var (
			files   [2][]byte
			at, off int
			last    uint64
			want    []record // acknowledged, and not in the tables
			retired = uint64(1)
			salts   uint64
		)
		salt := func() uint64 { // no input is its own hash
			salts++
			sum := sha256.Sum256(binary.BigEndian.AppendUint64(bytes.Clone(script), salts))
			return max(1, binary.BigEndian.Uint64(sum[:]))
		}
		m := mark{salts: [2]uint64{salt(), salt()}}
		write := func(value []byte, n int) {
			encoded, writes := encodeRecord([]*request{{writes: []kv.Write{{Table: "t", Key: []byte("k"), Value: value}}}})
			last++
			setHead(encoded, m.salts[at], last)
			if need := off + int(padded(len(encoded))); need > len(files[at]) {
				files[at] = append(files[at], make([]byte, need-len(files[at])+align*int(cut%9))...)
			}
			if n = min(n, len(encoded)); n == len(encoded) {
				want = append(want, record{last, writes})
			}
			copy(files[at][off:], encoded[:n])
			off += int(padded(len(encoded)))
		}
		var value []byte
		for len(script) >= 2 && last < 1000 {
			op, n := script[0], min(int(script[1]), len(script)-2)
			value, script = script[2:2+n], script[2+n:]
			if op%8 == 0 { // a checkpoint
				m.number, want, retired = last, nil, m.salts[at]
				m.salts[at] = salt()
				at, off = 1-at, 0
				continue
			}
			fake := append(make([]byte, journalHead), value...)
			switch op % 8 {
			case 1: // a record of this format under a salt of before
				setHead(fake, retired, last+1+uint64(op>>4))
			case 2: // of format 2
				fake = append(make([]byte, 16), value...)
				binary.BigEndian.PutUint32(fake, uint32(len(value)))
				binary.BigEndian.PutUint64(fake[8:], last+1+uint64(op>>4))
				binary.BigEndian.PutUint32(fake[4:], crc32.Checksum(fake[8:], castagnoli))
			default:
				fake = value
			}
			write(append(make([]byte, op>>3%align), fake...), 1<<20)
		}
		whole := len(want)
		write(append(value, mimic...), int(cut))
		got, err := decodeJournal(files, m)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) < whole || len(got) > whole+1 {
			t.Fatalf("%d records were read, %d were acknowledged", len(got), whole)
		}
		for i, r := range want[:whole] {
			if got[i].number != r.number || !bytes.Equal(got[i].writes[0].Value, r.writes[0].Value) {
				t.Errorf("record %d is %d: %x", r.number, got[i].number, got[i].writes[0].Value)
			}
		}
	})
}

// place returns the current file of the journal, and where its next record begins.
func place(db *DB) (at int, off int64) {
	db.writer.Lock()
	defer db.writer.Unlock()
	return db.writer.journal.at, db.writer.journal.off
}

// The same with real files: values that mimic records of the store's own files, and crashes that tear the last commit.
func TestHostileValues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path := newPath(t)
		want := map[string]string{}
		for life := range rapid.IntRange(1, 2).Draw(rt, "lives") {
			db, err := Open(Options{Path: path})
			if err != nil {
				rt.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- db.Run(context.Background()) }()
			step := func() (key, value string) {
				value = string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, "value"))
				if rapid.Bool().Draw(rt, "mimic") {
					value = string(make([]byte, rapid.IntRange(0, align-1).Draw(rt, "shift"))) + string(mimic) + value
				}
				return fmt.Sprintf("%d-%d", life, rapid.IntRange(0, 9).Draw(rt, "key")), value
			}
			for range rapid.IntRange(0, 8).Draw(rt, "steps") {
				if rapid.IntRange(0, 4).Draw(rt, "what") == 0 {
					if err := db.flush(func() error { return nil }); err != nil {
						rt.Fatal(err)
					}
					continue
				}
				key, value := step()
				if err := db.Commit(put1("t", key, value)); err != nil {
					rt.Fatal(err)
				}
				want["t/"+key] = value
			}
			current, from := place(db)
			path = crashCopy(t, path)
			key, value := step()
			if err := db.Commit(put1("t", key, value)); err != nil {
				rt.Fatal(err)
			}
			_, to := place(db)
			after, err := os.ReadFile(db.writer.journal.paths[current])
			if err := errors.Join(err, db.Close(), <-ended); err != nil {
				rt.Fatal(err)
			}
			// Of the last commit, some bytes from its beginning on were written.
			n := rapid.IntRange(0, int(to-from)).Draw(rt, "cut")
			file, err := os.OpenFile(journalPaths(path)[current], os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				rt.Fatal(err)
			}
			_, err = file.WriteAt(after[from:from+int64(n)], from)
			if err := errors.Join(err, file.Close()); err != nil {
				rt.Fatal(err)
			}
			again, err := Open(Options{Path: path})
			if err != nil {
				rt.Fatalf("cut after %d bytes: %v", n, err)
			}
			got, err := contents(again)
			if err := errors.Join(err, again.Close()); err != nil {
				rt.Fatal(err)
			}
			if v, ok := got["t/"+key]; ok && v == value {
				want["t/"+key] = value // it was complete, or the row was the same before
			}
			if !maps.Equal(got, want) {
				rt.Fatalf("the store holds %v, want %v", got, want)
			}
		}
	})
}
