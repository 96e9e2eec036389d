package gameserver

import (
	"context"
	"time"

	"github.com/voxelpopuli/voxeld/overlay"
)

// This file schedules the rounds. Rounds begin at multiples of their length by the wall clock, for all gateways at the same time.
// Half a round before, a gateway steps its machines: they process what has arrived, and choose the recipients. When the round
// begins it fills in the current places, and sends. So the packets of all gateways arrive at nearly the same time, and their
// places are sent with the next frame, which p2p requests as soon as all are there.

const (
	// gatherTime is how long after the beginning of a round the frame waits for the packets of gateways that sent one in the
	// round before.
	gatherTime = round * 2 / 5
	// clocksApart is the maximum difference of clocks at which a packet counts for the round of its sender.
	clocksApart = round / 2
	// stepLead is how long before its round a turn is taken: when the packets of the round before have arrived and are shown, and
	// long before anything is sent.
	stepLead = round / 2
)

// peerPlaces is the places in a packet of another gateway.
type peerPlaces struct {
	peer   string
	places []overlay.Update
}

// roundPackets collects the packets of a round.
type roundPackets struct {
	round uint32
	last  map[string]uint32 // by peer: the round of its newest packet
}

// complete reports whether the packet of every gateway that sent one in the round before has arrived.
func (n *roundPackets) complete() bool {
	for peer, last := range n.last {
		switch int32(n.round - last) {
		case 1:
			return false
		case 0, -1:
		default:
			delete(n.last, peer)
		}
	}
	return true
}

// run runs rounds until ctx ends.
func (d *p2pDriver) run(ctx context.Context) {
	if !d.enabled() {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	gather := &roundPackets{last: make(map[string]uint32)}
	var next time.Time // when the next round begins
	var r roundOutput
	var called bool // a frame was requested in this round
	call := func() {
		called = true
		wakeUp(d.g.frameRequested)
	}
	for phase := phaseRest; ; {
		select {
		case <-ctx.Done():
			return
		case p := <-d.received:
			d.g.relocate(d.applyPlaces(p.places))
			gather.last[p.peer] = roundOf(time.Now().Add(clocksApart))
			if phase == phaseCollect && !called && gather.complete() {
				call()
			}
			continue
		case <-timer.C:
		}
		switch phase {
		case phaseRest: // the turn is due
			began := time.Now()
			next = began.Add(untilRound(began))
			r = d.step(d.g.placedSessions(), roundOf(next))
			phase = phaseStepped
			timer.Reset(time.Until(next))
		case phaseStepped: // the round begins
			d.sendOutput(&r)
			gather.round, called = roundOf(next.Add(clocksApart/2)), false
			if gather.complete() {
				call()
			}
			phase = phaseCollect
			timer.Reset(time.Until(next.Add(gatherTime)))
		case phaseCollect: // for gateways that have not sent by now
			if !called {
				call()
			}
			phase = phaseRest
			rest := time.Until(next.Add(round))
			if rest < 0 { // the next one has begun too
				rest = untilRound(time.Now())
			}
			timer.Reset(max(rest-stepLead, 0))
		}
	}
}

// Phases of a round.
const (
	phaseRest    = iota // until the next turn
	phaseStepped        // until the round begins
	phaseCollect        // until the others' packets have arrived
)

// sendOutput sends the output of a turn.
func (d *p2pDriver) sendOutput(r *roundOutput) {
	d.renew(r)
	for peer, messages := range r.messages {
		if len(*messages) > 0 {
			d.send(peer, overlay.AppendPacket(nil, *messages))
		}
	}
	d.g.relocate(r.steps)
	for _, s := range r.moved {
		if home := s.bodySubShared.Load(); home.move(s.body.Player, s.currentPose(), s, false) {
			wakeUp(home.wake)
		}
	}
	*r = roundOutput{}
}

func roundOf(t time.Time) uint32 { return uint32(t.UnixMilli() / round.Milliseconds()) }

// untilRound returns the time until the next round begins.
func untilRound(t time.Time) time.Duration { return round - time.Duration(t.UnixNano())%round }

// applyPlaces applies places sent by other gateways.
func (d *p2pDriver) applyPlaces(places []overlay.Update) (steps []relocation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range places {
		steps = d.applyUpdate(u, d.mu.round, steps)
	}
	return steps
}
