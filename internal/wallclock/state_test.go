package wallclock

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const day = 24 * time.Hour

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// network is some nodes that tell each other their time every minute. All began at once.
type network struct {
	gone  time.Duration
	ahead []time.Duration // of the machines' clocks
	up    []bool
	nodes []*state
}

func newNetwork(ahead ...time.Duration) *network {
	n := &network{ahead: ahead}
	for _, a := range ahead {
		s := newState(began.Add(a), time.Time{})
		n.nodes, n.up = append(n.nodes, &s), append(n.up, true)
	}
	return n
}

func (n *network) run(d time.Duration) {
	for until := n.gone + d; n.gone < until; n.gone += time.Minute {
		for i, s := range n.nodes {
			var others []Reading
			for j, o := range n.nodes {
				if i != j && n.up[i] && n.up[j] {
					others = append(others, o.vote(n.gone))
				}
			}
			s.consider(n.gone, began.Add(n.gone+n.ahead[i]), others)
		}
	}
}

// check compares the nodes' clocks with the true time.
func (n *network) check(t rapid.TB, what string, want ...time.Duration) {
	t.Helper()
	for i, s := range n.nodes {
		if got := s.origin.Sub(began); (got - want[i]).Abs() > apart {
			t.Errorf("%s: the clock of node %d is %v ahead, want %v", what, i, got, want[i])
		}
	}
}

func (n *network) settled() (count int) {
	for _, s := range n.nodes {
		if s.settled(n.gone) {
			count++
		}
	}
	return count
}

// Steps of any machines that are taken back within ten minutes change no clock, and nothing that is too young can be
// deleted.
func TestStepsChangeNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := newNetwork(make([]time.Duration, rapid.IntRange(1, 5).Draw(t, "nodes"))...)
		n.run(25 * time.Hour)
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			for i := range n.ahead {
				n.ahead[i] = time.Duration(rapid.IntRange(-400*24, 400*24).Draw(t, "hours")) * time.Hour
			}
			n.run(time.Duration(rapid.IntRange(1, 9).Draw(t, "minutes")) * time.Minute)
			n.check(t, "while stepped", make([]time.Duration, len(n.ahead))...)
			clear(n.ahead)
			n.run(2 * time.Minute)
		}
		n.run(2 * time.Hour)
		n.check(t, "later", make([]time.Duration, len(n.ahead))...)
	})
}

// Nodes agree on the time of most, and a node that starts takes that of the others at once.
func TestMostDecide(t *testing.T) {
	t.Parallel()
	n := newNetwork(0, day, -day)
	n.run(2 * time.Minute)
	n.check(t, "after the start", 0, 0, 0)
	n.run(3 * day)
	n.check(t, "later", 0, 0, 0)

	for _, size := range []int{2, 3, 5} {
		n = newNetwork(make([]time.Duration, size)...)
		n.run(2 * day)
		s := newState(began.Add(400*day), time.Time{})
		s.even, s.since, s.heard = n.gone, n.gone, n.gone-evenly // it starts now
		*n.nodes[0], n.ahead[0] = s, 400*day
		n.run(2 * time.Minute)
		n.check(t, "a node that starts", make([]time.Duration, size)...)
		if want := max(size-1, n.settled()); size > 2 && want != size {
			t.Errorf("%d of %d nodes may delete", n.settled(), size)
		}
		if size == 2 && n.settled() != 1 {
			t.Error("a node may delete on one other node's word")
		}
		n.up[0] = false
		n.run(30 * time.Minute)
		n.up[0] = true
		n.run(3 * day)
		n.check(t, "a node whose machine stays wrong", make([]time.Duration, size)...)
	}
}

// Alone, or if all machines agree for over ten minutes, their clocks count. Then nothing is deleted for a day.
func TestMachinesCountAgain(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 4, 5} {
		n := newNetwork(make([]time.Duration, size)...)
		n.run(23 * time.Hour)
		if n.settled() > 0 {
			t.Errorf("%d nodes: a node may delete before a day has passed", size)
		}
		n.run(2 * time.Hour)
		if n.settled() != size {
			t.Errorf("%d nodes: %d may delete after a day", size, n.settled())
		}
		want := make([]time.Duration, size)
		for i := range n.ahead {
			n.ahead[i], want[i] = 40*day, 40*day
			n.run(10 * time.Minute) // not all at once
		}
		n.run(2 * time.Hour)
		n.check(t, "after a step that stays", want...)
		if n.settled() > 0 {
			t.Errorf("%d nodes: %d may delete after a step", size, n.settled())
		}
		n.run(20 * time.Hour)
		if n.settled() > 0 {
			t.Errorf("%d nodes: %d may delete too early", size, n.settled())
		}
		n.run(day)
		if n.settled() != size {
			t.Errorf("%d nodes: only %d may delete in the end", size, n.settled())
		}
	}
}

// If no majority says otherwise, the nodes of a world agree on the time of the one that has run longest.
func TestTheOlderCounts(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{day, -day} {
		n := newNetwork(0, ahead)
		n.gone = time.Hour
		s := newState(began.Add(ahead), time.Time{})
		s.even, s.since, s.heard = n.gone, n.gone, n.gone-evenly // the second one starts now
		*n.nodes[1] = s
		n.run(30 * time.Minute)
		n.check(t, "two nodes", 0, 0)
	}
	n := newNetwork(0, day)
	n.run(2 * time.Minute)
	n.check(t, "two nodes that begin together", 0, 0)
	n = newNetwork(0, 0, day, day)
	n.run(2 * time.Minute)
	n.check(t, "four nodes that begin together", 0, 0, 0, 0)
}

// A node begins with the newest time that it has stored if its machine's clock is behind that. A stored time from the
// future is put right by others at once, and without others when the machine's clock has gone evenly for ten minutes.
func TestStoredTime(t *testing.T) {
	t.Parallel()
	const dead = -20 * 365 * day // a machine without a battery
	stored := func(machine time.Duration, stored ...time.Duration) *network {
		n := newNetwork()
		for _, a := range stored {
			s := newState(began.Add(machine), began.Add(a))
			n.ahead, n.nodes, n.up = append(n.ahead, machine), append(n.nodes, &s), append(n.up, true)
		}
		return n
	}
	for _, c := range []struct {
		what   string
		stored []time.Duration
		soon   time.Duration
	}{
		{"a lone node", []time.Duration{-time.Hour}, -time.Hour},
		{"two that start together", []time.Duration{-time.Hour, -time.Hour - time.Minute}, -time.Hour - time.Minute},
		{"three that start together", []time.Duration{-time.Hour, -time.Minute, -day}, -time.Hour},
	} {
		soon, right := make([]time.Duration, len(c.stored)), make([]time.Duration, len(c.stored))
		n := stored(dead, c.stored...)
		n.run(5 * time.Minute)
		for i := range soon {
			soon[i] = c.soon
		}
		n.check(t, c.what, soon...)
		clear(n.ahead) // the machines ask a time server
		n.run(5 * time.Minute)
		n.check(t, c.what+" with a clock that was set just now", soon...)
		n.run(7 * time.Minute)
		n.check(t, c.what+" with a clock that was set right", right...)
	}
	n := stored(0, -day)
	n.run(time.Minute)
	n.check(t, "a node that was off for a day", 0)

	n = stored(0, 400*day)
	n.run(9 * time.Minute)
	n.check(t, "a lone node that has stored a time from the future", 400*day)
	n.run(2 * time.Minute)
	n.check(t, "later", 0)
	if n.run(23 * time.Hour); n.settled() > 0 {
		t.Error("a node may delete by a time that was from the future within the day")
	}
	n = stored(0, 0, 400*day, 0)
	n.run(2 * time.Minute)
	n.check(t, "a node with two others", 0, 0, 0)
	n = stored(0, 0, 400*day)
	n.run(2 * time.Minute)
	n.check(t, "a node with one other", 0, 0)
}
