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
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file implements how a player of the session protocol continues at another gateway after a Reconnect.

const (
	// resendInterval is the interval between attempts to send edits that the new gateway could not accept yet.
	resendInterval = 200 * time.Millisecond
	// maxRedirects is the number of redirects without a welcome after which a player gives up.
	maxRedirects = 5
	// maxDrift is the largest distance, in blocks, between a player's pose and the saved one at which the player keeps
	// their own.
	maxDrift = 8
)

// redirect ends a session because the gateway redirects the player.
type redirect struct{ sessionmsg.Reconnect }

func (d *redirect) Error() string { return "sent on: " + d.Reason }

// follow plays one session after another as long as gateways redirect the player. It tries the gateways that they
// name, then the one where the player began.
func (p *sessionPlayer) follow(ctx, life context.Context) error {
	route, hops := []string{p.Target}, 0
	for {
		err := p.visit(ctx, life, route[0])
		away, sent := errors.AsType[*redirect](err)
		if p.welcome {
			hops = 0
		}
		switch hops++; {
		case sent && len(away.Gateways) == 0:
			return &failure{"sent away", "no other node takes players: " + away.Reason}
		case sent && hops > maxRedirects:
			return &failure{"sent away", "from gateway to gateway"}
		case sent:
			route = p.redirected(away)
		case err != nil && !p.redirectedAt.IsZero() && !p.welcome && len(route) > 1 && ctx.Err() == nil:
			p.Logger.Info("gateway not reached", "player", p.name, "home", route[0], "error", err)
			route = route[1:]
		default:
			return err
		}
	}
}

// redirected records that the player was redirected and returns the addresses to try.
func (p *sessionPlayer) redirected(away *redirect) (route []string) {
	if p.redirectedAt.IsZero() {
		p.redirectedAt = time.Now()
	}
	for seq, e := range p.pending {
		e.moved = true
		p.pending[seq] = e
	}
	for _, home := range away.Gateways {
		if sessionclient.IsPage(p.Target) {
			route = append(route, home.URL)
		} else {
			route = append(route, home.Game)
		}
	}
	return append(route, p.Target)
}

// arrived counts a redirect as completed, if one is under way.
func (p *sessionPlayer) arrived() {
	if p.redirectedAt.IsZero() {
		return
	}
	p.meter.moved(time.Since(p.redirectedAt))
	p.redirectedAt = time.Time{}
}

// sendEdit sends a pending edit.
func (p *sessionPlayer) sendEdit(seq uint64) error {
	e := p.pending[seq]
	m := sessionmsg.Edit{Seq: seq, X: e.pos.X, Y: e.pos.Y, Z: e.pos.Z, Block: uint16(e.block)}
	if p.signs != "" {
		m = sessionclient.Sign(p.key, p.signs, m)
	}
	return p.send("edit", m)
}

// resendIn sends the unanswered edits in a chunk again once that chunk has arrived from the new gateway.
func (p *sessionPlayer) resendIn(at grid.ChunkPos) error {
	return p.resend(func(e sentEdit) bool { return e.moved && e.pos.Chunk() == at })
}

// resendRefused sends the edits again that the new gateway could not accept yet.
func (p *sessionPlayer) resendRefused() error {
	return p.resend(func(e sentEdit) bool { return e.resend })
}

// farApart reports whether a player is farther from a place than they can have walked since.
func farApart(a, b motion.Pose) bool {
	return math.Hypot(math.Hypot(a.X-b.X, a.Z-b.Z), a.Y-b.Y) > maxDrift
}

// resend sends the selected edits in the order of their numbers: of two edits of one place the later one must win.
// It sends the pose first, because the player may have walked on since the previous gateway saved it.
func (p *sessionPlayer) resend(those func(sentEdit) bool) error {
	poseSent := false
	for _, seq := range slices.SortedFunc(maps.Keys(p.pending), cmp.Compare[uint64]) {
		e := p.pending[seq]
		if !those(e) {
			continue
		}
		if !poseSent {
			poseSent = true
			if err := p.send("move", sessionmsg.Move{Pose: p.walk.pose}); err != nil {
				return err
			}
		}
		e.resend = false
		p.pending[seq] = e
		if err := p.sendEdit(seq); err != nil {
			return err
		}
	}
	return nil
}

// retryable reports whether a refusal is temporary.
func retryable(refused string) bool {
	switch refused {
	case wire.RefusedNotLoaded, wire.RefusedUnavailable, wire.RefusedRate:
		return true
	}
	return false
}
