package players

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Writers are the players who edit. Each has a home gateway, and a work area at which they work together with players
// of all other gateways. If the gateway fails, the player continues through another, and sends unanswered edits again
// under the same sequence. The player returns when the home gateway is back.
type Writers struct {
	gateways []*Gateway
	ledger   *history.Ledger
	logger   *slog.Logger
	Areas    []*Area
	wg       sync.WaitGroup
	cancel   context.CancelFunc

	quiet atomic.Bool // no new edits
	open  atomic.Int64
	// Begun and Lost count sessions, Unavailable the answers that the region is unavailable.
	Begun, Lost, Unavailable atomic.Int64
}

// WriterOptions configure the edits.
type WriterOptions struct {
	Rate float64 // edits a second, all players together; at most 10 per player
	Seed uint64
}

// perPlayer is the maximum number of edits a second of one player: one per tick interval.
const perPlayer = float64(time.Second / tickInterval)

// StartWriters starts players, who edit until Stop.
func StartWriters(ctx context.Context, gateways []*Gateway, l *history.Ledger, o WriterOptions, logger *slog.Logger) *Writers {
	ctx, cancel := context.WithCancel(ctx)
	w := &Writers{gateways: gateways, ledger: l, logger: logger, cancel: cancel}
	var limits []*rate.Limiter // one for each work area: else players who always ask first would starve the other areas
	for i := range areaCount {
		w.Areas = append(w.Areas, newArea(i, o.Seed))
		limits = append(limits, rate.NewLimiter(rate.Limit(o.Rate/areaCount), max(1, int(o.Rate/areaCount/5))))
	}
	// Equally many at each gateway and work area, and twice as many as the rate needs, since some are always moving.
	places := len(gateways) * areaCount
	n := places * max(1, int(math.Ceil(2*o.Rate/perPlayer/float64(places))))
	for i := range n {
		area := i / len(gateways) % areaCount
		p := &player{
			Writers: w, name: fmt.Sprintf("w%02d", i), home: gateways[i%len(gateways)], area: w.Areas[area], editLimit: limits[area],
			hops: i/places%2 == 0, rng: rand.New(rand.NewPCG(o.Seed, 1000+uint64(i))),
		}
		w.wg.Go(func() { p.run(ctx) })
	}
	return w
}

// Cells returns the regions that are edited.
func (w *Writers) Cells() []string {
	var all []string
	for _, s := range w.Areas {
		all = append(all, s.Cell())
	}
	return all
}

// Chunks returns the chunks that players edit now.
func (w *Writers) Chunks() []grid.ChunkPos {
	all := make(map[grid.ChunkPos]bool)
	for _, s := range w.Areas {
		_, x, z := s.Middle()
		for _, dx := range []int32{-siteWide / 2, siteWide / 2} {
			for _, dz := range []int32{-siteWide / 2, siteWide / 2} {
				all[grid.Pos{X: x + dx, Z: z + dz}.Chunk()] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b grid.ChunkPos) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Z, b.Z)) })
}

// Quiet stops new edits; those under way are sent again until they are answered.
func (w *Writers) Quiet() { w.quiet.Store(true) }

// Open returns the number of edits under way.
func (w *Writers) Open() int { return int(w.open.Load()) }

// Stop disconnects all players, and awaits them. Unanswered edits stay Unknown.
func (w *Writers) Stop() {
	w.cancel()
	w.wg.Wait()
}

// player is one writer. It belongs to one goroutine.
type player struct {
	*Writers
	name string
	home *Gateway
	area *Area
	rng  *rand.Rand

	editLimit *rate.Limiter // the area's

	seq      uint64
	pending  []*pendingEdit // by sequence
	homing   time.Time
	hops     bool     // leaves a gateway that does not answer; otherwise the player stays, and waits
	redirect *Gateway // the target of the last redirect
}

// pendingEdit is an unanswered edit.
type pendingEdit struct {
	*history.Edit
	siteX, siteZ int32
	session      *session  // over which it was last sent
	again        time.Time // after a temporary refusal: when to ask again
	since        time.Time // first sent
}

const (
	maxPending = 12 // well below the 64 sequences that a region keeps for a player
	// hopAfter is when a player with an unanswered edit tries another gateway, if the player hops at all.
	hopAfter = 8 * time.Second
	// homeAfter is how long a player plays elsewhere before they check whether their home is back.
	homeAfter = 6 * time.Second
)

func (p *player) run(ctx context.Context) {
	avoid, wait := (*Gateway)(nil), time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = 0
		n := p.choose(avoid)
		avoid = nil
		if n == nil {
			wait = 50 * time.Millisecond
			continue
		}
		s, err := join(ctx, n, p.name, 1)
		if err != nil {
			if ctx.Err() == nil {
				p.logger.Debug("join failed", "player", p.name, "error", err)
			}
			avoid = n
			wait = time.Duration(50+p.rng.IntN(150)) * time.Millisecond
			continue
		}
		p.Begun.Add(1)
		hop, err := p.play(ctx, s)
		for _, stream := range s.streams {
			p.ledger.EndStream(stream, p.ledger.Now())
		}
		s.Leave()
		if hop || errors.Is(err, errRedirected) {
			avoid = n
		} else if err != nil && ctx.Err() == nil {
			p.Lost.Add(1)
			p.logger.Debug("session lost", "player", p.name, "node", n.Number, "error", err)
		}
	}
}

// at returns the gateway with an address; nil if there is none.
func (w *Writers) at(game string) *Gateway {
	i := slices.IndexFunc(w.gateways, func(g *Gateway) bool { return g.Game == game })
	if i < 0 {
		return nil
	}
	return w.gateways[i]
}

// errRedirected is returned if the gateway redirects the player: it is shutting down, or its disk does not answer.
var errRedirected = errors.New("gateway redirects the player")

// choose returns the gateway to use: the target of a redirect, else home if it serves, else any other; nil if none
// serves.
func (p *player) choose(avoid *Gateway) *Gateway {
	sent := p.redirect
	if p.redirect = nil; sent != nil && sent != avoid && sent.Serves() {
		return sent
	}
	if p.home.Serves() && p.home != avoid {
		return p.home
	}
	var serving []*Gateway
	for _, n := range p.gateways {
		if n.Serves() && n != avoid {
			serving = append(serving, n)
		}
	}
	if len(serving) == 0 {
		return nil
	}
	return serving[p.rng.IntN(len(serving))]
}

// play edits over one session until it breaks. hop reports whether the player left by choice.
func (p *player) play(ctx context.Context, s *session) (hop bool, err error) {
	p.seq = max(p.seq, s.Welcome.NextSeq)
	p.homing = time.Now().Add(homeAfter)
	ticks := time.NewTicker(tickInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case m, open := <-s.Inbox:
			if !open {
				return false, fmt.Errorf("connection to node %d closed", s.node.Number)
			}
			if err := p.handle(s, m); err != nil {
				return false, err
			}
			if _, whole := m.FromServer.(sessionmsg.ChunkData); whole {
				if err := p.sendLost(s); err != nil {
					return false, err
				}
			}
		case <-ticks.C:
			if hop, err := p.step(s); hop || err != nil {
				return hop, err
			}
		}
	}
}

// step makes one interval's moves and edits: fly to the site, send unanswered edits again, ask for a new one.
func (p *player) step(s *session) (hop bool, err error) {
	now := time.Now()
	if s.node != p.home && len(p.pending) == 0 && p.home.Serves() && now.After(p.homing) {
		return true, nil
	}
	if p.hops && len(p.pending) > 0 && now.Sub(p.pending[0].since) > hopAfter && now.Sub(p.homing) > hopAfter-homeAfter {
		return true, nil
	}
	site, x, z := p.area.Middle()
	lost := slices.IndexFunc(p.pending, func(a *pendingEdit) bool { return a.session != s })
	if lost >= 0 {
		x, z = p.pending[lost].siteX, p.pending[lost].siteZ // where the player was at the time
	}
	there, err := s.fly(float64(x)+.5, float64(z)+.5)
	if err != nil || !there {
		return false, err
	}
	for _, a := range p.pending {
		if a.session == s || a.siteX != x || a.siteZ != z || now.Before(a.again) {
			continue
		}
		if !s.loaded(a.Pos) {
			continue
		}
		if err := p.send(s, a); err != nil {
			return false, err
		}
	}
	if lost >= 0 || p.quiet.Load() || len(p.pending) >= maxPending || !p.editLimit.Allow() {
		return false, nil
	}
	return false, p.askNew(s, site, x, z)
}

// sendLost sends again what was not answered over earlier sessions and is in reach, as soon as the land has arrived.
func (p *player) sendLost(s *session) error {
	now := time.Now()
	for _, a := range p.pending {
		if a.session == s || now.Before(a.again) || !s.loaded(a.Pos) || !s.reaches(a.Pos) {
			continue
		}
		if err := p.send(s, a); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) askNew(s *session, site int, x, z int32) error {
	if !s.loaded(grid.Pos{X: x, Z: z}) {
		return nil
	}
	pos, block, ok := p.area.Edit(site)
	if !ok {
		return nil
	}
	if !s.loaded(pos) {
		return nil
	}
	a := &pendingEdit{Edit: &history.Edit{Player: p.name, Seq: p.seq, Pos: pos, Block: block}, siteX: x, siteZ: z, since: time.Now()}
	p.seq++
	p.ledger.Ask(a.Edit)
	p.pending = append(p.pending, a)
	p.open.Add(1)
	return p.send(s, a)
}

func (p *player) send(s *session, a *pendingEdit) error {
	a.session = s
	p.ledger.Sent(a.Edit, s.node.Number)
	return s.send(sessionmsg.Edit{Seq: a.Seq, X: a.Pos.X, Y: a.Pos.Y, Z: a.Pos.Z, Block: uint16(a.Block)})
}

// handle handles a message.
func (p *player) handle(s *session, m sessionclient.Arrival) error {
	at := p.ledger.At(m.At)
	if c, whole := m.FromServer.(sessionmsg.ChunkData); whole && s.streams[c.Chunk] > 0 {
		p.ledger.EndStream(s.streams[c.Chunk], at)
	}
	blocks, err := s.apply(m.FromServer)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		pos := grid.Pos{X: b.X, Y: b.Y, Z: b.Z}
		if !contains(pos) {
			continue
		}
		seen := s.streams[pos.Chunk()]
		if seen == 0 {
			seen = p.ledger.BeginStream()
			s.streams[pos.Chunk()] = seen
		}
		p.ledger.RecordSight(history.Sight{At: at, Pos: pos, Block: chunk.Block(b.Block), Stream: seen})
	}
	switch m := m.FromServer.(type) {
	case sessionmsg.Ack:
		p.acked(s, m, at)
	case sessionmsg.Reconnect:
		for _, home := range slices.Backward(m.Gateways) {
			if n := p.at(home.Game); n != nil {
				p.redirect = n
			}
		}
		return errRedirected
	case sessionmsg.Failure:
		return fmt.Errorf("node %d: %s: %s", s.node.Number, m.Code, m.Message)
	}
	return nil
}

// acked records an answer. After a code that may change with time, the edit is sent again if an earlier attempt may
// have been accepted: a refusal says nothing about that attempt.
func (p *player) acked(s *session, m sessionmsg.Ack, at time.Duration) {
	i := slices.IndexFunc(p.pending, func(a *pendingEdit) bool { return a.Seq == m.Seq })
	if i < 0 {
		return // of an earlier session, answered twice
	}
	a := p.pending[i]
	outcome := history.Acknowledged
	switch m.Error {
	case "":
	case wire.RefusedUnavailable:
		p.Unavailable.Add(1)
		p.retry(a)
		return
	case wire.RefusedNotLoaded, wire.RefusedOutOfReach, wire.RefusedRate, wire.RefusedInsidePlayer:
		if a.Tries > 1 {
			p.retry(a)
			return
		}
		outcome = history.Refused
	default:
		if outcome = history.Refused; a.Tries > 1 {
			outcome = history.Unknown
		}
	}
	p.ledger.Answer(a.Edit, at, outcome, m.Error, s.node.Number)
	p.pending = slices.Delete(p.pending, i, i+1)
	p.open.Add(-1)
}

func (p *player) retry(a *pendingEdit) {
	a.session, a.again = nil, time.Now().Add(500*time.Millisecond)
}
