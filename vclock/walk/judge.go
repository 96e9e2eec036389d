package walk

import (
	"math/rand/v2"
	"slices"

	"github.com/voxelpopuli/voxeld/vclock"
)

// Comparison names a way to compare two events.
type Comparison int

// The comparisons, by what they look at.
const (
	Printed       Comparison = iota // vclock.Algorithm2: what is relevant to whoever compares
	Common                          // vclock.CompareCommon: the components that both clocks hold
	CommonAndOwn                    // vclock.CompareCommonAndOwn: those, and the two authors' own
	Own                             // vclock.Compare: the two authors' own
	OwnHistory                      // vclock.History.Compare: those, and chains of what the player has heard
	SharedHistory                   // the same, with what all players of his gateway have heard
	comparisons
)

// String says what the comparison looks at.
func (c Comparison) String() string {
	return [...]string{
		"Algorithm 2 as printed", "common components", "common components and the authors' own", "the authors' own",
		"own, chained by what the player heard", "own, chained by what his gateway heard",
	}[c]
}

// Judged is what the comparisons make of many pairs of events.
type Judged struct {
	Ordered int // pairs of which one truly follows the other
	Apart   int // pairs that are truly concurrent
	Tallies [comparisons]Tally
}

// Share returns which part of the truly ordered pairs a comparison recognises, in percent.
func (j Judged) Share(c Comparison) float64 { return percent(j.Tallies[c].Right, j.Ordered) }

// Wrong counts the pairs of which a comparison says what is not so: the wrong way round, or ordered although concurrent.
func (j Judged) Wrong(c Comparison) int { return j.Tallies[c].Reversed + j.Tallies[c].Invented }

func percent(part, of int) float64 { return 100 * float64(part) / float64(of) }

// Tally is what one comparison makes of them.
type Tally struct {
	// Of the pairs that are truly ordered: said so; the wrong way round; called equal; called concurrent.
	Right, Reversed, Tied, Missed int
	// Of those that are truly concurrent: called ordered; called equal.
	Invented, Merged int
}

// judge puts each comparison to the test, with pairs that one player hears.
type judge struct {
	cfg       Config
	rng       *rand.Rand
	observers []*observer // by player; nil for most
	shared    *vclock.History
	heard     Judged
	facing    Judged
}

// observer is a player whose pairs are judged: what he has heard or done within the window, in this order.
type observer struct {
	heard   []heard
	history *vclock.History
}

type heard struct {
	round int
	event *event
}

func newJudge(cfg Config, rng *rand.Rand) *judge {
	return &judge{cfg: cfg, rng: rng, observers: make([]*observer, cfg.Players), shared: vclock.NewHistory(cfg.Shared)}
}

// hear takes an event that a player hears or does and, if he is an observer, judges pairs of it and of what he heard before.
// The players of the observers' gateway are every so manieth of all, and the observers.
func (j *judge) hear(i, round int, e *event, relevant vclock.Relevant) {
	o := j.observers[i]
	if o != nil || i%j.cfg.Gateways == 0 {
		j.shared.Hear(e.stamp)
	}
	if o == nil {
		return
	}
	o.history.Hear(e.stamp)
	for len(o.heard) > 0 && o.heard[0].round < round-j.cfg.Window {
		o.heard = o.heard[1:]
	}
	for range min(j.cfg.Pairs, len(o.heard)) {
		j.judge(o, o.heard[j.rng.IntN(len(o.heard))].event, e, relevant)
	}
	o.heard = append(o.heard, heard{round, e})
}

// judge asks all comparisons about one pair.
func (j *judge) judge(o *observer, a, b *event, relevant vclock.Relevant) {
	truth := vclock.Concurrent
	switch {
	case b.follows(a):
		truth = vclock.Before
	case a.follows(b):
		truth = vclock.After
	}
	x, y := a.stamp, b.stamp
	said := [comparisons]vclock.Relation{
		Printed:       vclock.Algorithm2(x.Clock, y.Clock, relevant),
		Common:        vclock.CompareCommon(x.Clock, y.Clock),
		CommonAndOwn:  vclock.CompareCommonAndOwn(x, y),
		Own:           vclock.Compare(x, y),
		OwnHistory:    o.history.Compare(x, y),
		SharedHistory: j.shared.Compare(x, y),
	}
	j.heard.count(truth, said)
	if a.author == b.author || slices.Contains(b.vision, a.author) {
		j.facing.count(truth, said)
	}
}

// count adds what the comparisons say of a pair.
func (j *Judged) count(truth vclock.Relation, said [comparisons]vclock.Relation) {
	if truth == vclock.Concurrent {
		j.Apart++
	} else {
		j.Ordered++
	}
	for c, r := range said {
		j.Tallies[c].count(truth, r)
	}
}

func (t *Tally) count(truth, said vclock.Relation) {
	switch {
	case truth == vclock.Concurrent && said == vclock.Equal:
		t.Merged++
	case truth == vclock.Concurrent && said != truth:
		t.Invented++
	case truth == vclock.Concurrent:
	case said == truth:
		t.Right++
	case said == truth.Inverse():
		t.Reversed++
	case said == vclock.Equal:
		t.Tied++
	default:
		t.Missed++
	}
}
