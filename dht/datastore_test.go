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
	"google.golang.org/protobuf/proto"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
	"github.com/voxelpopuli/voxeld/dht/record"
	"github.com/voxelpopuli/voxeld/dht/transport"
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
	q, err := newQuotas(storage, "")
	if err != nil {
		t.Fatal(err)
	}
	return &datastore{storage: storage, quotas: q}
}

// A node that publishes records of ever more invented players is refused at some number of them. It may replace those that it has, others
// may publish theirs, and what a later start counts is the same.
func TestRecordsOfOneSignerAreBounded(t *testing.T) {
	ctx := context.Background()
	storage := nettest.NewMemory()
	keys := make(map[string]crypto.PrivKey)
	for _, name := range []string{"honest", "liar"} {
		var err error
		if keys[name], _, err = crypto.GenerateEd25519Key(rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	put := func(d *datastore, signer, player string) error {
		sealed, err := record.Seal(keys[signer], testWorld, "/player/"+player, []byte(player))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := proto.Marshal(&recordpb.Record{Key: []byte("/player/" + player), Value: sealed})
		if err != nil {
			t.Fatal(err)
		}
		return d.Put(ctx, ds.NewKey("/player/"+player), raw)
	}
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
