package membership

// State is the state of a region.
type State uint8

// The states of a region. Unknown means that too few members have been asked yet.
const (
	Unknown State = iota
	Healthy
	UnderReplicated // it works, with fewer live members than it should have
	NoQuorum        // the majority of its members does not answer: nothing can be changed there
	Quarantined     // it failed repeatedly and is read-only
	states
)

var stateNames = [states]string{"unknown", "healthy", "under_replicated", "no_quorum", "quarantined"}

func (s State) String() string { return stateNames[s] }

// States lists all states, the one to wish for first and the unknown last.
var States = []State{Healthy, UnderReplicated, NoQuorum, Quarantined, Unknown}

// Liveness is what is known of a node.
type Liveness uint8

// The kinds of liveness.
const (
	NotAsked Liveness = iota // it has not been asked yet
	Alive
	Leaving // it announced that it stops, and has stopped: it is expected back and is not missed yet
	Silent  // it does not answer
)

// Limits say how many members a region should have.
type Limits struct {
	Copies int // as configured
	Nodes  int // number of nodes in the world: a region cannot have more members
}

// Want returns how many of a region's voters should be alive: as many as there can be, and so many that it can lose
// one. A voter that is gone counts as missing, also where no node is there to take its place: of four voters all are
// needed for that, of five four. If less than three copies are wanted, it need not be able to lose one.
func (l Limits) Want(voters int) int {
	want := min(l.Copies, l.Nodes)
	if l.Copies >= 3 && voters >= 3 {
		want = max(want, voters/2+2)
	}
	return want
}

// Assess returns the state of a region with these members.
func Assess(members []Member, liveness func(peer string) Liveness, quarantined bool, l Limits) State {
	if quarantined {
		return Quarantined
	}
	voters, count := 0, [Silent + 1]int{}
	for _, m := range members {
		if !m.Learner {
			voters++
			count[liveness(m.Peer)]++
		}
	}
	want := l.Want(voters)
	switch alive, unclear := count[Alive], count[NotAsked]; {
	case voters == 0:
		return Unknown
	case 2*(alive+unclear) <= voters:
		return NoQuorum
	case 2*alive <= voters:
		return Unknown
	case alive+count[Leaving] >= want:
		return Healthy
	case alive+count[Leaving]+unclear >= want:
		return Unknown
	default:
		return UnderReplicated
	}
}

// Counts are numbers of regions by state.
type Counts [states]int

// Total returns the number of regions.
func (c Counts) Total() int {
	n := 0
	for _, each := range c {
		n += each
	}
	return n
}

// Named returns the counts by the names of the states.
func (c Counts) Named() map[string]int {
	named := make(map[string]int, len(c))
	for s, n := range c {
		named[State(s).String()] = n //nolint:gosec // an index of an array of five
	}
	return named
}
