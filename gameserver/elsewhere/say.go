package elsewhere

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file has lines that all players of the world are shown. The gateway of their author sends them to each gateway
// that it is connected with, in order, and again until that gateway has answered.

const (
	// sayFor is how long a line is sent to a gateway that does not answer.
	sayFor = 10 * time.Second
	// sayAgain is the pause after a gateway has not answered.
	sayAgain = 250 * time.Millisecond
	// maxUnsaid is the most lines that wait for one gateway.
	maxUnsaid = 256
)

// unsaid are the lines that wait for each gateway, the first ones being sent. A gateway that is listed has a goroutine.
type unsaid struct {
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

func newUnsaid(r prometheus.Registerer) *unsaid {
	u := &unsaid{dropped: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "voxeld_chat_world_dropped_total",
		Help: "Lines for the whole world that another gateway was not sent, because it did not answer for 10 s; per gateway.",
	})}
	u.mu.of = make(map[string][]lineUntil)
	r.MustRegister(u.dropped)
	return u
}

// add adds a line for a gateway. It reports whether the gateway needs a goroutine.
func (u *unsaid) add(peer string, line nodemsg.WorldLine) (begins bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	waiting, sending := u.mu.of[peer]
	if len(waiting) == maxUnsaid {
		u.dropped.Inc()
		return false
	}
	u.mu.of[peer] = append(waiting, lineUntil{line, time.Now().Add(sayFor)})
	return !sending
}

// next removes the first lines of a gateway, which were sent, and those that have waited too long. It returns the
// next ones; if there are none, the gateway is not listed any more.
func (u *unsaid) next(peer string, sent int) (lines []nodemsg.WorldLine) {
	u.mu.Lock()
	defer u.mu.Unlock()
	waiting, now := u.mu.of[peer][sent:], time.Now()
	for len(waiting) > 0 && !now.Before(waiting[0].until) {
		u.dropped.Inc()
		waiting = waiting[1:]
	}
	if u.mu.of[peer] = waiting; len(waiting) == 0 {
		delete(u.mu.of, peer)
	}
	for _, l := range waiting[:min(len(waiting), nodemsg.MaxWorldLines)] {
		lines = append(lines, l.line)
	}
	return lines
}

// Say has all connected gateways show a line to their players. It does not wait for them.
func (p *Players) Say(line nodemsg.WorldLine) {
	peers := p.nodes.Connected()
	for _, peer := range peers[:min(len(peers), maxPeers)] {
		if p.unsaid.add(peer, line) {
			p.run(func(ctx context.Context) { p.send(ctx, peer) })
		}
	}
}

// send sends a gateway the lines that wait for it.
func (p *Players) send(ctx context.Context, peer string) {
	sent := 0
	for {
		lines := p.unsaid.next(peer, sent)
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
		case <-time.After(sayAgain):
		case <-ctx.Done():
			return
		}
	}
}
