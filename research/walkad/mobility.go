package walkad

import (
	"container/heap"
	"math"
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/grid"
)

// Gait is a way of moving (§V).
type Gait struct {
	Name  string
	Speed float64 // m/s
}

// Gaits returns the paper's speeds.
func Gaits() []Gait { return []Gait{{"walk", 1}, {"run", 3}, {"fly", 10}, {"teleport", 100}} }

// question is an avatar's query: it has left one cell, and asks for the coordinators of another.
type question struct {
	by     peer
	second int
	from   cell
	target grid.ChunkPos
}

// roam moves an avatar by Random Waypoint without pauses within a region, and returns a query for each second after
// which it is in another cell than before (§V).
func (n *Network) roam(domain grid.Domain, speed float64, seconds int, rng *rand.Rand) (asked []question) {
	point := func() (x, z float64) { return rng.Float64() * RegionMetres, rng.Float64() * RegionMetres }
	x, z := point()
	toX, toZ := point()
	by := peer(rng.IntN(n.Nodes))
	at := n.world.leafAt(chunkAt(domain, x, z))
	for second := range seconds {
		for left := speed; left > 0; {
			d := math.Hypot(toX-x, toZ-z)
			if d > left {
				x, z = x+(toX-x)*left/d, z+(toZ-z)*left/d
				break
			}
			left -= d
			x, z = toX, toZ
			toX, toZ = point()
		}
		target := chunkAt(domain, x, z)
		if c := n.world.leafAt(target); c != at {
			asked = append(asked, question{by, second, at, target})
			at = c
		}
	}
	return asked
}

// Move moves avatars, divided equally over the regions, and returns the answers to their queries.
func (n *Network) Move(speed float64, avatars, seconds int, how Approach) []Answer {
	var answers []Answer
	for i := range avatars {
		for _, q := range n.roam(grid.Domain{X: int32(i % n.Regions)}, speed, seconds, n.avatar(i)) {
			switch how {
			case Walking:
				answers = append(answers, n.Walk(q.by, q.from, q.target))
			case SimpleApproach:
				answers = append(answers, n.Simple(q.by, q.target))
			case PlainKademlia:
				answers = append(answers, n.Plain(q.by, q.target))
			}
		}
	}
	return answers
}

// avatar returns the randomness of an avatar's movement.
func (n *Network) avatar(i int) *rand.Rand { return rand.New(rand.NewPCG(n.Seed, 1<<32+uint64(i))) }

// Loaded lets avatars walk at the same time, and returns the answers to their queries. A peer answers one question
// after the other, and each takes it so many milliseconds.
func (n *Network) Loaded(speed float64, avatars, seconds int, service float64) []Answer {
	var pending arrivals
	for i := range avatars {
		rng := n.avatar(i)
		phase := 1000 * rng.Float64() // avatars do not move in step
		for _, q := range n.roam(grid.Domain{X: int32(i % n.Regions)}, speed, seconds, rng) {
			began := 1000*float64(q.second) + phase
			pending = append(pending, &arrival{at: began, began: began, question: q})
		}
	}
	heap.Init(&pending)
	busy := make([]float64, n.Nodes) // until when
	var answers []Answer
	for len(pending) > 0 {
		e := pending[0]
		now := e.at
		if e.walk == nil {
			e.walk = n.newWalk(e.question.from, e.question.target)
		} else {
			busy[e.peer] = max(busy[e.peer], now) + service
			now = busy[e.peer] + n.roundTrip(e.question.by, e.peer)/2
			if e.walk.ask(e.peer) {
				e.answer.Millis = now - e.began
				answers = append(answers, e.answer)
				heap.Pop(&pending)
				continue
			}
		}
		var ok bool
		if e.peer, ok = e.walk.next(); !ok {
			e.answer.Failed = true
			answers = append(answers, e.answer)
			heap.Pop(&pending)
			continue
		}
		e.answer.Hops++
		e.answer.Asked++
		e.at = now + n.roundTrip(e.question.by, e.peer)/2
		heap.Fix(&pending, 0)
	}
	return answers
}

// arrival is a question on its way to a peer.
type arrival struct {
	at, began float64 // ms
	question  question
	walk      *walk // nil: not begun
	peer      peer
	answer    Answer
}

// arrivals is a heap, the earliest first.
type arrivals []*arrival

func (a arrivals) Len() int           { return len(a) }
func (a arrivals) Less(i, j int) bool { return a[i].at < a[j].at }
func (a arrivals) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)        { *a = append(*a, x.(*arrival)) }
func (a *arrivals) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
