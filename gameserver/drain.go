package gameserver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
)

// This file is how a gateway ends without its players' losing anything: the land that this node leads goes to
// other nodes, each player is saved and told where to go on, and only who does not go is cut off.

const (
	// drainTime bounds a whole drain. With publishLast, lastWords and what regions take it stays below what cmd
	// grants all parts together.
	drainTime = 12 * time.Second
	// settleTime is how long the edits of a player may take to be answered before he is sent on; he asks for
	// the others again at his new home.
	settleTime = 2 * time.Second
	// partTime is how long a player may take to be saved, in the network too, before he is sent on.
	partTime = 3 * time.Second
	// leaveTime is how long a player who was sent on may take to leave; homelessTime, if there is nowhere to go.
	leaveTime, homelessTime = 4 * time.Second, time.Second
)

// What became of a session that was ended by a drain: the label outcome of a metric.
const (
	followed = "followed" // left for another node
	cutOff   = "cut"      // did not leave in time
	homeless = "homeless" // no other node takes players
)

// What is said with a Reconnect.
const (
	reasonMove  = "This node is being stopped. You go on at another one."
	reasonAlone = "This node is being stopped, and no other one takes players now. It will be back."
)

// Steps of a drain, in their order.
const (
	StepBegun    = "begun"
	StepRooms    = "rooms"    // other nodes have said whether they take players
	StepRegions  = "regions"  // leaderships are handed over; may come before StepRooms
	StepSessions = "sessions" // all players have left
)

// DrainStep is what a drain tells when it has come a step further.
type DrainStep struct {
	Step     string `json:"step"`
	Sessions int    `json:"sessions"`           // that there were when the step was done
	Rooms    []Room `json:"rooms,omitempty"`    // of StepRooms
	Handed   int    `json:"handed,omitempty"`   // of StepRegions: regions that another node leads now
	Kept     int    `json:"kept,omitempty"`     // of StepRegions: regions for which there was none
	Followed int    `json:"followed,omitempty"` // of StepSessions: players who went on at another node
	Cut      int    `json:"cut,omitempty"`      // of StepSessions: players who did not leave in time
	Homeless int    `json:"homeless,omitempty"` // of StepSessions: players for whom there was no other node
}

// leaving is the state of a gateway that ends. Its channels are closed when the thing has come about.
type leaving struct {
	begun chan struct{}
	asked chan struct{}
	rooms *rooms // after asked
}

func newLeaving() leaving {
	return leaving{begun: make(chan struct{}), asked: make(chan struct{})}
}

// leaves tells whether the gateway is about to end.
func (g *Gateway) leaves() bool {
	select {
	case <-g.leaving.begun:
		return true
	default:
		return false
	}
}

// Draining tells whether the gateway sends its players elsewhere, because it is about to end.
func (g *Gateway) Draining() bool { return g.leaves() }

var errDraining = errors.New("draining: this node is about to stop")

// ready tells why the node should not be sent players now; nil if it may.
func (g *Gateway) ready() error {
	if g.leaves() {
		return errDraining
	}
	return g.Ready()
}

// drain sends everybody elsewhere. It is called once, and returns when all sessions have ended or have had
// their time.
func (g *Gateway) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	g.mu.Lock() // whoever takes a place does so before, and is sent on; or after, and sees it
	close(g.leaving.begun)
	g.mu.Unlock()
	g.tell(DrainStep{Step: StepBegun})

	var crew sync.WaitGroup
	crew.Go(func() {
		g.leaving.rooms = g.findRooms(ctx, len(g.seated()))
		close(g.leaving.asked)
		g.tell(DrainStep{Step: StepRooms, Rooms: g.leaving.rooms.snapshot()})
	})
	handed, kept := g.Regions.Drain(ctx)
	g.tell(DrainStep{Step: StepRegions, Handed: handed, Kept: kept})
	crew.Wait()
	g.sendOn(ctx)
}

// sendOn moves all sessions at the same time.
func (g *Gateway) sendOn(ctx context.Context) {
	var crew sync.WaitGroup
	outcomes := make(chan string)
	sessions := g.seated()
	for _, s := range sessions {
		homes := g.leaving.rooms.assign()
		crew.Go(func() { outcomes <- s.sendOn(ctx, homes) })
	}
	count := make(map[string]int)
	for range sessions {
		count[<-outcomes]++
	}
	crew.Wait()
	for outcome, n := range count {
		if outcome != "" {
			g.metrics.moved.WithLabelValues(outcome).Add(float64(n))
		}
	}
	g.tell(DrainStep{Step: StepSessions, Followed: count[followed], Cut: count[cutOff], Homeless: count[homeless]})
}

func (g *Gateway) tell(step DrainStep) {
	step.Sessions = len(g.seated())
	g.Logger.Info("draining", "step", step.Step, "sessions", step.Sessions, "rooms", len(step.Rooms),
		"regions_handed_over", step.Handed, "regions_kept", step.Kept,
		"followed", step.Followed, "cut", step.Cut, "homeless", step.Homeless)
	if g.Drained != nil {
		g.Drained(step)
	}
}

// seated gives the sessions that have a place.
func (g *Gateway) seated() []*session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.mu.sessions))
}

// sendOn ends a session so that its player loses nothing: he is saved where he stands, no further edit is taken,
// those under way are answered, and only then he is told where to go. It returns when he has left, or has
// had his time; the outcome is empty for one who left before he was told.
//
// Saving asks the network and takes longest, so it comes before edits have to wait.
func (s *session) sendOn(ctx context.Context, homes []wire.Home) (outcome string) {
	if last, here := s.part(); here {
		saving, cancel := context.WithTimeout(ctx, partTime)
		s.g.keeper.part(saving, last)
		cancel()
	}
	s.wait(ctx, s.edits.hold(), settleTime)
	if s.left() {
		return ""
	}
	reason, patience, outcome := reasonMove, leaveTime, followed
	if len(homes) == 0 {
		reason, patience, outcome = reasonAlone, homelessTime, homeless
	}
	s.out.send(wire.Reconnect{Homes: homes, Reason: reason})
	s.wait(ctx, s.done, patience)
	if outcome == followed && !s.left() {
		return cutOff
	}
	return outcome
}

// wait waits for a thing to come about, or for the end of the session, of its time or of ctx.
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

// left tells whether the session is over.
func (s *session) left() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// part stops the player where he is: from now on this gateway neither moves nor saves him, and he does nothing here that
// others hear of. It gives his place, unless he has none yet.
func (s *session) part() (last presence, here bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	here, s.mu.joined, s.mu.parted = s.mu.joined, false, true
	return presence{s.body, s.mu.pose, s.mu.done}, here
}

// elsewhere refuses a player because this gateway is about to end; he is told where to go.
type elsewhere struct{ message wire.Reconnect }

func (e *elsewhere) Error() string { return errDraining.Error() }

// sendAway is the answer to somebody who wants to join while the gateway ends.
func (g *Gateway) sendAway(ctx context.Context) error {
	select {
	case <-g.leaving.asked:
	case <-ctx.Done():
		return ctx.Err()
	}
	homes := g.leaving.rooms.assign()
	reason := reasonMove
	if len(homes) == 0 {
		reason = reasonAlone
	}
	return &elsewhere{wire.Reconnect{Homes: homes, Reason: reason}}
}
