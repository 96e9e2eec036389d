package joining

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/world"
)

// A node that has the root key starts also if it is revoked: only on it can operators dismiss whoever did that.
func TestRevokedHolderOfTheRootKeyStarts(t *testing.T) {
	dir := t.TempDir()
	root, err := CreateRootKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	storage, host := open(t, filepath.Join(dir, "voxeld.db"))
	g := world.Genesis{Name: "world", Sections: 8, Roots: []trust.Key{root.Key()}}
	enter := func() *admission.Gate {
		t.Helper()
		n := &Node{Host: host, Storage: storage, DataDir: dir, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()}
		gate, err := n.Enter(t.Context(), g, config.Bootstrap{})
		if err != nil {
			t.Fatal(err)
		}
		return gate
	}
	if _, err := enter().Own(); err != nil {
		t.Fatal(err)
	}
	raw, err := trust.Revocation{
		World: worldID(g), Kind: trust.RevokeOperator, Subject: []byte(founder), At: time.Now().UnixMilli(), Reason: "a lie",
	}.Seal(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := storage.Commit([]kv.Write{{Table: "trust", Key: []byte("revocation/1"), Value: raw}}); err != nil {
		t.Fatal(err)
	}
	gate := enter()
	if _, err := gate.Own(); !errors.Is(err, trust.ErrRevoked) || !gate.Issues(host.PeerID()) {
		t.Errorf("own certificate: %v; an issuer: %v", err, gate.Issues(host.PeerID()))
	}
	access := Access{Node: &Node{Host: host, Storage: storage, DataDir: dir}, Gate: gate}
	if s := access.Status(); s.Issuers != 0 {
		t.Errorf("%d nodes are said to give out tokens, of which the only one is excluded", s.Issuers)
	}
}
