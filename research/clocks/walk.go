package clocks

import (
	"fmt"
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/vclock"
)

// Result holds the measurements of a walk.
type Result struct {
	Config   Config // with its defaults
	Events   int    // done by all players
	Hearing  int    // how many times a player received an event
	Sizes    []Size // over time, the last at the end of the walk
	Received Judged // all pairs of events received by one player
	Facing   Judged // those of them whose authors had each other in vision at the time of the later event
}

// Size is the size of the clocks after a round, as a mean over all players, and the largest. Sparse clocks are those of
// §2, which are never pruned.
type Size struct {
	Round                           int
	Vision, Pruned, Sparse          float64 // players in vision, including the player; entries
	MaxVision, MaxPruned, MaxSparse int
	PrunedBytes, SparseBytes        float64 // encoded, with IDs of 16 bytes
}

// player is one player with both kinds of clock.
type player struct {
	owner *vclock.Owner
	whole []uint32
}

func (p *player) act(i int) *event {
	p.whole[i]++
	return &event{stamp: p.owner.Act(), author: i, number: p.whole[i], whole: append([]uint32(nil), p.whole...)}
}

func (p *player) receive(e *event, relevant vclock.Relevant) {
	p.owner.Merge(e.stamp, relevant)
	for i, n := range e.whole {
		p.whole[i] = max(p.whole[i], n)
	}
}

// Walk runs a walk. The error is Config.Validate's.
func Walk(cfg Config) (Result, error) {
	if err := cfg.Validate(); err != nil {
		return Result{}, fmt.Errorf("walk: %w", err)
	}
	cfg = cfg.withDefaults()
	rng := rand.New(rand.NewPCG(cfg.Seed, 2009))
	land := newCrowd(cfg, rng)
	players := make([]*player, cfg.Players)
	for i := range players {
		players[i] = &player{owner: vclock.NewOwner(idOf(i), 0), whole: make([]uint32, cfg.Players)}
		if cfg.Limit > 0 {
			players[i].owner.Limit(cfg.Limit)
		}
	}
	eval := newEvaluator(cfg, rng)
	for _, i := range rng.Perm(cfg.Players)[:cfg.Observers] {
		eval.observers[i] = &observer{history: vclock.NewHistory(cfg.History)}
	}
	res := Result{Config: cfg}
	inbox := make([][]*event, cfg.Players) // received in the next round
	for round := 1; round <= cfg.Rounds; round++ {
		land.walk()
		arrived := inbox
		inbox = make([][]*event, cfg.Players)
		for i, p := range players {
			if len(arrived[i]) == 0 {
				continue
			}
			relevant := land.relevant(i)
			for _, e := range arrived[i] {
				p.receive(e, relevant)
				res.Hearing++
				eval.record(i, round, e, relevant)
			}
		}
		for i, p := range players {
			if rng.Float64() >= cfg.Rate {
				continue
			}
			e := p.act(i)
			e.vision = land.near[i]
			res.Events++
			for _, j := range e.vision {
				inbox[j] = append(inbox[j], e)
			}
			eval.record(i, round, e, land.relevant(i))
		}
		if round&(round-1) == 0 || round == cfg.Rounds {
			res.Sizes = append(res.Sizes, measure(round, land, players))
		}
	}
	res.Received, res.Facing = eval.received, eval.facing
	return res, nil
}

// measure computes the sizes of all clocks.
func measure(round int, land *crowd, players []*player) Size {
	s := Size{Round: round}
	per := 1 / float64(len(players))
	for i, p := range players {
		vision, pruned, sparse, sparseBytes := 1+len(land.near[i]), p.owner.Clock().Len(), 0, 4
		for _, n := range p.whole {
			if n > 0 {
				sparse++
				sparseBytes += entryBytes(uint64(n))
			}
		}
		prunedBytes := 2
		for e := range p.owner.Clock().All() {
			prunedBytes += entryBytes(e.N)
		}
		s.Vision += per * float64(vision)
		s.Pruned += per * float64(pruned)
		s.Sparse += per * float64(sparse)
		s.PrunedBytes += per * float64(prunedBytes)
		s.SparseBytes += per * float64(sparseBytes)
		s.MaxVision, s.MaxPruned, s.MaxSparse = max(s.MaxVision, vision), max(s.MaxPruned, pruned), max(s.MaxSparse, sparse)
	}
	return s
}

// entryBytes returns the size of an entry in vclock's codec.
func entryBytes(n uint64) int {
	bytes := 1 + 16 + 1
	for ; n >= 0x80; n >>= 7 {
		bytes++
	}
	return bytes
}
