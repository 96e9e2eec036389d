package balance

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/region/membership"
)

func TestDecide(t *testing.T) {
	node := func(busy float64) Node { return Node{Capacity: 1, Busy: busy} }
	nodes := func(busy ...float64) map[string]Node {
		all := make(map[string]Node)
		for i, b := range busy {
			all[string(rune('b'+i))] = node(b)
		}
		return all
	}
	for _, c := range []struct {
		name    string
		self    Node
		regions []Region
		want    Move
	}{
		{"not busy", node(0.6), []Region{{ID: 1, Load: 0.2, Members: nodes(0)}}, Move{}},
		{"to the member", node(0.7), []Region{{ID: 1, Load: 0.2, Members: nodes(0)}}, Move{Lead, 1, 0.2, "b", ""}},
		{"to the less busy one", node(0.7), []Region{{ID: 1, Load: 0.2, Members: nodes(0.2, 0.1)}}, Move{Lead, 1, 0.2, "c", ""}},
		{"nobody is much less busy", node(0.7), []Region{{ID: 1, Load: 0.1, Members: nodes(0.4, 0.36)}}, Move{}},
		{"all are far too busy", node(2), []Region{{ID: 1, Load: 0.3, Members: nodes(0.9)}}, Move{Lead, 1, 0.3, "b", ""}},
		{"it would swap the roles", node(0.9), []Region{{ID: 1, Load: 0.8, Members: nodes(0.1)}}, Move{}},
		{"one region is too much, the other is not", node(0.9), []Region{{ID: 1, Load: 0.8, Members: nodes(0.1)}, {ID: 2, Load: 0.05, Members: nodes(0.1)}}, Move{Lead, 2, 0.05, "b", ""}},
		{"not worth the while", node(0.9), []Region{{ID: 1, Load: 0.004, Members: nodes(0.1)}}, Move{}},
		{
			"the edge first", node(0.9),
			[]Region{{ID: 1, Load: 0.2, Members: nodes(0.1), Beside: map[string]int{"": 3}}, {ID: 2, Load: 0.1, Members: nodes(0.1), Beside: map[string]int{"": 1, "b": 2}}},
			Move{Lead, 2, 0.1, "b", ""},
		},
		{"a machine with more cores", Node{4, 3}, []Region{{ID: 1, Load: 0.5, Members: map[string]Node{"b": node(0.2), "c": {4, 0.4}}}}, Move{Lead, 1, 0.5, "c", ""}},
		{
			"all members are busy", node(0.9),
			[]Region{{ID: 1, Load: 0.2, Members: nodes(0.5, 0.8), Spares: map[string]Node{"x": node(0.1)}}},
			Move{Replace, 1, 0.2, "x", "c"},
		},
		{"a member comes before a spare", node(0.9), []Region{{ID: 1, Load: 0.2, Members: nodes(0.4), Spares: map[string]Node{"x": node(0)}}}, Move{Lead, 1, 0.2, "b", ""}},
	} {
		if got := Decide(c.self, c.regions); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestPace(t *testing.T) {
	var p Pace
	now := time.Now()
	move := func(id uint64, busy float64) {
		t.Helper()
		if !p.Ready(busy, now) {
			t.Fatalf("not ready for region %d", id)
		}
		p.Moved(Move{Kind: Lead, Region: id, Load: 0.1}, busy, now)
	}
	wait := func(d time.Duration) { now = now.Add(d) }
	for id := range uint64(seriesMoves) {
		move(id, 0.9)
		if p.Ready(0.9, now) {
			t.Fatal("two moves at once")
		}
		wait(movePause)
	}
	if p.Ready(0.9, now) {
		t.Fatal("the series does not end")
	}
	wait(Settled)
	if p.Ready(0.9, now) { // it did not help
		t.Fatal("no pause after moves that did not help")
	}
	wait(Settled)
	move(7, 0.9)
	wait(Settled)
	if p.Ready(0.9, now) {
		t.Fatal("no pause after a move that did not help")
	}
	wait(Settled)
	if p.Ready(0.9, now) {
		t.Fatal("the pause has not become longer")
	}
	wait(Settled)
	move(8, 0.9)
	wait(Settled)
	if !p.Ready(0.7, now) {
		t.Fatal("a pause after a move that helped")
	}
	for range 3 { // region 8 comes back each time
		at := now
		for !p.MayShed(8, now) {
			wait(time.Second)
		}
		p.Moved(Move{Kind: Lead, Region: 8, Load: 0.1}, 0.7, now)
		t.Log("region 8 again after", now.Sub(at))
	}
	if wait(6 * time.Minute); p.MayShed(8, now) {
		t.Fatal("the region's pause has not become longer")
	}
	if wait(2 * time.Minute); !p.MayShed(8, now) {
		t.Fatal("the region's pause does not end")
	}
}

func TestRecent(t *testing.T) {
	var r Recent
	now := time.Now()
	r.Add("a", "b", 0.2, now)
	for _, c := range []struct {
		peer  string
		after time.Duration
		want  float64
	}{
		{"a", -time.Second, 0.3}, {"b", -time.Second, 0.7}, {"b", 0, 0.7}, {"b", Smoothing, 0.5 + 0.2/math.E}, {"c", 0, 0.5},
	} {
		got := r.Adjust(Node{1, 0.5}, c.peer, now.Add(c.after))
		if math.Abs(got.Busy-c.want) > 1e-9 {
			t.Errorf("%s after %v: %.3f, want %.3f", c.peer, c.after, got.Busy, c.want)
		}
	}
}

// world simulates nodes as package placement runs them: loads are averages, which others know some seconds late; a leader sheds, or
// returns a region to a nearer member that has room.
type world struct {
	rng     *rand.Rand
	now     time.Time
	nodes   []*simulated
	regions []*land
	moves   int
	returns int
}

type simulated struct {
	capacity, base, busy float64 // base is the load of its own sessions
	pace                 Pace
	recent               Recent
	known                []report // of every node, as this one knows it
}

type report struct {
	n  Node
	at time.Time
}

type land struct {
	load    float64
	nearest []int // nodes
	members []int
	leader  int
	since   time.Time
}

const (
	copies  = 3
	round   = 2 * time.Second
	askedIn = 4                // rounds between two reports of a node to another
	leadFor = 10 * time.Second // before leadership returns
)

func name(i int) string { return string(rune('A' + i)) }

func number(name string) int { return int(name[0] - 'A') }

func (w *world) actual(i int) float64 {
	sum := w.nodes[i].base
	for _, r := range w.regions {
		if r.leader == i {
			sum += r.load
		}
	}
	return sum
}

func (w *world) worst() (highest, mean float64) {
	for i, n := range w.nodes {
		share := w.actual(i) / n.capacity
		highest, mean = max(highest, share), mean+share/float64(len(w.nodes))
	}
	return highest, mean
}

func (w *world) seen(by, of int) Node {
	n := w.nodes[by]
	if by == of {
		return n.recent.Adjust(Node{n.capacity, n.busy}, name(of), w.now)
	}
	return n.recent.Adjust(n.known[of].n, name(of), n.known[of].at)
}

// step is a round of all supervisors.
func (w *world) step(roundNo int) {
	w.now = w.now.Add(round)
	weight := 1 - math.Exp(-round.Seconds()/Smoothing.Seconds())
	for i, n := range w.nodes {
		noise := 1 + 0.1*(w.rng.Float64()-0.5)
		n.busy += weight * (w.actual(i)*noise - n.busy)
		for j := range w.nodes {
			if (roundNo+i+3*j)%askedIn == 0 {
				n.known[j] = report{Node{w.nodes[j].capacity, w.nodes[j].busy}, w.now}
			}
		}
	}
	for _, i := range w.rng.Perm(len(w.nodes)) {
		w.shed(i)
		for _, r := range w.regions {
			if r.leader == i {
				w.settle(i, r)
			}
		}
	}
}

func (w *world) shed(i int) {
	n, self := w.nodes[i], w.seen(i, i)
	if self.Share() <= Hot || !n.pace.Ready(self.Busy, w.now) {
		return
	}
	var led []Region
	for id, r := range w.regions {
		if r.leader != i || w.now.Sub(r.since) < Settled || !n.pace.MayShed(uint64(id), w.now) {
			continue
		}
		each := Region{ID: uint64(id), Load: r.load, Members: map[string]Node{}, Spares: map[string]Node{}}
		for _, m := range r.members {
			if m != i {
				each.Members[name(m)] = w.seen(i, m)
			}
		}
		for _, m := range r.nearest[:min(copies+Spare, len(r.nearest))] {
			if _, is := each.Members[name(m)]; !is && m != i && w.seen(i, m).HasRoom(r.load) {
				each.Spares[name(m)] = w.seen(i, m)
				break
			}
		}
		led = append(led, each)
	}
	move := Decide(self, led)
	if move.Kind == None {
		return
	}
	r := w.regions[move.Region]
	n.pace.Moved(move, self.Busy, w.now)
	w.moves++
	if move.Kind == Lead {
		w.lead(r, move.To, move.Load)
		return
	}
	w.members(r, i, move.Out)
	w.lead(r, move.To, move.Load)
}

func (w *world) lead(r *land, to string, load float64) {
	w.nodes[r.leader].recent.Add(name(r.leader), to, load, w.now)
	r.leader, r.since = number(to), w.now
}

// measured returns the region's load as its leader knows it.
func (w *world) measured(r *land) float64 {
	return r.load * (1 - math.Exp(-w.now.Sub(r.since).Seconds()/Smoothing.Seconds()))
}

// members makes the members those that they should be, without one that is replaced.
func (w *world) members(r *land, by int, out string) (changed bool) {
	var nearest []string
	for _, m := range r.nearest {
		nearest = append(nearest, name(m))
	}
	is := make(map[string]bool)
	for _, m := range r.members {
		is[name(m)] = true
	}
	var next []int
	for _, peer := range membership.Preferred(nearest, copies, Spare, func(peer string) bool {
		return peer != out && (is[peer] || w.seen(by, number(peer)).HasRoom(w.measured(r)))
	})[:copies] {
		next, changed = append(next, number(peer)), changed || !is[peer]
	}
	r.members = next
	return changed
}

// settle takes the supervisor's other step: the members that should be, and the nearest leader that has room.
func (w *world) settle(i int, r *land) {
	if w.now.Sub(r.since) >= Settled && w.members(r, i, "") {
		w.returns++
	}
	for _, m := range r.members {
		if m == i {
			return
		}
		if w.now.Sub(r.since) >= leadFor && w.seen(i, m).HasRoom(w.measured(r)) {
			w.lead(r, name(m), r.load)
			w.returns++
			return
		}
	}
}

func newWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{rng: rng, now: time.Unix(0, 0)}
	count := 4 + rng.IntN(12)
	for range count {
		capacity := []float64{0.5, 1, 1, 2, 4}[rng.IntN(5)]
		n := &simulated{capacity: capacity, base: capacity * 0.2 * rng.Float64(), known: make([]report, count)}
		for j := range n.known {
			n.known[j].n = Node{Capacity: 1}
		}
		w.nodes = append(w.nodes, n)
	}
	for range 5 + rng.IntN(60) {
		order := rng.Perm(count)
		if rng.IntN(2) == 0 { // keys near to each other
			order = append([]int{0}, rng.Perm(count-1)...)
			for i := 1; i < count; i++ {
				order[i]++
			}
		}
		// Most regions are quiet, some are not.
		load := 0.002 * rng.Float64()
		if rng.IntN(3) == 0 {
			load = 0.3 * rng.Float64()
		}
		w.regions = append(w.regions, &land{load: load, nearest: order, members: order[:copies], leader: order[0]})
	}
	return w
}

// For random nodes and loads the moves come to rest, are few, and leave no node busier than the busiest one was.
func TestLoadsComeToRest(t *testing.T) {
	helped, skewed := 0, 0
	var ratioBefore, ratioAfter, moves float64
	for seed := range uint64(60) {
		w := newWorld(seed)
		before, meanBefore := w.worst()
		for k := range 300 { // ten minutes
			w.step(k)
		}
		soon, hot := w.moves+w.returns, before > Hot
		middle, _ := w.worst()
		for k := range 900 { // half an hour
			w.step(k)
		}
		after, mean := w.worst()
		late := w.moves + w.returns - soon
		if after > before+1e-9 {
			t.Errorf("seed %d: the busiest node uses %.2f of its capacity, before %.2f", seed, after, before)
		}
		if late > 6 {
			t.Errorf("seed %d: %d moves and %d returns of %d regions, %d of them later than 10 min (busiest %.2f, then %.2f, then %.2f, mean %.2f)",
				seed, w.moves, w.returns, len(w.regions), late, before, middle, after, mean)
		}
		if most := 3*len(w.regions) + 10; w.moves+w.returns > most {
			t.Errorf("seed %d: %d moves and %d returns of %d regions", seed, w.moves, w.returns, len(w.regions))
		}
		if !hot && w.moves > 3 {
			t.Errorf("seed %d: %d moves, and nobody is busy", seed, w.moves)
		}
		if hot {
			ratioBefore, ratioAfter, moves = ratioBefore+before/meanBefore, ratioAfter+after/mean, moves+float64(w.moves+w.returns)
			if skewed++; after < 0.9*before {
				helped++
			}
		}
	}
	n := float64(skewed)
	t.Logf("%d of %d worlds with a busy node: the busiest one became less busy; it had %.1f times the mean load, then %.1f, after %.1f moves",
		helped, skewed, ratioBefore/n, ratioAfter/n, moves/n)
	if helped*10 < skewed*7 {
		t.Errorf("of %d worlds with a busy node only %d became better", skewed, helped)
	}
}

// After a crowd has gone, regions return to the nodes nearest to their keys.
func TestRegionsReturn(t *testing.T) {
	w := newWorld(3)
	for _, n := range w.nodes {
		n.capacity, n.base = 1, 0.05
	}
	for i, r := range w.regions {
		r.load, r.nearest = 0.1, append([]int{0, 1, 2, 3}, r.nearest[:0]...)
		r.members, r.leader = []int{0, 1, 2}, 0
		if i >= 12 {
			r.load = 0
		}
	}
	for k := range 60 { // two minutes
		w.step(k)
	}
	if worst, _ := w.worst(); worst > 0.8 {
		t.Fatalf("the busiest node uses %.2f of its capacity", worst)
	}
	for _, r := range w.regions {
		r.load /= 100
	}
	for k := range 120 {
		w.step(k)
	}
	for i, r := range w.regions {
		if r.leader != 0 || r.members[0] != 0 || r.members[1] != 1 || r.members[2] != 2 {
			t.Errorf("region %d is led by %d of %v", i, r.leader, r.members)
		}
	}
}
