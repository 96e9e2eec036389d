package dht

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"

	ds "github.com/ipfs/go-datastore"
	dsq "github.com/ipfs/go-datastore/query"
	recordpb "github.com/libp2p/go-libp2p-record/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
	"github.com/voxelpopuli/voxeld/dht/record"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/trust"
)

func TestDatastore(t *testing.T) {
	ctx := context.Background()
	storage := nettest.NewMemory()
	d := newDatastore(t, storage)
	put := func(key, value string) {
		if err := d.Put(ctx, ds.NewKey(key), []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	put("/chunk/A", "one")
	put("/chunk/B", "two")
	put("/player/A", "three")
	put("/chunks/A", "four") // not in /chunk
	put("/player/E", "")
	if got, err := d.Get(ctx, ds.NewKey("/chunk/B")); err != nil || string(got) != "two" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := d.Get(ctx, ds.NewKey("/player/E")); err != nil || len(got) != 0 {
		t.Errorf("an empty value returns %q, %v", got, err)
	}
	if _, err := d.Get(ctx, ds.NewKey("/chunk/C")); err != ds.ErrNotFound { // kad-dht compares with ==
		t.Errorf("a missing key returns %v", err)
	}
	if has, err := d.Has(ctx, ds.NewKey("/chunk/A")); err != nil || !has {
		t.Errorf("has: %v, %v", has, err)
	}
	if size, err := d.GetSize(ctx, ds.NewKey("/chunk/A")); err != nil || size != 3 {
		t.Errorf("size: %d, %v", size, err)
	}
	for prefix, want := range map[string]string{
		"/chunk":  "[/chunk/A=one /chunk/B=two]",
		"/player": "[/player/A=three /player/E=]",
		"":        "[/chunk/A=one /chunk/B=two /chunks/A=four /player/A=three /player/E=]",
	} {
		results, err := d.Query(ctx, dsq.Query{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		entries, err := results.Rest()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Key+"="+string(e.Value))
		}
		slices.Sort(got)
		if fmt.Sprint(got) != want {
			t.Errorf("query %q returns %v, want %s", prefix, got, want)
		}
	}
	b, err := d.Batch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{b.Put(ctx, ds.NewKey("/chunk/D"), []byte("five")), b.Delete(ctx, ds.NewKey("/chunk/A"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if has, _ := d.Has(ctx, ds.NewKey("/chunk/D")); has {
		t.Error("a batch takes effect before its commit")
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	hasD, _ := d.Has(ctx, ds.NewKey("/chunk/D"))
	hasA, _ := d.Has(ctx, ds.NewKey("/chunk/A"))
	if !hasD || hasA {
		t.Error("the batch had no effect")
	}
}

func TestDatastoreReportsAndSeals(t *testing.T) {
	ctx := context.Background()
	storage := nettest.NewMemory()
	d := newDatastore(t, storage)
	key := ds.NewKey("/chunk/A")
	full := errors.New("disk full")
	storage.Fail(full)
	if err := d.Put(ctx, key, []byte("x")); !errors.Is(err, full) {
		t.Errorf("a failing disk returns %v", err)
	}
	if _, err := d.Get(ctx, key); !errors.Is(err, full) {
		t.Errorf("a failing disk returns %v", err)
	}
	storage.Fail(nil)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Put(ctx, key, []byte("x")); !errors.Is(err, transport.ErrClosed) || storage.Size(tableRecords) != 0 {
		t.Errorf("after Close: %v, %d records", err, storage.Size(tableRecords))
	}
	if _, err := d.Get(ctx, key); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func newDatastore(t *testing.T, storage Storage) *datastore {
	t.Helper()
	q, err := newQuotas(storage, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return &datastore{storage: storage, quotas: q}
}

// putSigned stores a record that is signed with the key.
func putSigned(t *testing.T, d *datastore, key crypto.PrivKey, player string) error {
	t.Helper()
	sealed, err := record.Seal(key, testWorld, "/player/"+player, []byte(player))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(&recordpb.Record{Key: []byte("/player/" + player), Value: sealed})
	if err != nil {
		t.Fatal(err)
	}
	return d.Put(t.Context(), ds.NewKey("/player/"+player), raw)
}

func newKey(t *testing.T) crypto.PrivKey {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A node that publishes records of ever more invented players is refused at some number of them. It may replace those
// that it has, others may publish theirs, and what a later start counts is the same.
func TestRecordsOfOneSignerAreBounded(t *testing.T) {
	ctx := context.Background()
	storage := nettest.NewMemory()
	keys := make(map[string]crypto.PrivKey)
	for _, name := range []string{"honest", "liar"} {
		keys[name] = newKey(t)
	}
	put := func(d *datastore, signer, player string) error { return putSigned(t, d, keys[signer], player) }
	for _, start := range []string{"first", "later"} {
		d := newDatastore(t, storage)
		d.quotas.max = 3
		for i := range 3 {
			if err := put(d, "liar", fmt.Sprint(i)); err != nil {
				t.Errorf("%s start, record %d: %v", start, i, err)
			}
		}
		if err := put(d, "liar", "one more"); err == nil {
			t.Errorf("%s start: a fourth record is stored", start)
		}
		if err := put(d, "honest", start); err != nil {
			t.Errorf("%s start, another node's record: %v", start, err)
		}
	}
	d := newDatastore(t, storage)
	d.quotas.max = 3
	if err := put(d, "honest", "0"); err != nil { // the player is there now
		t.Error(err)
	}
	if err := put(d, "liar", "one more"); err != nil {
		t.Errorf("after a player has left: %v", err)
	}
	if err := d.Delete(ctx, ds.NewKey("/player/1")); err != nil {
		t.Error(err)
	}
	if err := put(d, "liar", "yet another"); err != nil {
		t.Errorf("after a record was deleted: %v", err)
	}
	storage.Fail(errors.New("disk full"))
	if err := put(d, "honest", "x"); err == nil {
		t.Error("a failing disk stores a record")
	}
	storage.Fail(nil)
	if err := put(d, "honest", "x"); err == nil {
		t.Error("the honest node has three records, and stores a fourth")
	}
}

// A node that signs each record with another invented key can have no more stored than one signer. Those whose
// certificates are known may still publish theirs, also if the node starts when they are not known yet.
func TestRecordsOfInventedSignersAreBounded(t *testing.T) {
	storage := nettest.NewMemory()
	admitted := make(map[peer.ID]bool)
	start := func() *datastore {
		q, err := newQuotas(storage, "", func(id peer.ID) (trust.Certificate, bool) { return trust.Certificate{}, admitted[id] })
		if err != nil {
			t.Fatal(err)
		}
		q.max, q.all = 3, 8
		return &datastore{storage: storage, quotas: q}
	}
	honest := newKey(t)
	id, err := peer.IDFromPrivateKey(honest)
	if err != nil {
		t.Fatal(err)
	}
	d := start()
	for i := range 3 {
		if err := putSigned(t, d, newKey(t), fmt.Sprint("invented ", i)); err != nil {
			t.Errorf("signer %d: %v", i, err)
		}
	}
	if err := putSigned(t, d, newKey(t), "one more"); err == nil || len(d.quotas.signers) != 3 {
		t.Errorf("a fourth signer without a certificate: %v; %d signers are counted", err, len(d.quotas.signers))
	}
	admitted[id] = true
	for i := range 3 {
		if err := putSigned(t, d, honest, fmt.Sprint("honest ", i)); err != nil {
			t.Errorf("record %d of a node with a certificate: %v", i, err)
		}
	}
	d = start()
	if err := putSigned(t, d, newKey(t), "one more"); err == nil {
		t.Error("after a start, a fourth signer without a certificate has a record stored")
	}
	if err := d.Delete(t.Context(), ds.NewKey("/player/honest 0")); err != nil {
		t.Fatal(err)
	}
	if err := putSigned(t, d, honest, "honest 3"); err != nil {
		t.Errorf("after a start, the node with a certificate: %v", err)
	}
	if err := d.Delete(t.Context(), ds.NewKey("/player/invented 0")); err != nil {
		t.Fatal(err)
	}
	if err := putSigned(t, d, newKey(t), "one more"); err != nil {
		t.Errorf("after a record was deleted: %v", err)
	}
}

// In an open world all signers are alike. All of them together have a bound.
func TestRecordsAreBounded(t *testing.T) {
	d := newDatastore(t, nettest.NewMemory())
	d.quotas.max, d.quotas.all = 3, 5
	first := newKey(t)
	if err := putSigned(t, d, first, "0"); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := putSigned(t, d, newKey(t), fmt.Sprint(i+1)); err != nil {
			t.Errorf("signer %d: %v", i+1, err)
		}
	}
	if err := putSigned(t, d, newKey(t), "one more"); err == nil {
		t.Error("a sixth record is stored")
	}
	if err := putSigned(t, d, first, "4"); err != nil {
		t.Errorf("a record that replaces another: %v", err)
	}
}
