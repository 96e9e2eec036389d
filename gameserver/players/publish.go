package players

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Network stores player records in the network; a *dht.DHT.
type Network interface {
	// Player returns the newest record of a player, nodemsg.ErrNoRecord if there is none, or another error if that is
	// not known.
	Player(ctx context.Context, id player.ID) (nodemsg.PlayerRecord, error)
	PutPlayer(ctx context.Context, record nodemsg.PlayerRecord) error
}

const (
	// publishTimeout bounds storing one record in the network.
	publishTimeout = 10 * time.Second
	// publishLast bounds publishing during shutdown.
	publishLast = 8 * time.Second
	// publishers is the number of concurrent writes of records to the DHT.
	publishers = 16
)

// publisher publishes records to the network, of each player the newest. Records of players who left go first, since
// they may join another node next.
type publisher struct {
	network Network
	confirm func(ctx context.Context, r nodemsg.PlayerRecord) (nodemsg.PlayerRecord, error) // returns a record as it is to be published
	log     *slog.Logger
	wake    wake.Signal   // there may be something to publish
	ended   chan struct{} // closed when nothing more is queued

	mu struct {
		sync.Mutex
		records map[player.ID]nodemsg.PlayerRecord // to be published
		first   []player.ID                        // players who left, in order: they go before the others
		// In progress: one record of a player at a time, so that an older one never arrives last.
		under   map[player.ID]bool
		awaited map[player.ID][]chan struct{} // closed when no record of the player is left to publish
	}
}

func newPublisher(network Network, confirm func(context.Context, nodemsg.PlayerRecord) (nodemsg.PlayerRecord, error), log *slog.Logger) *publisher {
	p := &publisher{network: network, confirm: confirm, log: log, wake: wake.NewSignal(), ended: make(chan struct{})}
	p.mu.records, p.mu.under = make(map[player.ID]nodemsg.PlayerRecord), make(map[player.ID]bool)
	p.mu.awaited = make(map[player.ID][]chan struct{})
	return p
}

// run publishes what is queued, until close is called and nothing is left.
func (p *publisher) run(ctx context.Context) {
	var wg sync.WaitGroup
	for range publishers {
		wg.Go(func() { p.publish(ctx) })
	}
	wg.Wait()
}

// close means that nothing more is queued.
func (p *publisher) close() { close(p.ended) }

// enqueue queues records for publishing.
func (p *publisher) enqueue(records []nodemsg.PlayerRecord, leaving bool) {
	p.mu.Lock()
	for _, r := range records {
		p.mu.records[r.Player] = r
		if leaving && !slices.Contains(p.mu.first, r.Player) {
			p.mu.first = append(p.mu.first, r.Player)
		}
	}
	p.mu.Unlock()
	p.wake.Set()
}

// publish publishes one record after the other.
func (p *publisher) publish(ctx context.Context) {
	ended := false
	for {
		if r, ok := p.nextRecord(); ok {
			p.put(ctx, r)
			continue
		}
		if ended {
			return // a record deferred by another publisher is handled by that one
		}
		select {
		case <-p.wake:
		case <-p.ended:
			ended = true
		}
	}
}

// nextRecord takes the record to be published next.
func (p *publisher) nextRecord() (r nodemsg.PlayerRecord, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.mu
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
		p.wake.Set() // for the next publisher
	}
	return r, true
}

// put publishes one record.
func (p *publisher) put(ctx context.Context, r nodemsg.PlayerRecord) {
	r, err := p.confirm(ctx, r)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, publishTimeout)
		defer cancel()
		err = p.network.PutPlayer(ctx, r)
	}
	if err != nil {
		p.log.Warn("player record not published", "player", r.Name, "error", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.mu
	delete(b.under, r.Player)
	if _, more := b.records[r.Player]; !more {
		for _, done := range b.awaited[r.Player] {
			close(done)
		}
		delete(b.awaited, r.Player)
	}
}

// isIdle reports whether no record of the player is left to publish.
func (p *publisher) isIdle(id player.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, waits := p.mu.records[id]
	return !waits && !p.mu.under[id]
}

// published returns a channel that is closed when no record of the player is left to publish.
func (p *publisher) published(id player.ID) <-chan struct{} {
	done := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.mu
	if _, waits := b.records[id]; !waits && !b.under[id] {
		close(done)
		return done
	}
	b.awaited[id] = append(b.awaited[id], done)
	return done
}
