// Package players loads, saves and publishes the records of players: on this node's disk, and in the network, where other gateways
// find them.
//
// A Store is used by any goroutine; Store.Run starts and awaits its own. Only package gameserver and its adapters import it.
package players

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// Table is this node's own table of the players it served: player id → record.
	Table = "players"
	// loadTimeout bounds a lookup of a player in the network.
	loadTimeout = 3 * time.Second
	// expireEvery is how often expired guests are deleted, and expireAtOnce how many in one commit. It is long, so that a clock that is wrong
	// after a start has been set before.
	expireEvery  = 24 * time.Hour
	expireAtOnce = 1000
	// maxRows is the number of players that are kept on this node's disk: anybody can log in with any number of keys.
	maxRows = 250_000
)

// Storage stores player records on this node; a *store.DB.
type Storage interface {
	Get(table string, key []byte) ([]byte, error)
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
	Commit(writes []kv.Write) error
}

// Options are the dependencies of a Store.
type Options struct {
	Storage Storage
	Network Network
	Peer    string           // this node's peer id, which records name as the player's gateway
	Wall    func() time.Time // the node's wall clock, which need not be right
	Logger  *slog.Logger
}

// Store saves players where they left, and loads them when they return.
//
// One goroutine makes all records and writes all rows, so that a newer one is never overwritten by an older one; others publish,
// since the network may take seconds.
type Store struct {
	Options
	publisher *publisher
	wake      wake.Signal   // a player waits to be saved
	ended     chan struct{} // closed when no more players are saved
	maxRows   int           // maxRows but in tests

	mu struct {
		sync.Mutex
		leaving []departure
		seqs    map[player.ID]uint64 // newest known record of each player who is here
		done    map[player.ID]uint64 // and how many events they are known to have sent
	}
}

// departure is a player who leaves.
type departure struct {
	Presence
	saved chan struct{} // closed when the record is on this node's disk
}

// NewStore returns a store that is not running yet.
func NewStore(o Options) *Store {
	ps := &Store{Options: o, publisher: newPublisher(o.Network, o.Logger), wake: wake.NewSignal(), ended: make(chan struct{}), maxRows: maxRows}
	ps.mu.seqs, ps.mu.done = make(map[player.ID]uint64), make(map[player.ID]uint64)
	return ps
}

// Load returns the newest record of a player on this node and in the network. If the network does not answer, only this node's
// record counts. A guest who has been away for 30 days is not known. The record returned has the login of the network's: the player's
// next one must be later.
func (ps *Store) Load(ctx context.Context, id player.ID) (newest nodemsg.PlayerRecord, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	row, err := ps.Storage.Get(Table, id[:])
	if err != nil {
		return newest, false, fmt.Errorf("load player record: %w", err)
	}
	var found []nodemsg.PlayerRecord
	if row != nil {
		if stored, err := ps.decode(row); err != nil {
			// It must not lock the player out: the network may have a newer record, and the next save repairs this one.
			ps.Logger.Error("damaged player record on disk", "player", id.String(), "error", err)
		} else {
			found = append(found, stored)
		}
	}
	remembered, err := ps.Network.Player(ctx, id)
	if err == nil {
		if len(found) > 0 && wentElsewhere(found[0], remembered) {
			ps.NoteLoaded(found[0]) // as below
			found = nil
		}
		found = append(found, remembered)
	}
	for _, r := range found {
		switch {
		case r.Expired(ps.Wall()):
			ps.NoteLoaded(r) // it is not used, but the next one must be newer
		case r.Seq > newest.Seq:
			newest = r
		}
	}
	newest.Login = remembered.Login
	return newest, newest.Seq > 0, nil
}

// wentElsewhere reports whether a player has come to another gateway after this one had stored their record, whatever the sequence numbers
// say: this gateway's clock may have been ahead.
func wentElsewhere(stored, remembered nodemsg.PlayerRecord) bool {
	return remembered.Login != nil && remembered.Gateway != stored.Gateway && remembered.Login.At > stored.SavedAt
}

// decode decodes this node's record of a player. If the node's clock was far ahead when the record was saved, its numbers start again:
// no other node would accept the next ones.
func (ps *Store) decode(row []byte) (nodemsg.PlayerRecord, error) {
	r, err := nodemsg.DecodePlayerRecord(row)
	if now := ps.Wall(); err == nil && !r.Plausible(now) {
		r.Seq, r.Done, r.SavedAt = 1, 0, now.UnixMilli()
	}
	return r, err
}

// NoteStored makes a player's next records newer than the one on this node's disk.
func (ps *Store) NoteStored(id player.ID) {
	row, err := ps.Storage.Get(Table, id[:])
	if err != nil || row == nil {
		return
	}
	if record, err := ps.decode(row); err == nil {
		ps.NoteLoaded(record)
	}
}

// NoteLoaded makes a player's next records newer than the one that was loaded.
func (ps *Store) NoteLoaded(recalled nodemsg.PlayerRecord) {
	if recalled.Seq == 0 {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.mu.seqs[recalled.Player] = max(ps.mu.seqs[recalled.Player], recalled.Seq)
	ps.mu.done[recalled.Player] = max(ps.mu.done[recalled.Player], recalled.Counted())
}

// Save saves a player who leaves. It returns when the record is on this node's disk; the network follows.
func (ps *Store) Save(p Presence) {
	select {
	case <-ps.enqueueSave(p):
	case <-ps.ended:
	}
}

// SaveAndPublish saves a player who moves to another node: it returns when the record is in the network, or ctx ends.
func (ps *Store) SaveAndPublish(ctx context.Context, p Presence) {
	select {
	case <-ps.enqueueSave(p):
	case <-ps.ended:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-ps.publisher.published(p.Player):
	case <-ctx.Done():
		ps.Logger.Warn("player redirected before the network has the record", "player", p.Name)
	}
}

// enqueueSave queues a leaving player to be saved. The channel is closed when the record is on disk and queued for publishing.
func (ps *Store) enqueueSave(p Presence) <-chan struct{} {
	d := departure{p, make(chan struct{})}
	ps.mu.Lock()
	ps.mu.leaving = append(ps.mu.leaving, d)
	ps.mu.Unlock()
	ps.wake.Set()
	return d.saved
}

// Run saves the players who are here from time to time and those who leave at once. When ctx ends it saves those who are left and
// returns when all are published; publishing in progress is not aborted, but must end within publishLast.
func (ps *Store) Run(ctx context.Context, here func() []Presence) {
	patient, deadline := context.WithCancel(context.WithoutCancel(ctx))
	defer deadline()
	var publishing sync.WaitGroup
	publishing.Go(func() { ps.publisher.run(patient) })
	ps.runSaver(ctx, here)
	close(ps.ended)
	ps.publisher.close()
	defer time.AfterFunc(publishLast, deadline).Stop()
	publishing.Wait()
}

func (ps *Store) runSaver(ctx context.Context, here func() []Presence) {
	save, expire := time.NewTicker(saveEvery), time.NewTicker(expireEvery)
	defer save.Stop()
	defer expire.Stop()
	saved, published := make(map[player.ID]place), make(map[player.ID]lastPublished)
	for {
		select {
		case <-ctx.Done():
			ps.saveLeaving()
			return
		case <-ps.wake:
			ps.saveLeaving()
		case <-save.C:
			everybody := here()
			var due []Presence
			if due, published = dueOf(everybody, published); len(due) > 0 {
				ps.publisher.enqueue(ps.records(due), false)
			}
			saved = ps.saveMoved(everybody, saved)
		case <-expire.C:
			if err := ps.deleteExpired(); err != nil {
				ps.Logger.Error("expired guests not deleted", "error", err)
			}
		}
	}
}

// deleteExpired deletes this node's rows of expired guests, and the oldest ones if there are more than maxRows.
func (ps *Store) deleteExpired() error {
	type row struct {
		key   []byte
		saved int64
	}
	var expired, others []row
	now := ps.Wall()
	err := ps.Storage.Scan(Table, nil, func(key, value []byte) error {
		r, err := nodemsg.DecodePlayerRecord(value)
		if err == nil && r.Expired(now) {
			expired = append(expired, row{bytes.Clone(key), r.SavedAt})
		} else {
			others = append(others, row{bytes.Clone(key), r.SavedAt})
		}
		return nil
	})
	if n := len(others) - ps.maxRows; n > 0 {
		slices.SortFunc(others, func(a, b row) int { return cmp.Compare(a.saved, b.saved) })
		expired = append(expired, others[:n]...)
	}
	for some := range slices.Chunk(expired, expireAtOnce) {
		writes := make([]kv.Write, len(some))
		for i, r := range some {
			writes[i] = kv.Write{Table: Table, Key: r.key}
		}
		err = errors.Join(err, ps.Storage.Commit(writes))
	}
	return err
}

// saveLeaving saves leaving players in one commit, and queues them for publishing.
func (ps *Store) saveLeaving() {
	ps.mu.Lock()
	leaving := ps.mu.leaving
	ps.mu.leaving = nil
	ps.mu.Unlock()
	if len(leaving) == 0 {
		return
	}
	people := make([]Presence, len(leaving))
	for i, d := range leaving {
		people[i] = d.Presence
	}
	records := ps.records(people)
	if err := ps.store(records); err != nil {
		ps.Logger.Error("leaving players not saved", "players", len(records), "error", err)
	}
	ps.publisher.enqueue(records, true)
	ps.mu.Lock()
	for _, d := range leaving {
		delete(ps.mu.seqs, d.Player) // loaded again when they return
		delete(ps.mu.done, d.Player)
	}
	ps.mu.Unlock()
	for _, d := range leaving {
		close(d.saved)
	}
}

// place is where a player is, and their home.
type place struct {
	pose motion.Pose
	home *motion.Pose
}

// saveMoved saves the players who moved, or changed their home, since the last call, in one commit.
func (ps *Store) saveMoved(here []Presence, before map[player.ID]place) map[player.ID]place {
	poses := make(map[player.ID]place, len(here))
	for _, p := range here {
		poses[p.Player] = place{p.Pose, p.Home}
	}
	moved := slices.DeleteFunc(here, func(p Presence) bool {
		last, known := before[p.Player]
		return known && last == place{p.Pose, p.Home}
	})
	if len(moved) == 0 {
		return poses
	}
	if err := ps.store(ps.records(moved)); err != nil {
		ps.Logger.Error("players not saved", "error", err)
		return before
	}
	return poses
}

// records returns the next record of each player. Sequences are milliseconds since 1970 where clocks allow, and always grow.
func (ps *Store) records(people []Presence) []nodemsg.PlayerRecord {
	now := ps.Wall().UnixMilli()
	records := make([]nodemsg.PlayerRecord, len(people))
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for i, p := range people {
		seq := max(ps.mu.seqs[p.Player]+1, uint64(now))
		ps.mu.seqs[p.Player] = seq
		records[i] = nodemsg.PlayerRecord{
			Player: p.Player, Name: p.Name, Guest: p.Guest,
			Seq: seq, Pose: p.Pose, Home: p.Home, Gateway: ps.Peer, SavedAt: now, Login: p.Login,
		}
		if done := max(ps.mu.done[p.Player], p.Done); done > records[i].Counted() {
			records[i].Done = min(done, wire.MaxDone)
		}
	}
	return records
}

func (ps *Store) store(records []nodemsg.PlayerRecord) error {
	writes := make([]kv.Write, 0, len(records))
	for _, r := range records {
		r.Login = nil // this node needs no proof, and an older version, to which it may go back, could not read it
		row, err := nodemsg.EncodePlayerRecord(r)
		if err != nil { // the others are saved all the same
			ps.Logger.Error("player record cannot be encoded", "player", r.Player.String(), "error", err)
			continue
		}
		writes = append(writes, kv.Write{Table: Table, Key: r.Player[:], Value: row})
	}
	return ps.Storage.Commit(writes)
}
