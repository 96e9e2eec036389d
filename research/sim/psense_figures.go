package sim

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/overlay/psense"
)

// PSenseSetting holds the parameters shared by all runs of the pSense figures.
type PSenseSetting struct {
	Cap    int // bytes a round; 0: DefaultCap
	Header int // bytes a packet; 0: overlay.HeaderPlain
	Rounds int // 0: 500
}

// DefaultCap is the paper's 5 KByte a round.
const DefaultCap = 5000

// The variants in which each figure is run.
const (
	readingQueue  = "plain, any deleted" // §3.2 c: random position updates are deleted from the queue
	readingSubset = "plain, own first"   // §3.1: own updates go to a random subset, forwards take what is left
	improved      = "improved"
	clientServer  = "client/server"
)

// options returns the parameters of a variant, for a vision range of 200 and an interaction range of 50.
func (s PSenseSetting) options(variant string) psense.Options {
	o := psense.Paper(PaperRanges.Vision)
	switch variant {
	case readingSubset:
		o.OwnFirst = true
	case improved:
		o = psense.Improved(PaperRanges.Vision, overlay.FirstServer)
	}
	o.Interaction = PaperRanges.Interaction
	o.Cap = DefaultCap
	if s.Cap > 0 {
		o.Cap = s.Cap
	}
	if s.Header > 0 {
		o.Header = s.Header
	}
	return o
}

func (s PSenseSetting) trial(variant, series, paper string, x float64, c PSenseCase) Trial {
	limit, header := c.Options.Cap, c.Options.Header // of the trial; a cap of -1: none
	c.Options = s.options(variant)
	if limit != 0 {
		c.Options.Cap = max(limit, 0)
	}
	if header != 0 {
		c.Options.Header = header
	}
	c.Relay = variant == clientServer
	c.Rounds = s.Rounds
	return Trial{Series: series + variant, X: x, Paper: paper, Config: c.Config}
}

func pq1(r Round) float64 { return r.PQ1 }

func capOf(bytes int) psense.Options { return psense.Options{Cap: bytes} }

// hotspotShare is the ratio of a player's neighbors in the Hotspot game to those in the Random game, measured with the
// defaults; figure 3(b) compares games with equal numbers of neighbors.
const hotspotShare = 2.1

// neighborShare is the share of all players who are in a player's vision range in the Random game of 1000 × 1000.
const neighborShare = .105

// PSenseFigures returns the figures 3(a) to 3(f) of the paper.
func PSenseFigures(s PSenseSetting) []Figure {
	variants := []string{readingQueue, readingSubset, improved}
	a := Figure{
		Name: "3a", Title: "pSense 3(a): PQ over rounds, Random", X: "round", Y: "PQ of the round", ByRound: true,
		Measure: pq1, Second: func(r Round) float64 { return r.Tenth }, SecondName: "90th percentile",
		Notes: "The paper does not say how players join; here all join in round 0, each knowing one who joined before.",
	}
	for _, variant := range variants {
		a.Trials = append(a.Trials,
			s.trial(variant, "100 players, 1000×1000, ", "close to 1", 100, PSenseCase{Players: 100}),
			s.trial(variant, "300 players, 3 × the area, ", "as with 100", 300, PSenseCase{Players: 300, Side: 1732}),
			s.trial(variant, "300 players, 1000×1000, ", "1.15; 90th percentile 1.3", 300, PSenseCase{Players: 300}))
	}
	b := Figure{
		Name: "3b", Title: "pSense 3(b): PQ and players in vision range", X: "players in vision range", Y: "PQ", Measure: pq1,
		Notes: "The numbers of players are chosen so that both games have that many in vision range.",
	}
	paper := map[string]string{"8": "close to 1", "16": "close to 1", "25": "1.15 (3(a))", "50": "much better than client/server"}
	for _, hotspot := range []bool{false, true} {
		game, share := "Random, ", neighborShare
		if hotspot {
			game, share = "Hotspot, ", neighborShare*hotspotShare
		}
		for _, variant := range append(variants, clientServer) {
			for _, neighbors := range []float64{8, 16, 25, 35, 50} {
				reads := paper[fmt.Sprint(neighbors)]
				if variant == clientServer {
					reads = "1.4 to 1.5"
				}
				b.Trials = append(b.Trials, s.trial(variant, game, reads, neighbors, PSenseCase{Players: int(neighbors / share), Hotspot: hotspot}))
			}
		}
	}
	out := s.traffic("3e", "outbound", func(r Round) float64 { return r.Out }, func(r Round) float64 { return float64(r.MostOut) },
		"mean well below the most; the most at the cap")
	in := s.traffic("3f", "inbound", func(r Round) float64 { return r.In }, func(r Round) float64 { return float64(r.MostIn) },
		"mean as outbound; the most under control")
	return []Figure{a, b, s.figure3c(variants), s.figure3d(), out, in}
}

func (s PSenseSetting) figure3c(variants []string) Figure {
	c := Figure{
		Name: "3c", Title: "pSense 3(c): PQ and the cap, Random", X: "cap, KB a round", Y: "PQ", Measure: pq1,
		Notes: "PQ is that of settled rounds; how long a crowd of 600 takes to settle depends on how it joined.",
	}
	reads := map[string]string{
		"200/5": "excellent", "300/5": "1.15 (3(a))", "600/5": "worse than client/server (1.4 to 1.5)", "600/10": "below 1.4", "600/25": "1",
	}
	for _, players := range []int{200, 400, 600} {
		for _, variant := range variants {
			for _, kb := range []int{5, 10, 15, 20, 25} {
				c.Trials = append(c.Trials, s.trial(variant, fmt.Sprintf("%d players, ", players), reads[fmt.Sprintf("%d/%d", players, kb)],
					float64(kb), PSenseCase{Players: players, Options: capOf(kb * 1000)}))
			}
		}
	}
	return c
}

func (s PSenseSetting) figure3d() Figure {
	d := Figure{
		Name: "3d", Title: "pSense 3(d): bytes without a cap, Random", X: "players in vision range", Y: "bytes a player and round, out",
		Measure: func(r Round) float64 { return r.Out },
		Notes: "The paper calls the growth linear. With 4 bytes for each listed receiver in each message it is quadratic; " +
			"its own numbers say so too (30 receivers in 5 KByte, PQ 1 for 65 at 25 KByte).",
	}
	for _, variant := range []string{readingQueue, improved} {
		for _, neighbors := range []float64{8, 16, 35, 65} {
			reads := "linear"
			if neighbors == 65 {
				reads = "linear; at most 25,000 (3(c))"
			}
			d.Trials = append(d.Trials, s.trial(variant, "", reads, neighbors, PSenseCase{Players: int(neighbors / neighborShare), Calm: variant != improved, Options: capOf(-1)}))
		}
	}
	return d
}

func (s PSenseSetting) traffic(name, direction string, mean, most func(Round) float64, reads string) Figure {
	f := Figure{
		Name: name, Title: fmt.Sprintf("pSense %s(%s): %s bytes over rounds, 100 players, Random", name[:1], name[1:], direction),
		X: "round", Y: "bytes a round", ByRound: true, Measure: mean, Second: most, SecondName: "most",
	}
	for _, variant := range []string{readingQueue, readingSubset, improved} {
		f.Trials = append(f.Trials, s.trial(variant, "", reads, 100, PSenseCase{Players: 100}))
	}
	return f
}

// PSenseAsked returns the runs for the improved machine's targets: the paper's Random game under its cap, with more
// players than the paper's machine could support, and with UDP and IPv4 headers. The Hotspot game is included for
// comparison.
func PSenseAsked(s PSenseSetting) Figure {
	f := Figure{
		Name: "asked", Title: "pSense, improved: what was asked of it", X: "players", Y: "PQ", Measure: pq1,
		Second: func(r Round) float64 { return r.Out }, SecondName: "bytes out",
	}
	add := func(series, asked string, c PSenseCase) {
		f.Trials = append(f.Trials, s.trial(improved, series, asked, float64(c.Players), c))
	}
	udp := psense.Options{Header: overlay.HeaderUDP}
	add("Random, headers of 12 bytes, ", "asked: 1.005", PSenseCase{Players: 300})
	add("Random, headers of 12 bytes, ", "asked: 1.01", PSenseCase{Players: 600})
	add("Random, headers of 12 bytes, ", "asked: 1.02", PSenseCase{Players: 1000})
	add("Random, headers of 28 bytes, ", "asked: 1.01", PSenseCase{Players: 600, Options: udp})
	add("Hotspot, headers of 12 bytes, ", "", PSenseCase{Players: 300, Hotspot: true})
	add("Hotspot, headers of 12 bytes, ", "", PSenseCase{Players: 600, Hotspot: true})
	return f
}

// PSenseSwitches compares the improvements with the plain machine: each one alone, and all but each one.
func PSenseSwitches(s PSenseSetting, players int) Figure {
	f := Figure{
		Name: "switches", Title: fmt.Sprintf("pSense's switches, %d players, Random", players), X: "players", Y: "PQ", Measure: pq1,
		Second: func(r Round) float64 { return r.Out }, SecondName: "bytes out",
	}
	full := s.options(improved)
	switches := []struct {
		name string
		set  func(o, from *psense.Options)
	}{
		{"introductions", func(o, from *psense.Options) {
			o.Introductions, o.Leader, o.ReportEvery = from.Introductions, from.Leader, from.ReportEvery
		}},
		{"lead", func(o, from *psense.Options) { o.Lead = from.Lead }},
		{"own first", func(o, from *psense.Options) { o.OwnFirst = from.OwnFirst }},
		{"nearest and stalest first", func(o, from *psense.Options) { o.Stalest = from.Stalest }},
		{"compact", func(o, from *psense.Options) { o.Compact = from.Compact }},
		{"few lists", func(o, from *psense.Options) { o.Forwarders = from.Forwarders }},
		{"falling rates", func(o, from *psense.Options) { o.Falling = from.Falling }},
	}
	add := func(name string, o psense.Options) {
		c := PSenseCase{Players: players, Rounds: s.Rounds, Options: o}
		f.Trials = append(f.Trials, Trial{Series: name, X: float64(players), Config: c.Config})
	}
	plain := s.options(readingQueue)
	add("plain", plain)
	for _, sw := range switches {
		o := plain
		sw.set(&o, &full)
		add("plain + "+sw.name, o)
	}
	for _, sw := range switches {
		o := full
		sw.set(&o, &plain)
		add("improved − "+sw.name, o)
	}
	add("improved", full)
	return f
}

// PSenseOpen shows the effect of what the paper does not state, with 300 players.
func PSenseOpen(s PSenseSetting) Figure {
	f := Figure{
		Name: "open", Title: "pSense: what the paper leaves open, 300 players, Random", X: "players", Y: "PQ", Measure: pq1,
		Second: func(r Round) float64 { return r.Out }, SecondName: "bytes out",
	}
	add := func(name string, change func(*PSenseCase)) {
		c := PSenseCase{Players: 300, Rounds: s.Rounds, Options: s.options(readingSubset)}
		change(&c)
		f.Trials = append(f.Trials, Trial{Series: name, X: 300, Config: c.Config})
	}
	add("as is: step 5, turn 0.1, 8 sectors, 3 hops, forget after 10, 12 bytes of header", func(*PSenseCase) {})
	for _, v := range []float64{1, 10, 20} {
		add(fmt.Sprintf("step %v", v), func(c *PSenseCase) { c.Step = v })
	}
	for _, v := range []float64{.02, .5} {
		add(fmt.Sprintf("turn %v", v), func(c *PSenseCase) { c.Turn = v })
	}
	for _, v := range []int{4, 16} {
		add(fmt.Sprintf("%d sectors", v), func(c *PSenseCase) { c.Options.Sectors = v })
	}
	for _, v := range []int{2, 5} {
		add(fmt.Sprintf("%d hops", v), func(c *PSenseCase) { c.Options.Lifetime = v })
	}
	for _, v := range []int{4, 20} {
		add(fmt.Sprintf("forget after %d", v), func(c *PSenseCase) { c.Options.Forget = v })
	}
	for _, v := range []int{0, overlay.HeaderUDP} {
		add(fmt.Sprintf("%d bytes of header", v), func(c *PSenseCase) { c.Options.Header = v })
	}
	add("cap 5,375 (the paper's 43 kbit)", func(c *PSenseCase) { c.Options.Cap = 5375 })
	add("calm start", func(c *PSenseCase) { c.Calm = true })
	add("240 players (25 in vision range)", func(c *PSenseCase) { c.Players = 240 })
	return f
}
