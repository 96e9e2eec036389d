package players

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"

	"github.com/voxelpopuli/voxeld/player"
)

// This file publishes players' places to the network. Those who leave are published at once and first, since they may join
// another node next. Others are published when they arrive, when they have gone far, and periodically, but in a crowd only so
// many a second: each record is signed, and a walker soon has gone far again.

const (
	// PublishEvery is the interval at which a player who is here is published.
	PublishEvery = time.Minute
	// publishWay is how far, in blocks, a player may go from their published place before they are published again, but not
	// within publishPause of the last time. It bounds how far players are set back if their gateway is killed: by half a minute
	// of walking, and by up to a minute and more in a crowd of more than 120. A record is verified by five nodes and written to
	// the disk by each: with 15 s the records of a thousand walkers on a hundred nodes took a sixth of a core.
	publishWay, publishPause = 16, 30 * time.Second
	// At each save, once a second, enough players are published that everybody has a turn once in PublishEvery, those with the
	// oldest record first; but at least publishLeast, which is what 120 walkers need, and at most publishMost. A record is signed
	// and sent to several nodes near its key, and those nodes verify it and write it to disk: with 50 a second, each of four
	// gateways of a crowd spent more on records than on motion, and with 10 for each quarter of a crowd of 1,000 still a seventh
	// of all that it spent.
	publishLeast, publishMost = 4, 10
	// publishTimeout bounds storing one record in the network.
	publishTimeout = 10 * time.Second
	// publishLast bounds publishing during shutdown.
	publishLast = 8 * time.Second
	// publishers is the number of concurrent writes of records to the DHT.
	publishers = 16
)

// backlog holds the records to publish, the newest of each player. The player store's lock guards it.
type backlog struct {
	records map[player.ID]nodemsg.PlayerRecord
	first   []player.ID // players who left, in order: they go before the others
	// In progress: one record of a player at a time, so that an older one never arrives last.
	under   map[player.ID]bool
	awaited map[player.ID][]chan struct{} // closed when no record of the player is left to publish
}

// lastPublished is where and when a player who is here was published last.
type lastPublished struct {
	pose motion.Pose
	at   time.Time
}

// enqueuePublish queues records for publishing.
func (ps *Store) enqueuePublish(records []nodemsg.PlayerRecord, leaving bool) {
	ps.mu.Lock()
	for _, r := range records {
		ps.mu.backlog.records[r.Player] = r
		if leaving && !slices.Contains(ps.mu.backlog.first, r.Player) {
			ps.mu.backlog.first = append(ps.mu.backlog.first, r.Player)
		}
	}
	ps.mu.Unlock()
	ps.publisher.Set()
}

// enqueueMoved queues players who have arrived, have gone far since they were published, or were published long ago. It returns
// the marks of all published players who are here.
func (ps *Store) enqueueMoved(here []Presence, before map[player.ID]lastPublished) map[player.ID]lastPublished {
	now := time.Now()
	marks := make(map[player.ID]lastPublished, len(here))
	var due []Presence
	for _, p := range here {
		m, known := before[p.Player]
		if known {
			marks[p.Player] = m
		}
		age := now.Sub(m.at)
		if !known || age >= PublishEvery || age >= publishPause && wayBetween(m.pose, p.Pose) > publishWay {
			due = append(due, p)
		}
	}
	if most := publishedOf(len(here)); len(due) > most {
		slices.SortFunc(due, func(a, b Presence) int {
			return marks[a.Player].at.Compare(marks[b.Player].at) // new players have no mark, and go first
		})
		due = due[:most]
	}
	for _, p := range due {
		marks[p.Player] = lastPublished{p.Pose, now}
	}
	if len(due) > 0 {
		ps.enqueuePublish(ps.records(due), false)
	}
	return marks
}

// publishedOf returns how many of the given number of players are published at one save.
func publishedOf(players int) int {
	turn := (time.Duration(players)*saveEvery + PublishEvery - 1) / PublishEvery
	return max(publishLeast, min(publishMost, int(turn)))
}

func wayBetween(a, b motion.Pose) float64 {
	return math.Hypot(math.Hypot(a.X-b.X, a.Z-b.Z), a.Y-b.Y)
}

// runPublisher runs one of the publishers. When the saver has ended it publishes the rest.
func (ps *Store) runPublisher(ctx context.Context) {
	ended := false
	for {
		if r, ok := ps.nextRecord(); ok {
			ps.put(ctx, r)
			continue
		}
		if ended {
			return // a record deferred by another publisher is handled by that one
		}
		select {
		case <-ps.publisher:
		case <-ps.ended:
			ended = true
		}
	}
}

// nextRecord takes a record from the backlog.
func (ps *Store) nextRecord() (r nodemsg.PlayerRecord, ok bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	b := &ps.mu.backlog
	i := slices.IndexFunc(b.first, func(id player.ID) bool { return !b.under[id] })
	if i >= 0 {
		r, ok = b.records[b.first[i]]
		b.first = slices.Delete(b.first, i, i+1)
	} else {
		for id, waiting := range b.records {
			if !b.under[id] {
				r, ok = waiting, true
				break
			}
		}
	}
	if !ok {
		return r, false
	}
	delete(b.records, r.Player)
	b.under[r.Player] = true
	if len(b.records) > 0 {
		ps.publisher.Set() // for the next publisher
	}
	return r, true
}

// put publishes one record.
func (ps *Store) put(ctx context.Context, r nodemsg.PlayerRecord) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := ps.Network.PutPlayer(ctx, r); err != nil {
		ps.Logger.Warn("publish player record", "player", r.Name, "error", err)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	b := &ps.mu.backlog
	delete(b.under, r.Player)
	if _, more := b.records[r.Player]; !more {
		for _, done := range b.awaited[r.Player] {
			close(done)
		}
		delete(b.awaited, r.Player)
	}
}

// published returns a channel that is closed when no record of the player is left to publish.
func (ps *Store) published(id player.ID) <-chan struct{} {
	done := make(chan struct{})
	ps.mu.Lock()
	defer ps.mu.Unlock()
	b := &ps.mu.backlog
	if _, waits := b.records[id]; !waits && !b.under[id] {
		close(done)
		return done
	}
	b.awaited[id] = append(b.awaited[id], done)
	return done
}
