// Package players loads, saves and publishes the records of players: on this node's disk, and in the network, where
// other gateways find them.
//
// A Store is used by any goroutine; Store.Run starts and awaits its own.
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
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// Table is this node's own table of the players it served: player id → record.
	Table = "players"
	// loadTimeout bounds a lookup of a player in the network. A new player also waits a second for their place
	// (newcomer.Chooser). Together they are half a second less than the 3 s within which whoever joins is welcomed,
	// whichever node does not answer: the rest is for the machine.
	loadTimeout = 1500 * time.Millisecond
	// confirmTimeout bounds a later lookup. It is longer than the network's own limit, after which what was found by
	// then counts.
	confirmTimeout = 12 * time.Second
	// expireEvery is how often expired guests are deleted, and expireAtOnce how many in one commit. It is long, so that
	// a clock that is wrong after a start has been set before.
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
	Wall    func() time.Time // the time of the world, which need not be right
	Settled func() bool      // reports whether what is too old by it may be deleted; nil: it may
	Logger  *slog.Logger
}

// Store saves players where they left, and loads them when they return.
//
// One goroutine makes all records and writes all rows, so that a newer one is never overwritten by an older one; others
// publish, since the network may take seconds.
type Store struct {
	Options
	publisher *publisher
	wake      wake.Signal   // a player waits to be saved
	ended     chan struct{} // closed when no more players are saved
	maxRows   int           // maxRows but in tests

	mu struct {
		sync.Mutex
		leaving map[player.ID]*departure // the last one of each who is not on this node's disk yet: it may hang
		seqs    map[player.ID]uint64     // newest known record of each player who is here
		done    map[player.ID]uint64     // and how many events they are known to have sent
		doubts  doubts
	}
}

// departure is a player who leaves.
type departure struct {
	Presence
	saving   bool          // it is being written: a later one is another
	returned bool          // they have come again since
	saved    chan struct{} // closed when the record is on this node's disk
}

// NewStore returns a store that is not running yet.
func NewStore(o Options) *Store {
	ps := &Store{Options: o, wake: wake.NewSignal(), ended: make(chan struct{}), maxRows: maxRows}
	ps.publisher = newPublisher(o.Network, ps.confirm, o.Logger)
	ps.mu.leaving, ps.mu.doubts = make(map[player.ID]*departure), make(doubts)
	ps.mu.seqs, ps.mu.done = make(map[player.ID]uint64), make(map[player.ID]uint64)
	return ps
}

// Load returns the newest record of a player on this node and in the network. If the network does not answer, only this
// node's record counts, and the player's is not published before it has answered. A guest who has been away for 30 days
// is not known. The record returned has the login of the network's: the player's next one must be later.
func (ps *Store) Load(ctx context.Context, id player.ID) (newest nodemsg.PlayerRecord, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	stored, err := ps.own(id)
	if err != nil {
		return newest, false, fmt.Errorf("load player record: %w", err)
	}
	var found []nodemsg.PlayerRecord
	if stored.Seq > 0 {
		found = append(found, stored.PlayerRecord)
	}
	remembered, err := ps.Network.Player(ctx, id)
	switch {
	case err == nil:
		if stored.Seq > 0 && stored.isOutdated(remembered) {
			ps.NoteLoaded(stored.PlayerRecord) // as below
			found = nil
		}
		if stored.Seq == 0 || !stored.isNewer(remembered) {
			found = append(found, remembered)
		} else {
			ps.NoteLoaded(remembered)
		}
		ps.settle(id, remembered)
	case errors.Is(err, nodemsg.ErrNoRecord):
		ps.settle(id, nodemsg.PlayerRecord{})
	default:
		ps.Logger.Warn("player not found in time; their record is not published until the network has answered", "player", id.String(), "error", err)
		ps.noteDoubt(id, stored)
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

// Known returns the verifier of a guest's password, nil if there is none, and reports whether there may be a record of
// them. If the network does not answer, there may be.
func (ps *Store) Known(ctx context.Context, id player.ID) (v *player.Verifier, known bool) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	stored, err := ps.own(id)
	if err != nil || stored.Seq > 0 && !stored.Expired(ps.Wall()) {
		return stored.Verifier, true
	}
	remembered, err := ps.Network.Player(ctx, id)
	if err == nil && remembered.Expired(ps.Wall()) || errors.Is(err, nodemsg.ErrNoRecord) {
		return nil, false
	}
	return remembered.Verifier, true
}

// own returns this node's record of a player, which may still be on its way to the disk.
func (ps *Store) own(id player.ID) (r row, err error) {
	p, left := ps.departed(id)
	if !left {
		return ps.readRow(id)
	}
	r.PlayerRecord = ps.records([]Presence{p})[0]
	var value []byte
	if b, based := ps.baseOf(r.PlayerRecord); based {
		value = b.encode(r.Seq)
	}
	r.Login = nil
	r.setBase(value)
	return r, nil
}

// departed returns where a player was who has left, and is not on this node's disk yet.
func (ps *Store) departed(id player.ID) (p Presence, left bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if d := ps.mu.leaving[id]; d != nil {
		return d.Presence, true
	}
	return p, false
}

// readRow reads this node's record of a player from the disk.
func (ps *Store) readRow(id player.ID) (r row, err error) {
	value, err := ps.Storage.Get(Table, id[:])
	if err != nil || value == nil {
		return r, err
	}
	if r.PlayerRecord, err = nodemsg.DecodePlayerRecord(value); err != nil {
		// It must not lock the player out: the network may have a newer record, and the next save repairs this one.
		ps.Logger.Error("damaged player record on disk", "player", id.String(), "error", err)
		return row{}, nil
	}
	if now := ps.Wall(); !r.Plausible(now) {
		// This node's clock was far ahead when it was saved. Its numbers start again: no other node would accept the
		// next ones.
		r.Seq, r.Done, r.SavedAt = 1, 0, now.UnixMilli()
	}
	if value, err = ps.Storage.Get(basesTable, id[:]); err != nil {
		return row{}, err
	}
	r.setBase(value)
	return r, nil
}

// TakeRecall returns a player's record in the network, once, if they are to be brought to its place: the network did
// not answer when they came, and has done so since. Its home is nil unless it becomes theirs, which is home now. Waits
// reports whether that may still happen. If check refuses them by the password that the record has, its place stays
// what is published.
func (ps *Store) TakeRecall(id player.ID, home *motion.Pose, check func(*player.Verifier) error) (record *nodemsg.PlayerRecord, waits bool, err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	d := ps.mu.doubts[id]
	switch {
	case d == nil, !d.settled && !d.recent():
		return nil, false, nil
	case !d.settled:
		return nil, true, nil
	case d.recalled == nil:
		return nil, false, nil
	}
	if err := check(d.newer.Verifier); err != nil {
		return nil, false, err
	}
	d.recalled = nil
	recalled := *d.newer
	if !sameHome(home, d.began.Home) {
		recalled.Home = nil
	}
	return &recalled, false, nil
}

// NoteStored makes a player's next records newer than this node's.
func (ps *Store) NoteStored(id player.ID) {
	stored, err := ps.own(id)
	if err != nil || stored.Seq == 0 {
		return
	}
	ps.NoteLoaded(stored.PlayerRecord)
	if stored.Guest && stored.based {
		ps.noteDoubt(id, stored) // they left before the network had answered
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
	if d := ps.mu.leaving[recalled.Player]; d != nil {
		d.returned = true
	}
}

// Forget is called for a player who was loaded, and does not arrive. They must not be here.
func (ps *Store) Forget(id player.ID) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if d := ps.mu.leaving[id]; d != nil {
		d.returned = false // they are forgotten when it is saved
		return
	}
	delete(ps.mu.seqs, id)
	delete(ps.mu.done, id)
}

// Save queues the record of a player who leaves, for this node's disk and then for the network. It waits for neither:
// Load returns at once where they left, so that they can come again while the disk hangs.
func (ps *Store) Save(p Presence) { ps.enqueueSave(p) }

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

// enqueueSave queues a leaving player to be saved, in place of what is queued of them. The channel is closed when the
// record is on disk and queued for publishing.
func (ps *Store) enqueueSave(p Presence) <-chan struct{} {
	defer ps.wake.Set()
	ps.mu.Lock()
	defer ps.mu.Unlock()
	d := ps.mu.leaving[p.Player]
	if d == nil || d.saving {
		d = &departure{saved: make(chan struct{})}
		ps.mu.leaving[p.Player] = d
	}
	d.Presence, d.returned = p, false
	return d.saved
}

// Run saves the players who are here from time to time and those who leave at once. When ctx ends it saves those who
// are left and returns when all are published; publishing in progress is not aborted, but must end within publishLast.
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
			ps.mu.Lock()
			ps.mu.doubts.forget(everybody, ps.publisher.isIdle)
			asked := ps.mu.doubts.recent(everybody) // by the publisher
			ps.mu.Unlock()
			var due []Presence
			if due, published = dueOf(everybody, published); len(due)+len(asked) > 0 {
				ps.publisher.enqueue(ps.records(append(due, asked...)), false)
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
		if err == nil && r.Expired(now) && (ps.Settled == nil || ps.Settled()) {
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
		writes := make([]kv.Write, 2*len(some))
		for i, r := range some {
			writes[2*i], writes[2*i+1] = kv.Write{Table: Table, Key: r.key}, kv.Write{Table: basesTable, Key: r.key}
		}
		err = errors.Join(err, ps.Storage.Commit(writes))
	}
	return err
}

// saveLeaving saves leaving players in one commit, and queues them for publishing.
func (ps *Store) saveLeaving() {
	var leaving []*departure
	var people []Presence
	ps.mu.Lock()
	for _, d := range ps.mu.leaving {
		d.saving = true
		leaving, people = append(leaving, d), append(people, d.Presence)
	}
	ps.mu.Unlock()
	if len(leaving) == 0 {
		return
	}
	records := ps.records(people)
	if err := ps.store(records); err != nil {
		ps.Logger.Error("leaving players not saved", "players", len(records), "error", err)
	}
	ps.publisher.enqueue(records, true)
	ps.mu.Lock()
	for _, d := range leaving {
		if ps.mu.leaving[d.Player] != d {
			continue // they have come and left again
		}
		delete(ps.mu.leaving, d.Player)
		if !d.returned { // else they are here
			delete(ps.mu.seqs, d.Player) // loaded again when they return
			delete(ps.mu.done, d.Player)
		}
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

// records returns the next record of each player. Sequences are milliseconds since 1970 where clocks allow, and always
// grow.
func (ps *Store) records(people []Presence) []nodemsg.PlayerRecord {
	now := ps.Wall().UnixMilli()
	records := make([]nodemsg.PlayerRecord, len(people))
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for i, p := range people {
		seq := max(ps.mu.seqs[p.Player]+1, uint64(now))
		records[i] = nodemsg.PlayerRecord{
			Player: p.Player, Name: p.Name, Guest: p.Guest,
			Seq: seq, Pose: p.Pose, Home: p.Home, Gateway: ps.Peer, SavedAt: now, Login: p.Login, Verifier: p.Verifier,
		}
		if done := max(ps.mu.done[p.Player], p.Done); done > records[i].Counted() {
			records[i].Done = min(done, wire.MaxDone)
		}
		ps.mu.doubts[p.Player].merge(&records[i])
		ps.mu.seqs[p.Player] = records[i].Seq
	}
	return records
}

// store writes records to this node's disk, in one commit.
func (ps *Store) store(records []nodemsg.PlayerRecord) error {
	writes := make([]kv.Write, 0, 2*len(records))
	for _, r := range records {
		b, based := ps.baseOf(r)
		r.Login = nil // this node needs no proof, and an older version could not read it
		value, err := nodemsg.EncodePlayerRecord(r)
		if err != nil { // the others are saved all the same
			ps.Logger.Error("player record cannot be encoded", "player", r.Player.String(), "error", err)
			continue
		}
		writes = append(writes, kv.Write{Table: Table, Key: r.Player[:], Value: value})
		if based {
			writes = append(writes, kv.Write{Table: basesTable, Key: r.Player[:], Value: b.encode(r.Seq)})
		}
	}
	return ps.Storage.Commit(writes)
}

// baseOf returns the base that is stored beside a record. A guest's record has none, unless it is in doubt: its number
// says all.
func (ps *Store) baseOf(r nodemsg.PlayerRecord) (b base, based bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if d := ps.mu.doubts[r.Player]; d != nil && !d.settled {
		return d.began.base, true
	}
	if r.Login == nil {
		return b, false
	}
	return base{r.Login.At, r.Seq}, true
}

// noteDoubt notes that the network did not answer which record of a player is the newest.
func (ps *Store) noteDoubt(id player.ID, began row) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.mu.doubts.note(id, began)
}

// settle notes the network's answer.
func (ps *Store) settle(id player.ID, remembered nodemsg.PlayerRecord) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.mu.doubts.settle(id, remembered, ps.Wall())
}

// confirm returns a record as it is to be published. If the network did not answer when the player came, it is asked
// again first.
func (ps *Store) confirm(ctx context.Context, r nodemsg.PlayerRecord) (nodemsg.PlayerRecord, error) {
	ps.mu.Lock()
	d := ps.mu.doubts[r.Player]
	ask := d != nil && !d.settled
	ps.mu.Unlock()
	if ask {
		ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
		defer cancel()
		remembered, err := ps.Network.Player(ctx, r.Player)
		if err != nil && !errors.Is(err, nodemsg.ErrNoRecord) {
			return r, fmt.Errorf("look up the newest record: %w", err)
		}
		ps.settle(r.Player, remembered)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ask {
		d.recall()
	}
	d.merge(&r)
	if seq, here := ps.mu.seqs[r.Player]; here {
		ps.mu.seqs[r.Player] = max(seq, r.Seq)
	}
	return r, nil
}
