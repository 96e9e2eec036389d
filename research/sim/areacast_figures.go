package sim

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/overlay/areacast"
)

// AreacastFigure is a figure or table of the areacast paper, or an additional one: its runs, and the paper's statement
// about each.
type AreacastFigure struct {
	Name  string // "2" to "10", "table2", "readings", "open", "better"
	Title string
	Claim string // the paper's statement in words
	// Peaks selects the greatest PQ(p, r) of any player in a round as the measure (figures 4 and 7), instead of PQ2.
	Peaks bool
	Cases []AreacastCase
	// Paper holds for each case the PQ2 at the last round from the paper's text; 0: the text has none. Values from the
	// paper's plots were not available.
	Paper []float64
}

// Heading returns the figure's name and title.
func (f *AreacastFigure) Heading() string {
	switch f.Name {
	case "table2":
		return "Table 2: " + f.Title
	case "readings", "open", "better":
		return f.Title
	}
	return "Figure " + f.Name + ": " + f.Title
}

// fanout returns the paper's standard options with another fanout.
func fanout(ir, vr, inf int) areacast.Options {
	o := areacast.Paper()
	o.FanoutIR, o.FanoutVR, o.FanoutInf = ir, vr, inf
	return o
}

// areacastHotspots are the hotspots of areacast's figures; the paper states neither number nor size. With the ten of
// 100 blocks of the pSense figures (DefaultHotspots), 10-0-0 falls apart in half of the runs, which contradicts the
// paper.
var areacastHotspots = HotspotOptions{Hotspots: 5, Reach: 200}

// split is one of the fanouts compared by a figure.
type split [3]int

func (s split) String() string { return fmt.Sprintf("fanout-%d-%d-%d", s[0], s[1], s[2]) }

// The splits of fanout 10 and of fanout 5. The paper names 10-0-0, 8-1-1 and 2-3-5, and 5-0-0 and 2-2-1; the others are
// additions.
var (
	tenSplits  = []split{{10, 0, 0}, {8, 1, 1}, {5, 3, 2}, {2, 3, 5}}
	fiveSplits = []split{{5, 0, 0}, {4, 1, 0}, {3, 1, 1}, {2, 2, 1}, {1, 1, 3}}
)

func ofSplits(splits []split, hotspot bool) (cases []AreacastCase) {
	for _, s := range splits {
		cases = append(cases, AreacastCase{Name: s.String(), Hotspot: hotspot, Hotspots: areacastHotspots, Options: fanout(s[0], s[1], s[2])})
	}
	return cases
}

// AreacastFigures returns all figures, in the paper's order, followed by the additional ones.
func AreacastFigures() []AreacastFigure {
	return append(paperAreacastFigures(), readingsFigure(), openFigure(), betterFigure())
}

func paperAreacastFigures() []AreacastFigure {
	ten, five := tenSplits, fiveSplits
	return []AreacastFigure{
		{
			Name: "2", Title: "Fanout 10: hotspot", Cases: ofSplits(ten, true),
			Claim: "2-3-5 is the worst, 10-0-0 the best; low at first, then stable",
		}, {
			Name: "3", Title: "Fanout 10: random", Cases: ofSplits(ten, false), Paper: []float64{1.49, 1.51},
			Claim: "the same order; 10-0-0 reaches 1.49",
		}, {
			Name: "4", Title: "Fanout 10: max. PQ1, hotspot", Peaks: true, Cases: ofSplits([]split{ten[1], ten[0]}, true),
			Claim: "the peaks of 8-1-1 are generally smaller; 10-0-0 could partition, and did not in the paper's run",
		}, {
			Name: "5", Title: "Fanout 5: hotspot", Cases: ofSplits(five, true),
			Claim: "the more within the interaction range the better, but 5-0-0 breaks down",
		}, {
			Name: "6", Title: "Fanout 5: random", Cases: ofSplits(five, false),
			Claim: "the same, but 5-0-0 suffers less than in hotspot mode",
		}, {
			Name: "7", Title: "Fanout 5: max. PQ1, hotspot", Peaks: true, Cases: ofSplits([]split{five[3], five[0]}, true),
			Claim: "very high peaks of 5-0-0",
		}, {
			Name: "8", Title: "Number of updates and hops (random, 8-1-1)", Paper: []float64{1.51, 1.525, 1.51, 1.51},
			Cases: []AreacastCase{
				limits("a: 60 updates, 3 hops", 60, 3), limits("b: 10 updates, 3 hops", 10, 3),
				limits("c: 60 updates, 2 hops", 60, 2), limits("d: 10 updates, 2 hops", 10, 2),
			},
			Claim: "1.51 to 1.525; b is slightly worse, the others equal",
		}, {
			Name: "9", Title: "1000 players",
			Cases: []AreacastCase{
				{Name: "random, 8-1-1", Players: 1000, Rounds: 1000, Options: fanout(8, 1, 1)},
				{Name: "hotspot, 8-1-1", Players: 1000, Rounds: 1000, Hotspot: true, Options: fanout(8, 1, 1)},
				{Name: "random, 2-2-1", Players: 1000, Rounds: 1000, Options: fanout(2, 2, 1)},
				{Name: "hotspot, 2-2-1", Players: 1000, Rounds: 1000, Hotspot: true, Options: fanout(2, 2, 1)},
			},
			Paper: []float64{1.26 * 1.51, 1.37 * tenHotspotsPQ2},
			Claim: "fanout 10 degrades by 26 % in random and by 37 % in hotspot mode against 100 players; fanout 5 is no good",
		}, {
			Name: "10", Title: "Scaling the game field (8-1-1)", Paper: []float64{1.51, 1.51},
			Cases: []AreacastCase{
				{Name: "random, 100 players", Options: fanout(8, 1, 1)},
				{Name: "random, 1000 players, 10× field", Players: 1000, Side: tenfoldSide, Options: fanout(8, 1, 1)},
				{Name: "hotspot, 100 players", Hotspot: true, Hotspots: areacastHotspots, Options: fanout(8, 1, 1)},
				{Name: "hotspot, 1000 players, 10× field", Players: 1000, Side: tenfoldSide, Hotspot: true, Hotspots: HotspotOptions{Hotspots: 10 * areacastHotspots.Hotspots, Reach: areacastHotspots.Reach}, Options: fanout(8, 1, 1)},
			},
			Claim: "random is nearly the same with both, hotspot slightly worse with 1,000 players",
		}, {
			Name: "table2", Title: "Outbound traffic, at most, bytes a round and node",
			Cases: []AreacastCase{
				traffic2("10 updates, fanout 5", 10, 5), traffic2("10 updates, fanout 10", 10, 10),
				traffic2("60 updates, fanout 5", 60, 5), traffic2("60 updates, fanout 10", 60, 10),
			},
			Claim: "1.58, 3.17, 9.52 and 19.04 KByte (of 1,024 bytes); coming in, with 60 updates, never more than 18 (fanout 5) and 43 (fanout 10)",
		},
	}
}

// tenHotspotsPQ2 is the PQ2 measured for 100 players and 8-1-1 with the hotspots of figure 9, ten of 100 blocks. The
// paper states no value for its own; with five of 200 blocks, a crowd of 1,000 degrades less than the paper says.
const tenHotspotsPQ2 = 1.65

// tenfoldSide is the side of a field of ten times the standard area, which keeps the number of players in vision range.
const tenfoldSide = 3162.28

func limits(name string, updates, hops int) AreacastCase {
	o := fanout(8, 1, 1)
	o.MaxUpdatesPerGossip, o.MaxPositionAge = updates, hops
	return AreacastCase{Name: name, Options: o}
}

func traffic2(name string, updates, all int) AreacastCase {
	c := limits(name, updates, 3)
	if all == 5 {
		c.Options.FanoutIR, c.Options.FanoutVR, c.Options.FanoutInf = 2, 2, 1
	}
	return c
}

// readingsFigure compares the interpretations of ambiguous statements of the paper.
func readingsFigure() AreacastFigure {
	f := AreacastFigure{Name: "readings", Title: "Readings of the text (random and hotspot, 8-1-1)", Claim: "8-1-1 reaches 1.51 in random mode"}
	add := func(name string, change func(*AreacastCase)) {
		for _, hotspot := range []bool{false, true} {
			c := AreacastCase{Name: game(hotspot) + ": " + name, Hotspot: hotspot, Hotspots: areacastHotspots, Options: fanout(8, 1, 1)}
			change(&c)
			f.Cases = append(f.Cases, c)
			f.Paper = append(f.Paper, map[bool]float64{false: 1.51}[hotspot])
		}
	}
	add("as built", func(*AreacastCase) {})
	add("a direct update is of age 1", func(c *AreacastCase) { c.DirectIsOne = true })
	add("no spill", func(c *AreacastCase) { c.Options.NoSpill = true })
	add("age grows when sent", func(c *AreacastCase) { c.Options.Aging = areacast.AgeBySending })
	add("age is hops only", func(c *AreacastCase) { c.Options.Aging = areacast.AgeByHop })
	return f
}

// openFigure varies the parameters that the paper does not state, one at a time.
func openFigure() AreacastFigure {
	f := AreacastFigure{Name: "open", Title: "Parameters that the paper leaves open (8-1-1)", Claim: "relatively insensitive to the rounds until a player is removed"}
	add := func(name string, hotspot bool, change func(*AreacastCase)) {
		c := AreacastCase{Name: game(hotspot) + ": " + name, Hotspot: hotspot, Hotspots: areacastHotspots, Options: fanout(8, 1, 1)}
		change(&c)
		f.Cases = append(f.Cases, c)
		f.Paper = append(f.Paper, 0)
	}
	for _, step := range []float64{1, 10, 20} {
		add(fmt.Sprintf("%g blocks a round (%g)", step, DefaultStep), false, func(c *AreacastCase) { c.Step = step })
	}
	add(fmt.Sprintf("turns in half of the rounds (%g)", DefaultTurn), false, func(c *AreacastCase) { c.Turn = .5 })
	for _, contacts := range []int{1, 20} {
		add(fmt.Sprintf("%d contacts (%d)", contacts, AreacastContacts), false, func(c *AreacastCase) { c.Contacts = contacts })
	}
	for _, after := range []int{2, 10} {
		add(fmt.Sprintf("removed after %d rounds (3)", after), false, func(c *AreacastCase) { c.Options.RemoveAfter = after })
	}
	for _, hotspots := range []int{3, 10, 20} {
		add(fmt.Sprintf("%d hotspots (%d)", hotspots, areacastHotspots.Hotspots), true, func(c *AreacastCase) { c.Hotspots.Hotspots = hotspots })
	}
	for _, reach := range []float64{50, 100} {
		add(fmt.Sprintf("hotspots of %g blocks (%g)", reach, areacastHotspots.Reach), true, func(c *AreacastCase) { c.Hotspots.Reach = reach })
	}
	for _, stay := range []float64{20, 200} {
		add(fmt.Sprintf("stays of %g rounds (%g)", stay, DefaultStay), true, func(c *AreacastCase) { c.Hotspots.Stay = stay })
	}
	return f
}

// betterFigure compares the improvements with the plain machine, at the bytes of fanout 10 and 60 updates, with UDP
// headers counted for both. Its hotspots are those of the pSense figures, ten of 100 blocks: twice as many players in
// sight.
func betterFigure() AreacastFigure {
	f := AreacastFigure{Name: "better", Title: "1000 players, switches, at the bytes of fanout 10 with 60 updates and UDP's headers"}
	plain := fanout(8, 1, 1)
	plain.Header = overlay.HeaderUDP
	limit := plain.MaxBytes()
	add := func(name string, change func(*areacast.Options)) {
		for _, hotspot := range []bool{false, true} {
			o := plain
			change(&o)
			f.Cases = append(f.Cases, AreacastCase{Name: game(hotspot) + ": " + name, Players: 1000, Hotspot: hotspot, Options: o})
			f.Paper = append(f.Paper, 0)
		}
	}
	small := func(o *areacast.Options) { o.Improved.Cap, o.MaxUpdatesPerGossip = limit, betterUpdates }
	add("plain", func(*areacast.Options) {})
	add("only small gossips to more", small)
	add("only compact", func(o *areacast.Options) { o.Improved.Cap, o.Improved.Compact = limit, true })
	add("only stalest first", func(o *areacast.Options) { small(o); o.Improved.StalestFirst = true })
	add("only rates by distance", func(o *areacast.Options) { small(o); o.Improved.EdgeInterval = 3 })
	add("only introductions", func(o *areacast.Options) { o.Improved.ReportEvery = 2 })
	add("better", func(o *areacast.Options) { *o = areacast.Improved(limit) })
	add("better, and introductions", func(o *areacast.Options) {
		*o = areacast.Improved(limit)
		o.Improved.ReportEvery = 2
	})
	add("better, and rates by distance", func(o *areacast.Options) {
		*o = areacast.Improved(limit)
		o.Improved.EdgeInterval = 3
	})
	add("better, at a third of the bytes", func(o *areacast.Options) { *o = areacast.Improved(limit / 3) })
	return f
}

// betterUpdates is the length of gossips for improvements that need short ones when measured alone: with 60 updates
// each, the bytes of fanout 10 suffice for only ten players, whatever the order.
const betterUpdates = 8

func game(hotspot bool) string {
	if hotspot {
		return "hotspot"
	}
	return "random"
}
