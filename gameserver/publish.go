package gameserver

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file publishes players' places to the network. Those who leave are published at once and first, since they may join
// another node next. Others are published when they arrive, when they have gone far, and periodically, but in a crowd only so
// many a second: each record is signed, and a walker soon has gone far again.

const (
	// publishEvery is the interval at which a player who is here is published.
	publishEvery = time.Minute
	// publishWay is how far, in blocks, a player may go from their published place before they are published again, but not
	// within publishPause of the last time. It bounds how far players are set back if their gateway is killed: by half a minute
	// of walking, and by up to a minute and more in a crowd of more than 120. A record is verified by five nodes and written to
	// the disk by each: with 15 s the records of a thousand walkers on a hundred nodes took a sixth of a core.
	publishWay, publishPause = 16, 30 * time.Second
	// At each save, once a second, enough players are published that everybody has a turn once in publishEvery, those with the
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
	records map[player.ID]wire.PlayerRecord
	first   []player.ID                   // players who left, in order: they go before the others
	under   map[player.ID]bool            // in progress: one record of a player at a time, so that an older one never arrives last
	awaited map[player.ID][]chan struct{} // closed when no record of the player is left to publish
}

// mark is where and when a player who is here was published last.
type mark struct {
	pose wire.Pose
	at   time.Time
}

// hand queues records for publishing.
func (k *keeper) hand(records []wire.PlayerRecord, leaving bool) {
	k.mu.Lock()
	for _, r := range records {
		k.mu.backlog.records[r.Player] = r
		if leaving && !slices.Contains(k.mu.backlog.first, r.Player) {
			k.mu.backlog.first = append(k.mu.backlog.first, r.Player)
		}
	}
	k.mu.Unlock()
	wakeUp(k.publish)
}

// handMoved queues players who have arrived, have gone far since they were published, or were published long ago. It returns the
// marks of all published players who are here.
func (k *keeper) handMoved(here []presence, before map[player.ID]mark) map[player.ID]mark {
	now := time.Now()
	marks := make(map[player.ID]mark, len(here))
	var due []presence
	for _, p := range here {
		m, known := before[p.body.Player]
		if known {
			marks[p.body.Player] = m
		}
		age := now.Sub(m.at)
		if !known || age >= publishEvery || age >= publishPause && wayBetween(m.pose, p.pose) > publishWay {
			due = append(due, p)
		}
	}
	if most := publishedOf(len(here)); len(due) > most {
		slices.SortFunc(due, func(a, b presence) int {
			return marks[a.body.Player].at.Compare(marks[b.body.Player].at) // new players have no mark, and go first
		})
		due = due[:most]
	}
	for _, p := range due {
		marks[p.body.Player] = mark{p.pose, now}
	}
	if len(due) > 0 {
		k.hand(k.records(due), false)
	}
	return marks
}

// publishedOf returns how many of the given number of players are published at one save.
func publishedOf(players int) int {
	turn := (time.Duration(players)*saveEvery + publishEvery - 1) / publishEvery
	return max(publishLeast, min(publishMost, int(turn)))
}

func wayBetween(a, b wire.Pose) float64 {
	return math.Hypot(math.Hypot(a.X-b.X, a.Z-b.Z), a.Y-b.Y)
}

// runPublisher runs one of the publishers. When the saver has ended it publishes the rest.
func (k *keeper) runPublisher(ctx context.Context) {
	ended := false
	for {
		if r, ok := k.nextRecord(); ok {
			k.put(ctx, r)
			continue
		}
		if ended {
			return // a record deferred by another publisher is handled by that one
		}
		select {
		case <-k.publish:
		case <-k.ended:
			ended = true
		}
	}
}

// nextRecord takes a record from the backlog.
func (k *keeper) nextRecord() (r wire.PlayerRecord, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := &k.mu.backlog
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
		wakeUp(k.publish) // for the next publisher
	}
	return r, true
}

// put publishes one record.
func (k *keeper) put(ctx context.Context, r wire.PlayerRecord) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := k.Players.PutPlayer(ctx, r); err != nil {
		k.Logger.Warn("publish player", "player", r.Name, "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	b := &k.mu.backlog
	delete(b.under, r.Player)
	if _, more := b.records[r.Player]; !more {
		for _, done := range b.awaited[r.Player] {
			close(done)
		}
		delete(b.awaited, r.Player)
	}
}

// published returns a channel that is closed when no record of the player is left to publish.
func (k *keeper) published(id player.ID) <-chan struct{} {
	done := make(chan struct{})
	k.mu.Lock()
	defer k.mu.Unlock()
	b := &k.mu.backlog
	if _, waits := b.records[id]; !waits && !b.under[id] {
		close(done)
		return done
	}
	b.awaited[id] = append(b.awaited[id], done)
	return done
}
