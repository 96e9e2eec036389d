package replica_test

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
)

// networkFaults is the state of the network between all nodes.
type networkFaults struct {
	cut    map[[2]int]bool // from, to: nothing comes through
	loss   float64
	double float64
	slow   time.Duration // the longest delay; messages overtake each other
}

func (w *networkFaults) clear() {
	*w = networkFaults{cut: make(map[[2]int]bool), slow: 4 * time.Millisecond}
}

// ship makes f run on another node after a while, or never, or twice.
func (s *sim) ship(from, to *machine, do func()) {
	if s.network.cut[[2]int{from.number, to.number}] || from != to && s.chance(s.network.loss) {
		return
	}
	copies := 1
	if from != to && s.chance(s.network.double) {
		copies = 2
	}
	for range copies {
		at := from.clock()
		if from != to {
			at += s.between(500*time.Microsecond, s.network.slow)
			if s.chance(0.02) {
				at += s.between(0, 20*s.network.slow)
			}
		}
		s.at(at, func() {
			if !s.network.cut[[2]int{from.number, to.number}] {
				to.enqueue(do)
			}
		})
	}
}

// carry is Options.Send.
func (n *machine) carry(peer string, group uint64, message []byte) {
	to := n.sim.peers[peer]
	if to == nil {
		n.sim.fail("%s sends to %q, which is not a node", n.peer, peer)
		return
	}
	life := n.life
	n.sim.ship(n, to, func() {
		if to.admits(n, life) {
			to.receive(n, group, message)
		}
	})
}

// receive does the same as package region's receiver.
func (n *machine) receive(from *machine, group uint64, message []byte) {
	n.sim.note(note{who: n.peer, what: "from " + from.peer, a: group, data: message})
	err := n.host.Receive(from.peer, group, message)
	switch {
	case errors.Is(err, replica.ErrNotOpen):
		n.openAndDeliver(group, func() { _ = n.host.Receive(from.peer, group, message) }) // refused ones are lost
	case errors.Is(err, replica.ErrNotMember):
		n.trustMembers(group)
	}
}

var errLost = errors.New("simulated stream broke")

// stream is Options.SendSnapshot.
func (n *machine) stream(peer string, group uint64, write func(io.Writer) error, done func(error)) {
	s, to, life := n.sim, n.sim.peers[peer], n.life
	s.count("snapshots sent")
	answer := func(err error) {
		if n.host != nil && n.life == life {
			n.enqueue(func() { done(err) })
		}
	}
	s.at(n.clock()+s.between(0, 50*time.Millisecond), func() { // the goroutine of the carrier
		if n.host == nil || n.life != life {
			return
		}
		var b bytes.Buffer
		if err := write(&b); err != nil {
			answer(err)
			return
		}
		if s.chance(s.network.loss) {
			s.at(s.now+s.between(0, time.Second), func() { answer(errLost) })
			return
		}
		s.at(s.now+10*time.Second, func() { answer(errLost) }) // done counts once
		s.ship(n, to, func() {
			if !to.admits(n, life) {
				return
			}
			s.note(note{who: to.peer, what: "snapshot", a: group, b: uint64(b.Len())})
			if !s.calm && s.chance(0.05) { // the stream ends while the snapshot is being installed
				to.crashPoint = []crashPoint{crashBefore, crashAfter}[s.random.IntN(2)]
			}
			to.host.PostSnapshot(n.peer, group, bytes.NewReader(b.Bytes()), func(err error) {
				s.ship(to, n, func() { answer(err) })
			})
		})
	})
}

func describe(message []byte) string { return replica.Describe(message) }
