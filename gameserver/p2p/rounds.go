package p2p

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/overlay"
)

// This file schedules the rounds. Rounds begin at multiples of their length by the wall clock, for all gateways at the
// same time. Half a round before, a gateway steps its machines: they process what has arrived, and choose the
// recipients. When the round begins it fills in the current places, and sends. So the packets of all gateways arrive at
// nearly the same time, and their places are sent with the next frame, which is requested as soon as all are there.

const (
	// gatherTime is how long after the beginning of a round the frame waits for the packets of gateways that sent one
	// in the round before.
	gatherTime = round * 2 / 5
	// clocksApart is the maximum difference of clocks at which a packet counts for the round of its sender.
	clocksApart = round / 2
	// stepLead is how long before its round a turn is taken: when the packets of the round before have arrived and are
	// shown, and long before anything is sent.
	stepLead = round / 2
)

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

// Run runs rounds until ctx ends. Under Relay it returns at once.
func (d *Driver) Run(ctx context.Context) {
	if !d.Enabled() {
		return
	}
	var queues sync.WaitGroup
	defer queues.Wait()
	start := func(q *peerQueue) { queues.Go(func() { q.run(ctx) }) }
	timer := time.NewTimer(0)
	defer timer.Stop()
	gather := &roundPackets{last: make(map[string]uint32)}
	var next time.Time // when the next round begins
	var r roundOutput
	var called bool // a frame was requested in this round
	call := func() {
		called = true
		d.RequestFrame()
	}
	for phase := phaseRest; ; {
		select {
		case <-ctx.Done():
			return
		case p := <-d.received:
			d.publish(d.applyPlaces(p.places))
			gather.last[p.peer] = RoundOf(time.Now().Add(clocksApart))
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
			r = d.step(d.Avatars(), RoundOf(next))
			phase = phaseStepped
			timer.Reset(time.Until(next))
		case phaseStepped: // the round begins
			d.sendOutput(&r, start)
			gather.round, called = RoundOf(next.Add(clocksApart/2)), false
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
func (d *Driver) sendOutput(r *roundOutput, start func(*peerQueue)) {
	d.renew(r)
	for peer, messages := range r.messages {
		if len(*messages) > 0 {
			d.send(peer, overlay.AppendPacket(nil, *messages), start)
		}
	}
	d.publish(r.steps)
	for _, a := range r.moved {
		a.UpdateRegion()
	}
	*r = roundOutput{}
}

// applyPlaces applies places sent by other gateways.
func (d *Driver) applyPlaces(places []overlay.Update) (steps []relocation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range places {
		steps = d.mu.remotes.applyUpdate(u, steps)
	}
	return steps
}

// publish shows sessions the moves of avatars.
func (d *Driver) publish(steps []relocation) {
	for _, delta := range deltasOf(steps) {
		d.Publish(*delta)
	}
}

// send queues a packet if the gateway can be reached. Run starts the queues.
func (d *Driver) send(peer string, packet []byte, start func(*peerQueue)) {
	if peer == d.Peer || len(packet) > maxPacket {
		return
	}
	q := d.queues[peer]
	if q == nil || !q.enqueue(packet) {
		maps.DeleteFunc(d.queues, func(_ string, q *peerQueue) bool { return q.ended() })
		q = newPeerQueue(peer, d.Streams, d.Logger, &d.metrics)
		d.queues[peer] = q
		q.enqueue(packet)
		start(q)
	}
}
