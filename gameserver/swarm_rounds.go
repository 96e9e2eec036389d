package gameserver

import (
	"context"
	"time"

	"github.com/voxelpopuli/voxeld/overlay"
)

// This file is when things happen in a round. All gateways step their machines at the same time, for rounds begin at multiples of their
// length by the wall clock; so the packets of all come soon after, and what they tell of places is shown with the next beat,
// which the swarm calls for when they are there. A machine takes in its inbox with its next step, which decides whom it tells,
// and nobody has to wait for that to see.

const (
	// gatherTime is how long after a step the beat waits for the packets of gateways that sent one in the round before.
	gatherTime = round * 2 / 5
	// clocksApart is by how much clocks may differ so that a packet is taken for the round in which its sender made it.
	clocksApart = round / 2
)

// parcel is what a packet of another gateway tells of places.
type parcel struct {
	peer   string
	places []overlay.Update
}

// gathering is the packets of a round.
type gathering struct {
	round uint32
	last  map[string]uint32 // by peer: the round of its newest packet
	waits bool              // the beat is not called for yet
}

// complete tells whether everybody's packet has come who sent one in the round before.
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

// run steps the machines once a round, and shows what others tell, until ctx ends.
func (w *swarm) run(ctx context.Context) {
	if !w.on() {
		return
	}
	timer := time.NewTimer(untilRound(time.Now()))
	defer timer.Stop()
	n := &w.gather
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-w.parcels:
			w.g.displace(w.show(p.places))
			n.last[p.peer] = roundOf(time.Now().Add(clocksApart))
			if !n.waits || !n.complete() {
				continue
			}
		case <-timer.C:
			if n.waits {
				break // for whoever has not sent by now
			}
			n.round = roundOf(time.Now())
			w.step()
			if n.waits = !n.complete(); n.waits {
				timer.Reset(gatherTime)
				continue
			}
		}
		n.waits = false
		wakeUp(w.g.called)
		timer.Reset(untilRound(time.Now()))
	}
}

func roundOf(t time.Time) uint32 { return uint32(t.UnixMilli() / round.Milliseconds()) }

// untilRound is how long it is until the next round begins.
func untilRound(t time.Time) time.Duration { return round - time.Duration(t.UnixNano())%round }

// show learns what other gateways tell of places.
func (w *swarm) show(places []overlay.Update) (steps []displacement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range places {
		steps = w.learn(u, w.mu.round, steps)
	}
	return steps
}
