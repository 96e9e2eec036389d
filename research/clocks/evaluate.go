package clocks

import (
	"math/rand/v2"
	"slices"

	"github.com/voxelpopuli/voxeld/vclock"
)

// Comparison is a way to compare two events.
type Comparison int

// The comparisons, by the components that they use.
const (
	Printed       Comparison = iota // Algorithm 2: components relevant to the player who compares
	Common                          // the components that both clocks hold
	CommonAndOwn                    // those, and the two authors' own
	Own                             // vclock.Compare: the two authors' own
	OwnHistory                      // vclock.History.Compare: those, and chains of the player's received events
	SharedHistory                   // the same, with the events received by all players of the gateway
	comparisons
)

// String describes the comparison.
func (c Comparison) String() string {
	return [...]string{
		"Algorithm 2 as printed", "common components", "common components and the authors' own", "the authors' own",
		"own, chained by what the player heard", "own, chained by what their gateway heard",
	}[c]
}

// Judged counts the results of the comparisons on many pairs of events.
type Judged struct {
	Ordered int // pairs of which one truly follows the other
	Apart   int // pairs that are truly concurrent
	Tallies [comparisons]Tally
}

// Share returns the percentage of the truly ordered pairs that a comparison recognises.
func (j Judged) Share(c Comparison) float64 { return percent(j.Tallies[c].Right, j.Ordered) }

// Wrong counts the wrong results of a comparison: the wrong order, or an order although the pair is concurrent.
func (j Judged) Wrong(c Comparison) int { return j.Tallies[c].Reversed + j.Tallies[c].Invented }

func percent(part, of int) float64 { return 100 * float64(part) / float64(of) }

// Tally counts the results of one comparison.
type Tally struct {
	// Of the truly ordered pairs: right order; wrong order; called equal; called concurrent.
	Right, Reversed, Tied, Missed int
	// Of the truly concurrent pairs: called ordered; called equal.
	Invented, Merged int
}

// evaluator runs each comparison on pairs of events that one player receives.
type evaluator struct {
	cfg       Config
	rng       *rand.Rand
	observers []*observer // by player; nil for most
	shared    *vclock.History
	received  Judged
	facing    Judged
}

// observer is a player whose pairs are evaluated: their own and received events within the window, in order.
type observer struct {
	window  []received
	history *vclock.History
}

type received struct {
	round int
	event *event
}

func newEvaluator(cfg Config, rng *rand.Rand) *evaluator {
	return &evaluator{cfg: cfg, rng: rng, observers: make([]*observer, cfg.Players), shared: vclock.NewHistory(cfg.Shared)}
}

// record adds an event that a player receives or does. For an observer it also evaluates pairs of the event and
// earlier ones. The players of the observers' gateway are every n-th of all, and the observers.
func (v *evaluator) record(i, round int, e *event, relevant vclock.Relevant) {
	o := v.observers[i]
	if o != nil || i%v.cfg.Gateways == 0 {
		v.shared.Record(e.stamp)
	}
	if o == nil {
		return
	}
	o.history.Record(e.stamp)
	for len(o.window) > 0 && o.window[0].round < round-v.cfg.Window {
		o.window = o.window[1:]
	}
	for range min(v.cfg.Pairs, len(o.window)) {
		v.compare(o, o.window[v.rng.IntN(len(o.window))].event, e, relevant)
	}
	o.window = append(o.window, received{round, e})
}

// compare evaluates all comparisons on one pair.
func (v *evaluator) compare(o *observer, a, b *event, relevant vclock.Relevant) {
	truth := vclock.Concurrent
	switch {
	case b.follows(a):
		truth = vclock.Before
	case a.follows(b):
		truth = vclock.After
	}
	x, y := a.stamp, b.stamp
	results := [comparisons]vclock.Relation{
		Printed:       compareRelevant(x.Clock, y.Clock, relevant),
		Common:        compareCommon(x.Clock, y.Clock),
		CommonAndOwn:  compareCommonAndOwn(x, y),
		Own:           vclock.Compare(x, y),
		OwnHistory:    o.history.Compare(x, y),
		SharedHistory: v.shared.Compare(x, y),
	}
	v.received.count(truth, results)
	if a.author == b.author || slices.Contains(b.vision, a.author) {
		v.facing.count(truth, results)
	}
}

// count adds the results of the comparisons on a pair.
func (j *Judged) count(truth vclock.Relation, results [comparisons]vclock.Relation) {
	if truth == vclock.Concurrent {
		j.Apart++
	} else {
		j.Ordered++
	}
	for c, r := range results {
		j.Tallies[c].count(truth, r)
	}
}

func (t *Tally) count(truth, results vclock.Relation) {
	switch {
	case truth == vclock.Concurrent && results == vclock.Equal:
		t.Merged++
	case truth == vclock.Concurrent && results != truth:
		t.Invented++
	case truth == vclock.Concurrent:
	case results == truth:
		t.Right++
	case results == truth.Inverse():
		t.Reversed++
	case results == vclock.Equal:
		t.Tied++
	default:
		t.Missed++
	}
}
