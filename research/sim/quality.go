package sim

import (
	"math"
	"slices"
)

// knowledge holds for each pair of players the round of the newest update that the receiver's game has, plus 1; 0:
// none.
type knowledge struct {
	n    int
	last []int32 // receiver·n + origin
}

func newKnowledge(n int) knowledge { return knowledge{n: n, last: make([]int32, n*n)} }

// record stores an update and reports whether it was new.
func (k knowledge) record(receiver, origin, round int) bool {
	at := &k.last[receiver*k.n+origin]
	if *at > int32(round) {
		return false
	}
	*at = int32(round) + 1
	return true
}

// remove removes all entries by and about a player who left.
func (k knowledge) remove(player int) {
	clear(k.last[player*k.n : (player+1)*k.n])
	for i := range k.n {
		k.last[i*k.n+player] = 0
	}
}

// traffic counts the bytes of some machines in one round.
type traffic struct{ machines, out, in, mostOut, mostIn int }

func (t *traffic) add(out, in int) {
	t.machines++
	t.out += out
	t.in += in
	t.mostOut = max(t.mostOut, out)
	t.mostIn = max(t.mostIn, in)
}

// Round holds the measurements of one round. Bytes are those of the round, with headers.
type Round struct {
	PQ1       float64 // the mean of PQ(p) over the players p
	Most      float64 // the greatest PQ(p)
	Tenth     float64 // the 90th percentile of PQ(p)
	Neighbors float64 // players in vision range, mean
	Known     float64 // the share of pairs in vision range with any update
	Age       float64 // PositionAge, mean of all pairs in vision range
	Fresh     float64 // the share of these pairs with the lowest possible age

	Out, In         float64 // bytes a player, mean
	MostOut, MostIn int     // bytes of the player with the most

	ServersOut, ServersIn int // bytes of all servers together
}

// Result holds the measurements of a run: Rounds[0] is round 1.
type Result struct{ Rounds []Round }

// PQ returns the mean of PQ1 over the rounds from `from` to the last (pSense's overline PQ). from is at least 1.
func (r *Result) PQ(from int) float64 {
	return r.Mean(from, func(r Round) float64 { return r.PQ1 })
}

// PQ2 returns areacast's PQ2: the mean of PQ1 over the rounds 1 to round.
func (r *Result) PQ2(round int) float64 {
	sum := 0.0
	for _, m := range r.Rounds[:round] {
		sum += m.PQ1
	}
	return sum / float64(round)
}

// Mean returns the mean of a measure over the rounds from `from` to the last.
func (r *Result) Mean(from int, of func(Round) float64) float64 {
	sum := 0.0
	for _, m := range r.Rounds[from-1:] {
		sum += of(m)
	}
	return sum / float64(len(r.Rounds)-from+1)
}

// PositionQuality returns PQ(p, q) of two players at a distance, of whom one has an update of the other with this age.
// It is 1 outside the vision range.
func (r Ranges) PositionQuality(age int, dist float64) float64 {
	switch {
	case age <= 1 || dist >= r.Vision:
		return 1
	case dist <= r.Interaction:
		return float64(age)
	}
	return math.Pow(float64(age), 1-(dist-r.Interaction)/(r.Vision-r.Interaction))
}

// crowd holds the data for measuring a round.
type crowd struct {
	n      int // players
	ranges Ranges
	age    AgeRule
	bodies []Body
	here   []bool // in the game
	since  []int  // the round in which a player joined
	known  knowledge
}

// measure considers all pairs of players who were both in the game in the previous round: nobody can have an update of
// others. It does not measure traffic.
func (r *crowd) measure(round int) Round {
	vision2 := r.ranges.Vision * r.ranges.Vision
	sums, counts := make([]float64, r.n), make([]int, r.n)
	pairs, known, players, ages, fresh := 0, 0, 0, 0, 0
	for p := range r.n {
		if !r.here[p] {
			continue
		}
		players++
		if r.since[p] == round {
			continue
		}
		for q := p + 1; q < r.n; q++ {
			d2 := r.bodies[p].At.Dist2(r.bodies[q].At)
			if d2 > vision2 || !r.here[q] || r.since[q] == round {
				continue
			}
			d := math.Sqrt(d2)
			for _, pair := range [2][2]int{{p, q}, {q, p}} {
				last := r.known.last[pair[0]*r.n+pair[1]]
				age := r.age.age(round, last)
				sums[pair[0]] += r.ranges.PositionQuality(age, d)
				ages += age
				if age <= 1+r.age.Offset {
					fresh++
				}
				counts[pair[0]]++
				pairs++
				if last > 0 {
					known++
				}
			}
		}
	}
	m := Round{PQ1: 1, Most: 1, Tenth: 1, Known: 1, Age: 1, Fresh: 1}
	var of []float64
	for p, c := range counts {
		if c > 0 {
			of = append(of, sums[p]/float64(c))
		}
	}
	if len(of) == 0 {
		return m
	}
	slices.Sort(of)
	sum := 0.0
	for _, v := range of {
		sum += v
	}
	m.PQ1 = sum / float64(len(of))
	m.Most = of[len(of)-1]
	m.Tenth = of[min(len(of)*9/10, len(of)-1)]
	m.Neighbors = float64(pairs) / float64(max(players, 1))
	m.Known, m.Age, m.Fresh = float64(known)/float64(pairs), float64(ages)/float64(pairs), float64(fresh)/float64(pairs)
	return m
}

// bytes adds the traffic.
func (m *Round) bytes(players, servers traffic) {
	m.Out, m.In = float64(players.out)/float64(max(players.machines, 1)), float64(players.in)/float64(max(players.machines, 1))
	m.MostOut, m.MostIn, m.ServersOut, m.ServersIn = players.mostOut, players.mostIn, servers.out, servers.in
}

// age returns the PositionAge in a round; last is an entry of knowledge.
func (a AgeRule) age(round int, last int32) int {
	if last == 0 {
		if a.Never > 0 {
			return a.Never
		}
		return round
	}
	age := round - int(last-1) + a.Offset
	if a.Never > 0 {
		age = min(age, a.Never)
	}
	return age
}
