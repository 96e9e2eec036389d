package elsewhere

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file has lines that all players of the world are shown. The gateway of their author sends them to each gateway
// that it is connected with, in order, and again until that gateway has answered.

const (
	// retryFor is how long a line is sent to a gateway that does not answer.
	retryFor = 10 * time.Second
	// retryPause is the pause after a gateway has not answered.
	retryPause = 250 * time.Millisecond
	// maxQueued is the most lines that wait for one gateway.
	maxQueued = 256
)

// queued are the lines that wait for each gateway, the first ones being sent. A gateway that is listed has a goroutine.
type queued struct {
	dropped prometheus.Counter

	mu struct {
		sync.Mutex
		of map[string][]lineUntil
	}
}

// lineUntil is a line, and how long it is sent again.
type lineUntil struct {
	line  nodemsg.WorldLine
	until time.Time
}

func newQueued(r prometheus.Registerer) *queued {
	q := &queued{dropped: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "voxeld_chat_world_dropped_total",
		Help: "Lines for the whole world that another gateway may not have got, since it did not answer for 10 s, or too many waited for it; per gateway.",
	})}
	q.mu.of = make(map[string][]lineUntil)
	r.MustRegister(q.dropped)
	return q
}

// add adds a line for a gateway. It reports whether the gateway needs a goroutine.
func (q *queued) add(peer string, line nodemsg.WorldLine) (begins bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, sending := q.mu.of[peer]
	if len(waiting) == maxQueued {
		q.dropped.Inc()
		return false
	}
	q.mu.of[peer] = append(waiting, lineUntil{line, time.Now().Add(retryFor)})
	return !sending
}

// next removes the first lines of a gateway, which were sent, and those that have waited too long. It returns the
// next ones; if there are none, the gateway is not listed any more.
func (q *queued) next(peer string, sent int) (lines []nodemsg.WorldLine) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, now := q.mu.of[peer][sent:], time.Now()
	for len(waiting) > 0 && !now.Before(waiting[0].until) {
		q.dropped.Inc()
		waiting = waiting[1:]
	}
	if q.mu.of[peer] = waiting; len(waiting) == 0 {
		delete(q.mu.of, peer)
	}
	for _, l := range waiting[:min(len(waiting), nodemsg.MaxWorldLines)] {
		lines = append(lines, l.line)
	}
	return lines
}

// Say has all gateways that are connected now show a line to their players; of more than maxPeers, always the same. It
// does not wait for them.
func (p *Players) Say(line nodemsg.WorldLine) {
	peers := slices.Sorted(slices.Values(p.nodes.Connected()))
	for _, peer := range peers[:min(len(peers), maxPeers)] {
		if p.queued.add(peer, line) {
			p.run(func(ctx context.Context) { p.send(ctx, peer) })
		}
	}
}

// send sends a gateway the lines that wait for it.
func (p *Players) send(ctx context.Context, peer string) {
	sent := 0
	for {
		lines := p.queued.next(peer, sent)
		if len(lines) == 0 {
			return
		}
		asking, cancel := context.WithTimeout(ctx, answerTime)
		_, err := p.askOne(asking, peer, nodemsg.PlayersRequest{Say: &nodemsg.WorldLines{Lines: lines}})
		cancel()
		if sent = len(lines); err == nil {
			continue
		}
		sent = 0
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return
		}
	}
}
