package record

import (
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	librecord "github.com/libp2p/go-libp2p-record"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// maxCount bounds the numbers that decide which record of a region is the newest. They grow by one at a time and never
// come near the bound; a record with a higher number could only be meant never to be replaced.
const maxCount = 1 << 48

// catalogID is the region id of the catalog.
const catalogID = 1

// Regions opens and validates the records under /chunk/. It is safe for concurrent use.
type Regions struct {
	cache *cache
	mu    struct {
		sync.Mutex
		keys *grid.Keys
	}
}

// Players opens and validates the records under /player/. It is safe for concurrent use.
type Players struct {
	cache  *cache
	now    func() time.Time
	logins *lru.Cache[login, struct{}] // that were verified: a session publishes many records with the same one
}

// login is a player's login at a gateway.
type login struct {
	player.Login
	gateway string
}

var (
	_ librecord.Validator = (*Regions)(nil)
	_ librecord.Validator = (*Players)(nil)
)

// NewValidators returns the validators of a world's records, with the time of the world. The placement of its cells
// determines their keys.
func NewValidators(world string, placement grid.Placement, now func() time.Time) (*Regions, *Players) {
	c := newCache(world)
	regions := &Regions{cache: c}
	regions.mu.keys = grid.NewKeys(placement)
	return regions, &Players{cache: c, now: now, logins: must(lru.New[login, struct{}](maxCached))}
}

// Key returns the key of a cell's record.
func (v *Regions) Key(c grid.Cell) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mu.keys.Key(c)
}

// Validate returns an error unless the bytes are a valid region record for the key.
func (v *Regions) Validate(key string, value []byte) error {
	_, err := v.Open(key, value)
	return err
}

// Open returns the region record in the bytes, or an error unless it is valid for the key.
func (v *Regions) Open(key string, value []byte) (nodemsg.Region, error) {
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

func (v *Regions) checkKey(key string, region nodemsg.Region) error {
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
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mu.keys.Check(key)
}

// checkRegion checks what nodemsg.DecodeRegion does not.
func checkRegion(r nodemsg.Region) error {
	if max(r.Epoch, r.Term, r.Founded) >= maxCount {
		return errors.New("check region record: a number is implausibly large")
	}
	for i, m := range r.Members {
		if id, err := peer.Decode(m.Peer); err != nil || id.String() != m.Peer {
			return fmt.Errorf("check region record: member %d: %q is not a peer id", i, m.Peer)
		}
	}
	return nil
}

// Select returns the index of the record of the newest route (nodemsg.Region.Compare); the first one on ties.
func (v *Regions) Select(key string, values [][]byte) (int, error) {
	return selectBest(key, values, v.Open, nodemsg.Region.Compare)
}

// Validate returns an error unless the bytes are a valid player record for the key.
func (v *Players) Validate(key string, value []byte) error {
	_, err := v.Open(key, value)
	return err
}

// Open returns the player record in the bytes, or an error unless it is valid for the key.
func (v *Players) Open(key string, value []byte) (nodemsg.PlayerRecord, error) {
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
	if err := checkPlayer(rec, v.now()); err != nil {
		return nodemsg.PlayerRecord{}, err
	}
	if rec.Gateway != s.signer.String() {
		return nodemsg.PlayerRecord{}, errors.New("check player record: not signed by the gateway named in it")
	}
	if rec.Login != nil && !v.proves(login{*rec.Login, rec.Gateway}) {
		return nodemsg.PlayerRecord{}, errors.New("check player record: the login is not one at the gateway named in it")
	}
	return rec, nil
}

// proves reports whether the player has logged in at the gateway.
func (v *Players) proves(l login) bool {
	if _, known := v.logins.Get(l); known {
		return true
	}
	proves := l.Proves(l.gateway, v.cache.world)
	if proves {
		v.logins.Add(l, struct{}{})
	}
	return proves
}

// ErrImplausible is returned for a record whose numbers are from the future, by this node's clock.
var ErrImplausible = errors.New("a number is implausibly large")

// checkPlayer checks what nodemsg.DecodePlayerRecord does not.
func checkPlayer(rec nodemsg.PlayerRecord, now time.Time) error {
	switch {
	case !rec.Plausible(now):
		return fmt.Errorf("check player record: %w", ErrImplausible)
	case rec.SavedAt <= 0 || rec.SavedAt > wire.MaxDone:
		return errors.New("check player record: time of saving is missing")
	}
	return nil
}

// Select returns the index of the record that replaces the others (nodemsg.PlayerRecord.Compare); the first one on
// ties.
func (v *Players) Select(key string, values [][]byte) (int, error) {
	return selectBest(key, values, v.Open, nodemsg.PlayerRecord.Compare)
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
