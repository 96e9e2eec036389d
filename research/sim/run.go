package sim

import (
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/overlay"
)

// run is one simulation.
type run struct {
	crowd
	cfg      Config
	machines []overlay.Machine // players, then servers; nil: not in the game
	inboxes  [2][][]overlay.Message
	in       []int // incoming bytes of this round, by machine
	out      overlay.Output
	join     *rand.Rand
	welcome  int // bytes of this round's introductions to joining players
	result   *Result
}

// Run simulates the rounds and measures them.
func Run(cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := cfg.Movement.Players()
	r := &run{
		cfg: cfg,
		crowd: crowd{
			n: n, ranges: cfg.Ranges, age: cfg.Age, bodies: make([]Body, n), here: make([]bool, n), since: make([]int, n), known: newKnowledge(n),
		},
		machines: make([]overlay.Machine, n+len(cfg.Servers)),
		in:       make([]int, n+len(cfg.Servers)),
		join:     rand.New(rand.NewPCG(cfg.Seed, 0x6a6f696e)),
		result:   &Result{},
	}
	for i := range r.inboxes {
		r.inboxes[i] = make([][]overlay.Message, len(r.machines))
	}
	copy(r.machines[n:], cfg.Servers)
	for round := 0; round <= cfg.Rounds; round++ {
		cfg.Movement.Move(round, r.bodies)
		r.comeAndGo(round)
		r.round(round)
	}
	return r.result, nil
}

// comeAndGo adds joining players, and removes those who left: silently, as in the papers.
func (r *run) comeAndGo(round int) {
	var here, joined []overlay.Update
	for i, b := range r.bodies {
		switch {
		case !b.Here:
			if r.machines[i] != nil {
				r.machines[i], r.here[i] = nil, false
				r.known.remove(i)
			}
		case r.machines[i] != nil:
			here = append(here, r.self(i, round))
		default:
			id := overlay.ID(i)
			r.machines[i] = r.cfg.Machine(id, rand.New(rand.NewPCG(r.cfg.Seed, uint64(i)<<20|uint64(round))))
			r.here[i], r.since[i] = true, round
			joined = append(joined, r.self(i, round))
		}
	}
	if r.cfg.Introduce != nil {
		here = append(here, joined...)
		for _, u := range joined {
			contacts, bytes := r.cfg.Introduce(u, here)
			r.machines[u.Origin].Introduce(contacts)
			r.in[u.Origin] += bytes
			r.welcome += bytes
		}
		return
	}
	// Players who join in the same round join one after another.
	for _, u := range joined {
		contacts := make([]overlay.Update, 0, 1)
		for range min(max(r.cfg.Contacts, 1), len(here)) {
			contacts = append(contacts, here[r.join.IntN(len(here))])
		}
		r.machines[u.Origin].Introduce(contacts)
		here = append(here, u)
	}
}

func (r *run) self(i, round int) overlay.Update {
	return overlay.Update{Origin: overlay.ID(i), Round: uint32(round), At: r.bodies[i].At, Velocity: r.bodies[i].Velocity}
}

// index returns the index of a machine in run's slices, or -1.
func (r *run) index(id overlay.ID) int {
	i := int(id)
	if id.Server() {
		i = r.n + int(id-overlay.FirstServer)
	} else if i >= r.n {
		return -1
	}
	if i >= len(r.machines) {
		return -1
	}
	return i
}

func (r *run) round(round int) {
	inboxes, next := r.inboxes[round%2], r.inboxes[(round+1)%2]
	var players, servers traffic
	nextIn := make([]int, len(r.machines))
	for i, m := range r.machines {
		if m == nil {
			clear(inboxes[i])
			inboxes[i] = inboxes[i][:0]
			continue
		}
		in := overlay.Input{Round: uint32(round), Inbox: inboxes[i]}
		if i < r.n {
			in.At, in.Velocity = r.bodies[i].At, r.bodies[i].Velocity
		}
		r.out.Reset()
		m.Step(&in, &r.out)
		clear(inboxes[i])
		inboxes[i] = inboxes[i][:0]

		if i < r.n {
			r.recordLearned(round, i)
		}
		out := 0
		if i == r.n {
			out += r.welcome
		}
		for _, msg := range r.out.Messages {
			out += msg.Bytes
			r.post(msg, next, nextIn)
		}
		if r.cfg.Log != nil {
			r.cfg.Log.Traffic(round, m.ID(), out, r.in[i])
		}
		if i < r.n {
			players.add(out, r.in[i])
		} else {
			servers.add(out, r.in[i])
		}
	}
	r.in, r.welcome = nextIn, 0
	if round > 0 {
		m := r.measure(round)
		m.bytes(players, servers)
		r.result.Rounds = append(r.result.Rounds, m)
	}
}

func (r *run) recordLearned(round, receiver int) {
	for _, u := range r.out.Learned {
		origin := int(u.Origin)
		if origin >= r.n || origin == receiver || !r.known.record(receiver, origin, int(u.Round)) {
			continue
		}
		if r.cfg.Log != nil {
			r.cfg.Log.Delivered(round, overlay.ID(receiver), u.Origin, int(u.Round))
		}
	}
}

// post queues a message for the next round.
func (r *run) post(m overlay.Message, next [][]overlay.Message, nextIn []int) {
	to := r.index(m.To)
	if to < 0 || r.machines[to] == nil {
		return
	}
	next[to] = append(next[to], m)
	nextIn[to] += m.Bytes
}
