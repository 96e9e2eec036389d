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
	// turnLead is how long before its round a turn is taken: when the packets of the round before have arrived and are shown, and
	// long before anything is sent.
	turnLead = round / 2
)

// parcel is the places in a packet of another gateway.
type parcel struct {
	peer   string
	places []overlay.Update
}

// gathering collects the packets of a round.
type gathering struct {
	round uint32
	last  map[string]uint32 // by peer: the round of its newest packet
}

// complete reports whether the packet of every gateway that sent one in the round before has arrived.
func (n *gathering) complete() bool {
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
func (w *swarm) run(ctx context.Context) {
	if !w.on() {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	gather := &gathering{last: make(map[string]uint32)}
	var next time.Time // when the next round begins
	var r turn
	var called bool // a frame was requested in this round
	call := func() {
		called = true
		wakeUp(w.g.called)
	}
	for stage := resting; ; {
		select {
		case <-ctx.Done():
			return
		case p := <-w.parcels:
			w.g.displace(w.show(p.places))
			gather.last[p.peer] = roundOf(time.Now().Add(clocksApart))
			if stage == gathers && !called && gather.complete() {
				call()
			}
			continue
		case <-timer.C:
		}
		switch stage {
		case resting: // the turn is due
			began := time.Now()
			next = began.Add(untilRound(began))
			r = w.turn(w.g.seated(), roundOf(next))
			stage = turned
			timer.Reset(time.Until(next))
		case turned: // the round begins
			w.depart(&r)
			gather.round, called = roundOf(next.Add(clocksApart/2)), false
			if gather.complete() {
				call()
			}
			stage = gathers
			timer.Reset(time.Until(next.Add(gatherTime)))
		case gathers: // for gateways that have not sent by now
			if !called {
				call()
			}
			stage = resting
			rest := time.Until(next.Add(round))
			if rest < 0 { // the next one has begun too
				rest = untilRound(time.Now())
			}
			timer.Reset(max(rest-turnLead, 0))
		}
	}
}

// Phases of a round.
const (
	resting = iota // until the next turn
	turned         // until the round begins
	gathers        // until the others' packets have arrived
)

// depart sends the output of a turn.
func (w *swarm) depart(r *turn) {
	w.renew(r)
	for peer, messages := range r.messages {
		if len(*messages) > 0 {
			w.send(peer, overlay.AppendPacket(nil, *messages))
		}
	}
	w.g.displace(r.steps)
	for _, s := range r.moved {
		if home := s.home.Load(); home.move(s.body.Player, s.where(), s, false) {
			wakeUp(home.wake)
		}
	}
	*r = turn{}
}

func roundOf(t time.Time) uint32 { return uint32(t.UnixMilli() / round.Milliseconds()) }

// untilRound returns the time until the next round begins.
func untilRound(t time.Time) time.Duration { return round - time.Duration(t.UnixNano())%round }

// show applies places sent by other gateways.
func (w *swarm) show(places []overlay.Update) (steps []displacement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range places {
		steps = w.learn(u, w.mu.round, steps)
	}
	return steps
}
