package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// A view shows one moment of all tables, whatever is committed while it is open.
func TestViewIsOneMoment(t *testing.T) {
	db := run(t, Options{Path: newPath(t)})
	both := func(n int) []kv.Write {
		value := fmt.Appendf(nil, "%d", n)
		return []kv.Write{
			{Table: "a", Key: []byte("k"), Value: value},
			{Table: "b", Key: []byte("x1"), Value: value},
			{Table: "b", Key: []byte("y"), Value: value},
		}
	}
	mustCommit(t, db, both(0)...)
	for n := range 20 {
		err := db.View(func(
			get func(string, []byte) ([]byte, error),
			scan func(string, []byte, func(key, value []byte) error) error,
		) error {
			first, err := get("a", []byte("k"))
			if err != nil {
				return err
			}
			mustCommit(t, db, both(n+1)...)
			mustCommit(t, db, kv.Write{Table: "b", Key: []byte("x2"), Value: []byte("later")}, kv.Write{Table: "c", Key: []byte("k"), Value: []byte("new")})
			var rows []string
			err = scan("b", []byte("x"), func(key, value []byte) error {
				rows = append(rows, string(key)+"="+string(value))
				return nil
			})
			if err != nil {
				return err
			}
			if n > 0 {
				first = append(first, " x2=later"...)
			}
			if got := strings.Join(rows, " "); got != "x1="+string(first) {
				return fmt.Errorf("b is %s, while a is %s", got, first)
			}
			if v, err := get("c", []byte("k")); (v != nil) != (n > 0) || err != nil {
				return fmt.Errorf("a table of later: %q, %w", v, err)
			}
			if v, err := get("a", []byte("absent")); v != nil || err != nil {
				return fmt.Errorf("absent key: %q, %w", v, err)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("view %d: %v", n, err)
		}
	}
	if v, err := db.Get("a", []byte("k")); string(v) != "20" || err != nil {
		t.Fatalf("%s, %v", v, err)
	}
}

func TestViewErrors(t *testing.T) {
	db := run(t, Options{Path: newPath(t)})
	mustCommit(t, db, put1("a", "k", "v")...)
	errMine := errors.New("mine")
	nothing := func(func(string, []byte) ([]byte, error), func(string, []byte, func(key, value []byte) error) error) error {
		return errMine
	}
	if err := db.View(nothing); err != errMine {
		t.Fatal(err)
	}
	if err := db.View(func(_ func(string, []byte) ([]byte, error), scan func(string, []byte, func(key, value []byte) error) error) error {
		return scan("a", nil, func([]byte, []byte) error { return errMine })
	}); err != errMine {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.View(nothing); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

// A wrong checksum fails the read within the view that meets it, and nothing else.
func TestViewOfDamage(t *testing.T) {
	path := newPath(t)
	db, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- db.Run(t.Context()) }()
	mustCommit(t, db, put1("a", "bad", "the value that will be damaged")...)
	mustCommit(t, db, put1("a", "too", "sound")...) // a table without a sound row is refused at the start
	mustCommit(t, db, put1("b", "good", "sound")...)
	if err := errors.Join(db.Close(), <-ended); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	image = bytes.ReplaceAll(image, []byte("that will be damaged"), []byte("that will be DAMAGED"))
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	db = run(t, Options{Path: path})
	err = db.View(func(
		get func(string, []byte) ([]byte, error),
		scan func(string, []byte, func(key, value []byte) error) error,
	) error {
		if _, err := get("a", []byte("bad")); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("get: %v", err)
		}
		if err := scan("a", nil, func([]byte, []byte) error { return nil }); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("scan: %v", err)
		}
		v, err := get("b", []byte("good"))
		if string(v) != "sound" {
			t.Errorf("beside the damage: %q", v)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Deleting the keys that Keys lists deletes what Scan would visit, wherever it is: in the tables, on its way into them,
// or only in the journal. Leftover rows of a removed replica would be taken for the next one's.
func TestKeysAreThoseOfScan(t *testing.T) {
	db := run(t, Options{Path: newPath(t)})
	mustCommit(t, db, kv.Write{Table: "a", Key: []byte("k1"), Value: []byte("old")}, kv.Write{Table: "a", Key: []byte("k2"), Value: []byte("old")})
	if err := db.flush(func() error { return nil }); err != nil { // they are in the tables now
		t.Fatal(err)
	}
	mustCommit(t, db, kv.Write{Table: "a", Key: []byte("k2")}, kv.Write{Table: "a", Key: []byte("k3"), Value: []byte("new")},
		kv.Write{Table: "a", Key: []byte("l"), Value: []byte("new")})
	var keys []string
	if err := db.Keys("a", []byte("k"), func(key []byte) error { keys = append(keys, string(key)); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := "k1 k3"; strings.Join(keys, " ") != want {
		t.Errorf("keys %q, want %q", keys, want)
	}
}

// A view copies no rows, however much was written lately: the commits after it copy what they change.
func TestViewCopiesNoRows(t *testing.T) {
	db := run(t, Options{Path: newPath(t)})
	for group := range byte(100) {
		var writes []kv.Write
		for row := range byte(50) {
			writes = append(writes, kv.Write{Table: "land", Key: append(bytes.Repeat([]byte{group}, 8), row), Value: []byte("block")})
		}
		mustCommit(t, db, writes...)
	}
	allocations := testing.AllocsPerRun(10, func() {
		err := db.View(func(get func(string, []byte) ([]byte, error), _ func(string, []byte, func(_, _ []byte) error) error) error {
			_, err := get("land", []byte("key"))
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	if allocations > 50 { // rows are in a map for each group
		t.Errorf("%.0f allocations", allocations)
	}
}
