package dht

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	record "github.com/libp2p/go-libp2p-record"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// maxCount bounds the numbers that decide which record is the newest. They grow by one at a time and never come near the
// bound; a record with a higher number could only be meant never to be replaced.
const maxCount = 1 << 48

// catalogID is the region id of the catalog.
const catalogID = 1

// chunkValidator validates values under /chunk/.
type chunkValidator struct {
	cache *recordCache
	cells *cellKeys
}

// playerValidator validates values under /player/.
type playerValidator struct{ cache *recordCache }

var (
	_ record.Validator = chunkValidator{}
	_ record.Validator = playerValidator{}
)

// Validate returns an error unless the bytes are a valid region record for the key.
func (v chunkValidator) Validate(key string, value []byte) error {
	_, err := v.open(key, value)
	return err
}

func (v chunkValidator) open(key string, value []byte) (nodemsg.Region, error) {
	s, err := v.cache.open(key, value)
	if err != nil {
		return nodemsg.Region{}, err
	}
	region, err := nodemsg.DecodeRegion(s.payload)
	if err != nil {
		return nodemsg.Region{}, err
	}
	if err := v.checkKey(key, region); err != nil {
		return nodemsg.Region{}, err
	}
	if err := checkRegion(region); err != nil {
		return nodemsg.Region{}, err
	}
	if region.Leader != s.signer.String() {
		return nodemsg.Region{}, errors.New("check region record: not signed by the leader named in it")
	}
	return region, nil
}

func (v chunkValidator) checkKey(key string, region nodemsg.Region) error {
	if key == grid.CatalogKey {
		if region.ID != catalogID {
			return fmt.Errorf("check region record: region %d is not the catalog", region.ID)
		}
		return nil
	}
	if region.ID == catalogID {
		return errors.New("check region record: the catalog covers no cell")
	}
	cell, _, err := grid.ParseKey(key)
	if err != nil {
		return err
	}
	if cell != region.Cell {
		return fmt.Errorf("check region record: it is of cell %v, its key of %v", region.Cell, cell)
	}
	return v.cells.check(key)
}

// checkRegion checks what nodemsg.DecodeRegion does not.
func checkRegion(r nodemsg.Region) error {
	if r.Epoch >= maxCount || r.Term >= maxCount {
		return errors.New("check region record: a number is implausibly large")
	}
	for i, m := range r.Members {
		if id, err := peer.Decode(m.Peer); err != nil || id.String() != m.Peer {
			return fmt.Errorf("check region record: member %d: %q is not a peer id", i, m.Peer)
		}
	}
	return nil
}

// Select returns the index of the record with the highest (epoch, term); the first one on ties.
func (v chunkValidator) Select(key string, values [][]byte) (int, error) {
	return selectBest(key, values, v.open, func(a, b nodemsg.Region) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Term, b.Term))
	})
}

// Validate returns an error unless the bytes are a valid player record for the key.
func (v playerValidator) Validate(key string, value []byte) error {
	_, err := v.open(key, value)
	return err
}

func (v playerValidator) open(key string, value []byte) (nodemsg.PlayerRecord, error) {
	s, err := v.cache.open(key, value)
	if err != nil {
		return nodemsg.PlayerRecord{}, err
	}
	rec, err := nodemsg.DecodePlayerRecord(s.payload)
	if err != nil {
		return nodemsg.PlayerRecord{}, err
	}
	if rec.Player.Key() != key {
		return nodemsg.PlayerRecord{}, fmt.Errorf("check player record: it is of player %v", rec.Player)
	}
	if err := checkPlayer(rec); err != nil {
		return nodemsg.PlayerRecord{}, err
	}
	if rec.Gateway != s.signer.String() {
		return nodemsg.PlayerRecord{}, errors.New("check player record: not signed by the gateway named in it")
	}
	return rec, nil
}

// checkPlayer checks what nodemsg.DecodePlayerRecord does not.
func checkPlayer(rec nodemsg.PlayerRecord) error {
	switch {
	case rec.Seq >= maxCount:
		return errors.New("check player record: sequence number is implausibly large")
	case rec.SavedAt <= 0 || rec.SavedAt > wire.MaxDone:
		return errors.New("check player record: time of saving is missing")
	}
	return nil
}

// Select returns the index of the record with the highest sequence number; the first one on ties.
func (v playerValidator) Select(key string, values [][]byte) (int, error) {
	return selectBest(key, values, v.open, func(a, b nodemsg.PlayerRecord) int { return cmp.Compare(a.Seq, b.Seq) })
}

// selectBest returns the index of the best valid value. On ties it must be the first one: kad-dht puts the new record
// first, and takes any other index as "the stored one is newer".
func selectBest[T any](key string, values [][]byte, open func(string, []byte) (T, error), compare func(a, b T) int) (int, error) {
	best := -1
	var bestRecord T
	for i, value := range values {
		rec, err := open(key, value)
		if err != nil {
			continue // a valid record wins over every invalid one
		}
		if best < 0 || compare(rec, bestRecord) > 0 {
			best, bestRecord = i, rec
		}
	}
	if best < 0 {
		return 0, errors.New("select record: none is valid")
	}
	return best, nil
}

// cellKeys computes the keys of cells, for many goroutines.
type cellKeys struct {
	mu struct {
		sync.Mutex
		keys *grid.Keys
	}
}

func newCellKeys(p grid.Placement) *cellKeys {
	k := new(cellKeys)
	k.mu.keys = grid.NewKeys(p)
	return k
}

func (k *cellKeys) key(c grid.Cell) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.keys.Key(c)
}

func (k *cellKeys) check(key string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.keys.Check(key)
}
