package joining

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/trust"
)

// failing is a storage whose commits can fail, before or after they have reached the disk.
type failing struct {
	*store.DB
	before, after error
}

func (f *failing) Commit(writes []kv.Write) error {
	if f.before != nil {
		return f.before
	}
	return errors.Join(f.DB.Commit(writes), f.after)
}

// When the commit of the charter that names a new root key fails, only a restart shows whether it is on disk. Until
// then the new key is kept, and the root key is the one that the charter names after.
func TestFailedReplacementKeepsBothKeys(t *testing.T) {
	failure := errors.New("input/output error")
	for name, c := range map[string]struct {
		before, after error
		replaced      bool
	}{"stored": {after: failure, replaced: true}, "not stored": {before: failure}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root, err := CreateRootKey(dir)
			if err != nil {
				t.Fatal(err)
			}
			storage, host := open(t, filepath.Join(dir, "voxeld.db"))
			n := &Node{Host: host, Storage: storage, DataDir: dir, Logger: slog.New(slog.DiscardHandler)}
			o := n.options(trust.World{1})
			o.Roots, o.Registerer = []trust.Key{root.Key()}, prometheus.NewRegistry()
			gate, err := admission.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := gate.Appoint(founder, root); err != nil {
				t.Fatal(err)
			}
			storage.before, storage.after = c.before, c.after
			if err := replaceRootKey(dir, gate); !errors.Is(err, failure) {
				t.Errorf("replaced with %v", err)
			}
			storage.before, storage.after = nil, nil

			o.Registerer = prometheus.NewRegistry()
			if gate, err = admission.Open(o); err != nil { // as a restart does
				t.Fatal(err)
			}
			if err := finishReplacement(dir, gate); err != nil {
				t.Fatal(err)
			}
			now, err := ReadRootKey(filepath.Join(dir, RootKeyFile))
			if err != nil {
				t.Fatal(err)
			}
			if charter := gate.Charter().Roots[0]; now.Key() != charter || (now.Key() != root.Key()) != c.replaced {
				t.Errorf("the root key is %v, was %v; the charter names %v", now.Key(), root.Key(), charter)
			}
			if _, err := os.Stat(filepath.Join(dir, nextRootKeyFile)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the new key is still beside it: %v", err)
			}
		})
	}
}

// open opens a storage, and a host that uses it.
func open(t *testing.T, path string) (*failing, *transport.Host) {
	t.Helper()
	db, err := store.Open(store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- db.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, db.Close()); err != nil {
			t.Error(err)
		}
	})
	host, err := transport.NewHost(transport.Options{Storage: db, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	return &failing{DB: db}, host
}
