package gameserver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// playerTable is this node's own table of the players it served: player id → record.
	playerTable = "players"
	// saveEvery is the interval at which players who moved are saved on this node's disk; it bounds what a killed node loses.
	saveEvery = time.Second
	// loadTimeout bounds a lookup of a player in the network.
	loadTimeout = 3 * time.Second
)

// playerStore saves players where they left, and loads them when they return.
//
// One goroutine makes all records and writes all rows, so that a newer one is never overwritten by an older one; others publish,
// since the network may take seconds.
type playerStore struct {
	Options
	wakeSaver     chan struct{} // holds a token while a player waits to be saved
	wakePublisher chan struct{} // holds a token while there may be something to publish
	ended         chan struct{} // closed when no more players are saved

	mu struct {
		sync.Mutex
		leaving []departure
		backlog backlog
		seqs    map[player.ID]uint64 // newest known record of each player who is here
		done    map[player.ID]uint64 // and how many events they are known to have sent
	}
}

// presence is a player who is here, and their place.
type presence struct {
	body nodemsg.Body
	pose motion.Pose
	done uint64 // how many events they have sent (vclock.Owner.Done); 0 if these are not counted
}

// departure is a player who leaves.
type departure struct {
	presence
	saved chan struct{} // closed when the record is on this node's disk
}

func newPlayerStore(o Options) *playerStore {
	ps := &playerStore{
		Options:   o,
		wakeSaver: make(chan struct{}, 1), wakePublisher: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	ps.mu.backlog = backlog{
		records: make(map[player.ID]nodemsg.PlayerRecord), under: make(map[player.ID]bool),
		awaited: make(map[player.ID][]chan struct{}),
	}
	ps.mu.seqs, ps.mu.done = make(map[player.ID]uint64), make(map[player.ID]uint64)
	return ps
}

// load returns the newest record of a player on this node and in the network. If the network does not answer, only this node's
// record counts.
func (ps *playerStore) load(ctx context.Context, id player.ID) (newest nodemsg.PlayerRecord, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	row, err := ps.Storage.Get(playerTable, id[:])
	if err != nil {
		return newest, false, fmt.Errorf("load player record: %w", err)
	}
	if row != nil {
		if newest, err = nodemsg.DecodePlayerRecord(row); err != nil {
			// It must not lock the player out: the network may have a newer record, and the next save repairs this one.
			ps.Logger.Error("damaged player record on disk", "player", id.String(), "error", err)
			newest = nodemsg.PlayerRecord{}
		}
	}
	if remembered, err := ps.Players.Player(ctx, id); err == nil && remembered.Seq > newest.Seq {
		newest = remembered
	}
	return newest, newest.Seq > 0, nil
}

// noteStored makes a player's next records newer than the one on this node's disk.
func (ps *playerStore) noteStored(id player.ID) {
	row, err := ps.Storage.Get(playerTable, id[:])
	if err != nil || row == nil {
		return
	}
	if record, err := nodemsg.DecodePlayerRecord(row); err == nil {
		ps.noteLoaded(record)
	}
}

// noteLoaded makes a player's next records newer than the one that was loaded.
func (ps *playerStore) noteLoaded(recalled nodemsg.PlayerRecord) {
	if recalled.Seq == 0 {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.mu.seqs[recalled.Player] = max(ps.mu.seqs[recalled.Player], recalled.Seq)
	ps.mu.done[recalled.Player] = max(ps.mu.done[recalled.Player], recalled.Counted())
}

// save saves a player who leaves. It returns when the record is on this node's disk; the network follows.
func (ps *playerStore) save(p presence) {
	select {
	case <-ps.enqueueSave(p):
	case <-ps.ended:
	}
}

// saveAndPublish saves a player who moves to another node: it returns when the record is in the network, or ctx ends.
func (ps *playerStore) saveAndPublish(ctx context.Context, p presence) {
	select {
	case <-ps.enqueueSave(p):
	case <-ps.ended:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-ps.published(p.body.Player):
	case <-ctx.Done():
		ps.Logger.Warn("player redirected before the network has the record", "player", p.body.Name)
	}
}

// enqueueSave queues a leaving player to be saved. The channel is closed when the record is on disk and queued for publishing.
func (ps *playerStore) enqueueSave(p presence) <-chan struct{} {
	d := departure{p, make(chan struct{})}
	ps.mu.Lock()
	ps.mu.leaving = append(ps.mu.leaving, d)
	ps.mu.Unlock()
	wakeUp(ps.wakeSaver)
	return d.saved
}

// run saves the players who are here from time to time and those who leave at once. When ctx ends it saves those who are left and
// returns when all are published; publishing in progress is not aborted, but must end within publishLast.
func (ps *playerStore) run(ctx context.Context, here func() []presence) {
	patient, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var crew sync.WaitGroup
	for range publishers {
		crew.Go(func() { ps.runPublisher(patient) })
	}
	ps.runSaver(ctx, here)
	close(ps.ended)
	defer time.AfterFunc(publishLast, giveUp).Stop()
	crew.Wait()
}

func (ps *playerStore) runSaver(ctx context.Context, here func() []presence) {
	save := time.NewTicker(saveEvery)
	defer save.Stop()
	saved, published := make(map[player.ID]motion.Pose), make(map[player.ID]lastPublished)
	for {
		select {
		case <-ctx.Done():
			ps.saveLeaving()
			return
		case <-ps.wakeSaver:
			ps.saveLeaving()
		case <-save.C:
			everybody := here()
			published = ps.enqueueMoved(everybody, published)
			saved = ps.saveMoved(everybody, saved)
		}
	}
}

// saveLeaving saves leaving players in one commit, and queues them for publishing.
func (ps *playerStore) saveLeaving() {
	ps.mu.Lock()
	leaving := ps.mu.leaving
	ps.mu.leaving = nil
	ps.mu.Unlock()
	if len(leaving) == 0 {
		return
	}
	people := make([]presence, len(leaving))
	for i, d := range leaving {
		people[i] = d.presence
	}
	records := ps.records(people)
	if err := ps.store(records); err != nil {
		ps.Logger.Error("save players who leave", "players", len(records), "error", err)
	}
	ps.enqueuePublish(records, true)
	ps.mu.Lock()
	for _, d := range leaving {
		delete(ps.mu.seqs, d.body.Player) // loaded again when they return
		delete(ps.mu.done, d.body.Player)
	}
	ps.mu.Unlock()
	for _, d := range leaving {
		close(d.saved)
	}
}

// saveMoved saves the players who moved since the last call, in one commit.
func (ps *playerStore) saveMoved(here []presence, before map[player.ID]motion.Pose) map[player.ID]motion.Pose {
	poses := make(map[player.ID]motion.Pose, len(here))
	for _, p := range here {
		poses[p.body.Player] = p.pose
	}
	moved := slices.DeleteFunc(here, func(p presence) bool {
		pose, known := before[p.body.Player]
		return known && pose == p.pose
	})
	if len(moved) == 0 {
		return poses
	}
	if err := ps.store(ps.records(moved)); err != nil {
		ps.Logger.Error("save players", "error", err)
		return before
	}
	return poses
}

// records returns the next record of each player. Sequences are milliseconds since 1970 where clocks allow, and always grow.
func (ps *playerStore) records(people []presence) []nodemsg.PlayerRecord {
	now := ps.wall().UnixMilli()
	records := make([]nodemsg.PlayerRecord, len(people))
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for i, p := range people {
		seq := max(ps.mu.seqs[p.body.Player]+1, uint64(now))
		ps.mu.seqs[p.body.Player] = seq
		records[i] = nodemsg.PlayerRecord{
			Player: p.body.Player, Name: p.body.Name, Guest: p.body.Guest,
			Seq: seq, Pose: p.pose, Gateway: ps.Peer, SavedAt: now,
		}
		if done := max(ps.mu.done[p.body.Player], p.done); done > records[i].Counted() {
			records[i].Done = min(done, wire.MaxDone)
		}
	}
	return records
}

func (ps *playerStore) store(records []nodemsg.PlayerRecord) error {
	writes := make([]kv.Write, 0, len(records))
	for _, r := range records {
		row, err := nodemsg.EncodePlayerRecord(r)
		if err != nil { // the others are saved all the same
			ps.Logger.Error("player record cannot be encoded", "player", r.Player.String(), "error", err)
			continue
		}
		writes = append(writes, kv.Write{Table: playerTable, Key: r.Player[:], Value: row})
	}
	return ps.Storage.Commit(writes)
}
