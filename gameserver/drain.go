package gameserver

import (
	"context"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/handoff"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file shuts a gateway down without losing anything of its players: other nodes take over the land that this node
// leads, and each player is saved and redirected to another node. Only sessions that do not follow are cut.

const (
	// drainTime bounds a whole drain. With the player store, outbox.CloseTimeout and the time that regions take, it
	// stays below what cmd grants all parts together.
	drainTime = 12 * time.Second
	// settleTime bounds the wait for the answers to a player's edits before the player is redirected; the client sends
	// unanswered ones again at its new node.
	settleTime = 2 * time.Second
	// partTime bounds the time for saving a player, in the network too, before the player is redirected.
	partTime = 3 * time.Second
	// leaveTime is how long a redirected client may take to leave; noTargetTime is the same if there is no other node.
	leaveTime, noTargetTime = 4 * time.Second, time.Second
)

// Outcomes of a session that was ended by a drain: the label outcome of a metric.
const (
	followed = "followed"     // left for another node
	cutOff   = "disconnected" // did not leave in time
	noTarget = "no_target"    // no other node takes players
)

// Steps of a drain, in their order.
const (
	StepBegun    = "begun"
	StepTargets  = "rooms"    // other nodes have answered whether they take players
	StepRegions  = "regions"  // leaderships are handed over; may come before StepTargets
	StepSessions = "sessions" // all players have left
)

// Draining reports whether the gateway redirects its players because it is shutting down.
func (g *Gateway) Draining() bool { return g.shuttingDown() }

// CutOff returns a node that leads land where players of this gateway stand, and that cannot be reached from here,
// although others can reach it; empty if there is none.
func (g *Gateway) CutOff() (leader string) { return g.mirror.CutOff() }

// ready returns why the node should not be sent players now; nil if it may.
func (g *Gateway) ready() error {
	if g.shuttingDown() {
		return errDraining
	}
	return g.Ready()
}

// drain redirects all sessions. It is called once, and returns when all have ended or run out of time.
func (g *Gateway) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	g.sessions.Close(func() { close(g.shutdown.begun) }) // a session takes its place before this, and is redirected, or finds out
	g.reportStep(DrainStep{Step: StepBegun})

	var wg sync.WaitGroup
	wg.Go(func() {
		g.shutdown.targets = handoff.Find(ctx, g.Nodes, len(g.sessions.All()), g.Logger)
		close(g.shutdown.asked)
		g.reportStep(DrainStep{Step: StepTargets, Targets: g.shutdown.targets.Snapshot()})
	})
	handed, kept := g.Regions.Drain(ctx)
	g.reportStep(DrainStep{Step: StepRegions, Handed: handed, Kept: kept})
	wg.Wait()
	g.redirectAll(ctx)
}

// AnswerHandoff answers another gateway's query (handoff.Protocol) whether this one would take its sessions. An error
// means that the query is malformed.
func (g *Gateway) AnswerHandoff(_ context.Context, _ string, question []byte) ([]byte, error) {
	if _, err := nodemsg.DecodeHandoffRequest(question); err != nil {
		return nil, err
	}
	return nodemsg.EncodeHandoffOffer(nodemsg.HandoffOffer{
		HTTP: g.HTTP, Game: g.Game, Games: g.Games, Origins: g.Origins[:min(len(g.Origins), nodemsg.MaxOrigins)],
		Sessions: uint64(len(g.sessions.All())), Ready: g.Ready() == nil, Draining: g.shuttingDown(),
	})
}

// redirectAll redirects all sessions concurrently.
func (g *Gateway) redirectAll(ctx context.Context) {
	var wg sync.WaitGroup
	outcomes := make(chan string)
	sessions := g.sessions.All()
	for _, s := range sessions {
		homes := g.shutdown.targets.Assign(gameOf(s.conn))
		wg.Go(func() { outcomes <- s.redirect(ctx, homes) })
	}
	count := make(map[string]int)
	for range sessions {
		count[<-outcomes]++
	}
	wg.Wait()
	for outcome, n := range count {
		if outcome != "" {
			g.metrics.moved.WithLabelValues(outcome).Add(float64(n))
		}
	}
	g.reportStep(DrainStep{Step: StepSessions, Followed: count[followed], Cut: count[cutOff], NoTarget: count[noTarget]})
}

func (g *Gateway) reportStep(step DrainStep) {
	step.Sessions = len(g.sessions.All())
	if counts := step.Counts(); step.Step == StepBegun || len(counts) > 0 {
		g.Logger.Info("draining", append([]any{"step", step.Step}, counts...)...)
	}
	if g.Drained != nil {
		g.Drained(step)
	}
}

// redirect ends a session without losing anything of its player: the player is saved where they stand, no further edits
// are accepted, pending ones are answered, and only then is the client redirected. It returns when the client has left
// or its time is over; the outcome is empty if it left before it was redirected.
//
// Saving uses the network and takes longest, so it comes before edits have to wait.
func (s *session) redirect(ctx context.Context, homes []wire.Gateway) (outcome string) {
	if s.place.detach() {
		saving, cancel := context.WithTimeout(ctx, partTime)
		s.g.players.SaveAndPublish(saving, s.presence())
		cancel()
	}
	s.wait(ctx, s.edits.close(), settleTime)
	if s.ended() {
		return ""
	}
	reason, patience, outcome := reasonMove, leaveTime, followed
	if len(homes) == 0 {
		reason, patience, outcome = reasonAlone, noTargetTime, noTarget
	}
	s.out.Send(reconnect(homes, reason))
	s.wait(ctx, s.done, patience)
	if outcome == followed && !s.ended() {
		return cutOff
	}
	return outcome
}

// wait waits until thing is closed, or until the end of the session, of most or of ctx.
func (s *session) wait(ctx context.Context, thing <-chan struct{}, most time.Duration) {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-thing:
	case <-s.done:
	case <-late.C:
	case <-ctx.Done():
	}
}

// ended reports whether the session is over.
func (s *session) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
