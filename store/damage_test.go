package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// sample returns the bytes of a store with branch pages, a long value, an inline table and free pages, and its
// contents.
func sample(t testing.TB) ([]byte, map[string]string) {
	t.Helper()
	path := newPath(t)
	db, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- db.Run(context.Background()) }()
	var writes []kv.Write
	for i := range 300 {
		writes = append(writes, kv.Write{Table: "many", Key: fmt.Appendf(nil, "key %04d", i), Value: []byte(strings.Repeat("v", 30+i%30))})
	}
	writes = append(writes,
		kv.Write{Table: "long", Key: []byte("long"), Value: []byte(strings.Repeat("long", 3000))},
		kv.Write{Table: "inline", Key: []byte("k"), Value: []byte("v")})
	mustCommit(t, db, writes...)
	mustCommit(t, db, kv.Write{Table: "many", Key: []byte("key 0000"), Value: []byte("again")})
	want, err := contents(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Close(), <-ended); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := readMetas(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	return image[:int64(m.end)*m.pageSize], want
}

// use opens the file and calls everything on it. It may fail, but only with an error, and what it reads from an
// undamaged place must be what was written.
func use(t testing.TB, path string, want map[string]string) (err error) {
	t.Helper()
	db, err := Open(Options{Path: path})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- db.Run(context.Background()) }()
	var all []error
	note := func(err error) {
		if err != nil {
			all = append(all, err)
		}
	}
	note(db.Check())
	sound := len(all) == 0
	got, err := contents(db)
	note(err)
	for key, value := range got {
		if want[key] != value {
			t.Errorf("read %q at %q, which was never written", value, key)
		}
	}
	if sound && len(got) != len(want) {
		t.Errorf("a store that checks as sound has %d of %d entries", len(got), len(want))
	}
	for key, value := range want {
		table, key, _ := strings.Cut(key, "/")
		v, err := db.Get(table, []byte(key))
		note(err)
		if v != nil && string(v) != value {
			t.Errorf("got %q from %s at %q", v, table, key)
		}
	}
	for i := range 4 {
		note(db.Commit([]kv.Write{
			{Table: "many", Key: fmt.Appendf(nil, "key %04d", i*75), Value: make([]byte, 500)},
			{Table: "inline", Key: []byte("k2"), Value: []byte("v")},
		}))
	}
	note(deletePrefix(db, "many", "key 00"))
	note(deletePrefix(db, "long", ""))
	note(db.Close())
	note(<-ended)
	return errors.Join(all...)
}

func TestUseOfASoundFile(t *testing.T) {
	image, want := sample(t)
	path := newPath(t)
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := use(t, path, want); err != nil {
		t.Fatalf("a sound file: %v", err)
	}
}

// What bbolt leaves after large and small deletions must never look damaged: a sound store that does not open is as bad
// as a damaged one that does.
func TestSoundAfterDeletions(t *testing.T) {
	db := run(t, Options{Path: newPath(t)})
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 60 {
		table := []string{"a", "b"}[round%2]
		var writes []kv.Write
		for range random.IntN(1500) {
			w := kv.Write{Table: table, Key: fmt.Appendf(nil, "%04d", random.IntN(2000))}
			if random.IntN(1+round%5) == 0 {
				w.Value = make([]byte, random.IntN(200))
			}
			writes = append(writes, w)
		}
		prefix := fmt.Sprintf("%04d", random.IntN(2000))[:random.IntN(4)]
		if err := errors.Join(db.Commit(writes), db.Check(), deletePrefix(db, table, prefix), db.Check()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if round%7 == 0 { // one by one, to the last
			var all []kv.Write
			if err := db.Scan(table, nil, func(key, _ []byte) error {
				all = append(all, kv.Write{Table: table, Key: bytes.Clone(key)})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for len(all) > 0 {
				n := min(len(all), 1+random.IntN(300))
				if err := errors.Join(db.Commit(all[:n]), db.Check()); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				all = all[n:]
			}
		}
	}
}

func TestTruncatedFiles(t *testing.T) {
	image, want := sample(t)
	dir := t.TempDir()
	for cut := 0; cut < len(image); cut += 1 + min(cut, 1500) {
		path := filepath.Join(dir, fmt.Sprint(cut))
		if err := os.WriteFile(path, image[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		err := use(t, path, want)
		if !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("cut to %d of %d bytes: %v", cut, len(image), err)
		} else if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("the message does not say what to do: %v", err)
		}
	}
}

func TestFlippedBits(t *testing.T) {
	image, want := sample(t)
	random := rand.New(rand.NewPCG(1, 2))
	path := newPath(t)
	found := 0
	const rounds = 150
	for round := range rounds {
		broken := append([]byte{}, image...)
		var flips []int
		for range 1 + round%3 {
			// Every second flip hits the first bytes of a page, which hold the structure.
			at := random.IntN(len(broken))
			if round%2 == 0 {
				at = at&^4095 + at%128
			}
			broken[at] ^= 1 << random.IntN(8)
			flips = append(flips, at)
		}
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := use(t, path, want); err != nil {
			found++
			if !errors.Is(err, kv.ErrDamaged) && !errors.Is(err, ErrFormat) {
				t.Errorf("flips at %v: %v", flips, err)
			}
		}
		if t.Failed() {
			t.Fatalf("flips at %v", flips)
		}
	}
	t.Logf("%d of %d damaged files were noticed; the others were hit where nothing is", found, rounds)
	if found < rounds/4 {
		t.Errorf("only %d of %d damaged files were noticed", found, rounds)
	}
}

// A cycle of branch pages would end the process with a stack overflow, a used page among the free
// ones would be overwritten: neither must reach bbolt.
func TestWildStructure(t *testing.T) {
	image, _ := sample(t)
	page := os.Getpagesize()
	id := func(n int) []byte { return image[n*page:] }
	m, _, err := readMetas(strings.NewReader(string(image)))
	if err != nil {
		t.Fatal(err)
	}
	free := id(int(m.freelist))
	isFree := func(n int) bool {
		for i := range native.Uint16(free[10:]) {
			if native.Uint64(free[headerSize+8*int(i):]) == uint64(n) {
				return true
			}
		}
		return false
	}
	var branches []int
	for n := 2; n < len(image)/page; n++ {
		if int(native.Uint64(id(n))) != n {
			continue
		}
		if native.Uint16(id(n)[8:]) == branchFlag && !isFree(n) {
			branches = append(branches, n)
		}
	}
	if len(branches) != 1 {
		t.Fatalf("the sample has %d branch pages", len(branches))
	}
	for name, breakIt := range map[string]func(b []byte){
		"a branch is its own child": func(b []byte) {
			native.PutUint64(b[branches[0]*page+headerSize+branchSize+8:], uint64(branches[0]))
		},
		"two parents": func(b []byte) {
			n := branches[0] * page
			copy(b[n+headerSize+8:][:8], b[n+headerSize+branchSize+8:])
		},
		"a used page is free": func(b []byte) {
			free := int(m.freelist) * page
			native.PutUint16(b[free+10:], 1)
			copy(b[free+headerSize:][:8], id(branches[0])[headerSize+8:])
		},
		"more free pages than bytes": func(b []byte) {
			free := int(m.freelist) * page
			native.PutUint16(b[free+10:], 0xFFFF)
			native.PutUint64(b[free+headerSize:], 1<<62)
		},
		"a child beyond the end": func(b []byte) {
			native.PutUint64(b[branches[0]*page+headerSize+8:], 1<<40)
		},
		"a page as long as the world": func(b []byte) {
			native.PutUint32(b[branches[0]*page+12:], 1<<31)
		},
	} {
		broken := append([]byte{}, image...)
		breakIt(broken)
		path := newPath(t)
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(Options{Path: path})
		if !errors.Is(err, kv.ErrDamaged) || db != nil {
			t.Errorf("%s: opened with %v", name, err)
		}
		// The quick inspection of a large file must see it, too.
		quick := inspection{file: bytes.NewReader(broken), size: int64(len(broken)), meta: m}
		if err := quick.run(); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("%s: the quick inspection returned %v", name, err)
		}
	}
	quick := inspection{file: bytes.NewReader(image), size: int64(len(image)), meta: m}
	if err := quick.run(); err != nil {
		t.Errorf("the quick inspection of a sound file: %v", err)
	}
}

// Damage that occurs while the store is open must not end the process either.
func TestDamageUnderway(t *testing.T) {
	image, _ := sample(t)
	path := newPath(t)
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- db.Run(context.Background()) }()
	if err := os.Truncate(path, int64(3*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	if err := db.Check(); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("check: %v", err)
	}
	if _, err := contents(db); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("scan: %v", err)
	}
	if _, err := db.Get("many", []byte("key 0200")); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("get: %v", err)
	}
	// The journal still accepts commits; the tables reveal the damage.
	if err := db.Commit(put1("many", "key 0200", "v")); err != nil && !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("commit: %v", err)
	}
	if err := db.Check(); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("check with commits in the journal: %v", err)
	}
	if err := <-ended; !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("run: %v", err)
	}
	if err := db.Commit(put1("many", "key 0200", "v")); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("commit after the damage: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	// The file is unlocked for a repair.
	if _, err := Open(Options{Path: path, LockTimeout: 1}); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("open again: %v", err)
	}
}

func FuzzInspect(f *testing.F) {
	image, want := sample(f)
	f.Add(uint32(0), []byte{1})
	f.Add(uint32(os.Getpagesize()*4), []byte{0xff, 0xff, 0xff, 0xff, 0xff})
	path := filepath.Join(f.TempDir(), "voxeld.db")
	f.Fuzz(func(t *testing.T, at uint32, flips []byte) {
		broken := append([]byte{}, image...)
		for i, flip := range flips {
			broken[(int(at)+i)%len(broken)] ^= flip
		}
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := use(t, path, want); err != nil && !errors.Is(err, kv.ErrDamaged) && !errors.Is(err, ErrFormat) {
			t.Error(err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
