package bot

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file is how a player of the session protocol goes on at another gateway when his sends him there.

const (
	// askAgainEvery is how often edits are asked for again that a new home could not take yet.
	askAgainEvery = 200 * time.Millisecond
	// maxHops is how often a player is sent on without being welcome anywhere before he gives up.
	maxHops = 5
	// stray is how far a player may be from where he was saved, in blocks, and go on from where he is.
	stray = 8
)

// departure ends a session because the gateway sends the player on.
type departure struct{ wire.Reconnect }

func (d *departure) Error() string { return "sent on: " + d.Reason }

// follow plays one session after the other, as long as gateways send the player on: to the homes that they name,
// then to where he began.
func (p *sessionPlayer) follow(ctx, life context.Context) error {
	route, hops := []string{p.Target}, 0
	for {
		err := p.visit(ctx, life, route[0])
		away, sent := errors.AsType[*departure](err)
		if p.welcome {
			hops = 0
		}
		switch hops++; {
		case sent && len(away.Homes) == 0:
			return &failure{"sent away", "no other node takes players: " + away.Reason}
		case sent && hops > maxHops:
			return &failure{"sent away", "from gateway to gateway"}
		case sent:
			route = p.depart(away)
		case err != nil && !p.sentOn.IsZero() && !p.welcome && len(route) > 1 && ctx.Err() == nil:
			p.Logger.Info("new home not reached", "player", p.name, "home", route[0], "error", err)
			route = route[1:]
		default:
			return err
		}
	}
}

// depart takes note that the player is on his way, and gives where to.
func (p *sessionPlayer) depart(away *departure) (route []string) {
	if p.sentOn.IsZero() {
		p.sentOn = time.Now()
	}
	for seq, e := range p.pending {
		e.moved = true
		p.pending[seq] = e
	}
	for _, home := range away.Homes {
		route = append(route, home.Game)
	}
	return append(route, p.Target)
}

// arrived counts that the player has come to a new home, if he was on his way.
func (p *sessionPlayer) arrived() {
	if p.sentOn.IsZero() {
		return
	}
	p.meter.moved(time.Since(p.sentOn))
	p.sentOn = time.Time{}
}

// ask sends an edit that waits for its answer.
func (p *sessionPlayer) ask(seq uint64) error {
	e := p.pending[seq]
	return p.send("edit", wire.Edit{Seq: seq, X: e.pos.X, Y: e.pos.Y, Z: e.pos.Z, Block: uint16(e.block)})
}

// askIn asks for the edits in a chunk that has come at a new home and that were not answered at the old one.
func (p *sessionPlayer) askIn(at grid.ChunkPos) error {
	return p.askThose(func(e sentEdit) bool { return e.moved && e.pos.Chunk() == at })
}

// askAgain asks for the edits that the new home could not take yet.
func (p *sessionPlayer) askAgain() error {
	return p.askThose(func(e sentEdit) bool { return e.again })
}

// strayed tells whether a player is too far from a place to be still on his way from there.
func strayed(a, b wire.Pose) bool {
	return math.Hypot(math.Hypot(a.X-b.X, a.Z-b.Z), a.Y-b.Y) > stray
}

// askThose asks in the order of the numbers: of two edits of one place the later one must win. The gateway is told
// first where the player is: he may have walked on since the old one saved him.
func (p *sessionPlayer) askThose(those func(sentEdit) bool) error {
	told := false
	for _, seq := range slices.SortedFunc(maps.Keys(p.pending), cmp.Compare[uint64]) {
		e := p.pending[seq]
		if !those(e) {
			continue
		}
		if !told {
			told = true
			if err := p.send("move", wire.Move{Pose: p.walk.pose}); err != nil {
				return err
			}
		}
		e.again = false
		p.pending[seq] = e
		if err := p.ask(seq); err != nil {
			return err
		}
	}
	return nil
}

// passing tells whether a refusal passes.
func passing(refused string) bool {
	switch refused {
	case wire.RefusedNotLoaded, wire.RefusedUnavailable, wire.RefusedRate:
		return true
	}
	return false
}
