package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/overlay/sim"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/bench/measure"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

const (
	// paperSide is the side of the papers' plane, and liveScale the size of one of its units in blocks: the papers'
	// vision range of 200 is a chunk, which is the minimum that players see with the smallest view distance, and
	// their step of 5 is 16 blocks a second.
	paperSide, liveScale = 1000, .16
	// Phases: players begin their rounds all at once, as in the papers' simulations, or each at their own time.
	phaseTogether, phaseSpread = "together", "spread"
	// settleRounds is the number of rounds that are played before the measured ones.
	settleRounds = 60
)

// overlays measures overlays between real daemons.
type overlays struct {
	*bench
	players  []int
	games    []string
	overlays []string
	phases   []string
	gateways int
	rounds   int
	log      string // path
}

func newOverlays(b *bench) *cobra.Command {
	l := &overlays{bench: b}
	c := b.command("overlays", "Position age and PQ between real gateways, by overlay",
		"Players of the papers' games are spread over gateways that are real daemons. Every move contains the player's round.\n"+
			"Each player records the updates of others that they receive; the simulator's code computes PQ from that. The papers'\n"+
			"plane lies above the land around the spawn, scaled so that no player is faster than the gateways allow. --log writes\n"+
			"deliveries.csv, traffic.csv and moves.csv in the format of voxeld sim; voxeld sim score reads them.",
		l.measure)
	f := c.Flags()
	f.IntSliceVar(&l.players, "players", []int{100, 300}, "numbers of players")
	f.StringSliceVar(&l.games, "game", []string{"random", "hotspot"}, "games of the papers: random, hotspot")
	f.StringSliceVar(&l.overlays, "overlay", []string{"relay", "psense", "areacast"}, "overlays")
	f.StringSliceVar(&l.phases, "phase", []string{phaseTogether, phaseSpread},
		fmt.Sprintf("when players begin their rounds: together, all of them %v before the gateways' rounds; spread, evenly over a round", crowd.LeadTime))
	f.IntVar(&l.gateways, "gateways", 4, "daemons")
	f.IntVar(&l.rounds, "rounds", 300, "rounds of 50 ms to measure, after 60 rounds of warm-up")
	f.StringVar(&l.log, "log", "", "folder for deliveries.csv, traffic.csv and moves.csv; with several measurements one folder in it for each")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		all := make([]int, runtime.NumCPU())
		for i := range all {
			all[i] = i
		}
		// Four gateways and all players share all cores by default: gateways of different machines do not share a
		// core.
		if !c.Flags().Changed("server-cpus") {
			b.cores.Servers = all
		}
		if !c.Flags().Changed("bot-cpus") {
			b.cores.Players = all
		}
		return run(c, args)
	}
	return c
}

func (l *overlays) measure(ctx context.Context) error {
	games, err := l.gamesToPlay()
	if err != nil {
		return err
	}
	for _, phase := range l.phases {
		if phase != phaseTogether && phase != phaseSpread {
			return fmt.Errorf("unknown phase %q: want together or spread", phase)
		}
	}
	several := len(games)*len(l.overlays)*len(l.phases) > 1
	var all []played
	for _, overlay := range l.overlays {
		daemons, err := l.daemons(ctx, l.gateways, "--overlay", overlay, "--view-distance", "1")
		if err != nil {
			return err
		}
		for _, g := range games {
			for _, phase := range l.phases {
				p, err := l.play(ctx, overlay, phase, g, daemons, several)
				if err != nil {
					daemon.KillAll(daemons)
					return fmt.Errorf("%s, %s, %d players, %s: %w", overlay, g.name, g.moves.Players(), phase, err)
				}
				all = append(all, p)
				logf("%s", p.line())
			}
		}
		daemon.KillAll(daemons)
	}
	return l.report(all)
}

// movement is a movement to be played.
type movement struct {
	name  string
	moves *sim.Recorded
}

func (l *overlays) gamesToPlay() (games []movement, err error) {
	for _, name := range l.games {
		for _, n := range l.players {
			field := sim.Field{Players: n, Width: paperSide, Depth: paperSide}
			switch name {
			case "random":
				games = append(games, movement{name, sim.Record(sim.NewRandom(field, 1), settleRounds+l.rounds)})
			case "hotspot":
				games = append(games, movement{name, sim.Record(sim.NewHotspot(field, sim.HotspotOptions{}, 1), settleRounds+l.rounds)})
			default:
				return nil, fmt.Errorf("unknown game %q: want random or hotspot", name)
			}
		}
	}
	return games, nil
}

// scaledMovement returns a movement in blocks, centred on 0.
func scaledMovement(moves *sim.Recorded) (path [][]crowd.Point) {
	for round := range moves.Rounds() + 1 {
		places := make([]crowd.Point, moves.Players())
		for i := range places {
			at := moves.At(round, i)
			places[i] = crowd.Point{X: (at.X - paperSide/2) * liveScale, Z: (at.Z - paperSide/2) * liveScale}
		}
		path = append(path, places)
	}
	return path
}

// play measures one game over daemons that run an overlay.
func (l *overlays) play(ctx context.Context, overlay, phase string, g movement, daemons []*daemon.Daemon, several bool) (p played, err error) {
	path := scaledMovement(g.moves)
	p = played{overlay: overlay, game: g.name, phase: phase, players: g.moves.Players(), from: min(settleRounds, g.moves.Rounds()/2) + 1}
	ledger := newUsageLog(daemons)
	o := crowd.Rounds{
		Targets: gamesOf(daemons), Paths: path, Spread: phase == phaseSpread, Prefix: overlay + "-" + g.name,
		OnRound: func(round int) {
			ledger.record(ctx, round, round == p.from-1 || round == len(path)-1 || l.log != "" && round%measure.TickRate == 0)
		},
	}
	if l.log == "" {
		o.Range = 1.25 * sim.PaperRanges.Vision * liveScale // updates beyond that are not measured
	}
	p.seen, err = crowd.Play(ctx, o)
	if err := errors.Join(err, ledger.close()); err != nil {
		return p, err
	}
	if p.result, err = scoreOf(g.moves, p.seen.Updates); err != nil {
		return p, err
	}
	p.account(ledger.at(p.from-1), ledger.at(len(path)-1))
	if l.log == "" {
		return p, nil
	}
	dir := l.log
	if several {
		dir = filepath.Join(dir, fmt.Sprintf("%s-%s-%d-%s", overlay, g.name, p.players, phase))
	}
	return p, p.write(dir, g.moves, ledger)
}

// scoreOf computes the simulator's measures from the updates that players received.
func scoreOf(moves *sim.Recorded, updates []crowd.Update) (*sim.Result, error) {
	s, result := sim.NewScore(moves, sim.PaperRanges, sim.PSenseAge), &sim.Result{}
	var now []sim.Delivery
	for round := range moves.Rounds() + 1 {
		now = now[:0]
		for ; len(updates) > 0 && int(updates[0].Round) == round; updates = updates[1:] {
			t := updates[0]
			now = append(now, sim.Delivery{Round: t.Round, Receiver: t.Receiver, Origin: t.Origin, OriginRound: t.Of})
		}
		m, err := s.Round(now)
		if err != nil {
			return nil, err
		}
		if round > 0 {
			result.Rounds = append(result.Rounds, m)
		}
	}
	return result, nil
}

// report writes the figure: all rows as CSV, and on the page the main columns of the rows with the most players.
func (l *overlays) report(all []played) error {
	slices.SortStableFunc(all, func(a, b played) int {
		return cmp.Or(-cmp.Compare(a.game, b.game), cmp.Compare(a.players, b.players), -cmp.Compare(a.phase, b.phase))
	})
	table := figure.Table{Head: []string{
		"game, players, phase, overlay", "PQ", "PositionAge, mean", "of age 1, %", "known, %", "in vision", "seen after, ms: p50 / p90 / p99",
		"kB/s a gateway sends to others", "of it the overlay's", "kB/s to each player", "daemons' CPU, % of a core",
	}}
	short := figure.Table{Head: []string{"game, phase, overlay", "PQ", "seen after, ms: p50 / p99", "kB/s", "CPU, %"}}
	most := slices.MaxFunc(all, func(a, b played) int { return cmp.Compare(a.players, b.players) }).players
	var doubts []string
	for _, p := range all {
		name := fmt.Sprintf("%s, %d, %s, %s", p.game, p.players, p.phase, p.overlay)
		if p.players == most {
			short.Add(fmt.Sprintf("%s, %s, %s", p.game, p.phase, p.overlay), fmt.Sprintf("%.3f", p.pq()),
				fmt.Sprintf("%.0f / %.0f", 1000*p.seen.Delay.Quantile(.5), 1000*p.seen.Delay.Quantile(.99)), meanOf(p.out)/1000, percent(p.cpu))
		}
		table.Add(name, fmt.Sprintf("%.4f", p.pq()), fmt.Sprintf("%.3f", p.age()), percent(p.fresh()), percent(p.known()), p.neighbors(),
			fmt.Sprintf("%.0f / %.0f / %.0f", 1000*p.seen.Delay.Quantile(.5), 1000*p.seen.Delay.Quantile(.9), 1000*p.seen.Delay.Quantile(.99)),
			meanOf(p.out)/1000, meanOf(p.packets)/1000, p.toEach()/1000, percent(p.cpu))
		if why := p.caveat(); why != "" {
			doubts = append(doubts, "Doubtful: "+name+": "+why+".")
		}
	}
	if l.write {
		if err := figure.WriteTables(filepath.Join(l.docs, "data", "overlays", "overlays-live.csv"), table); err != nil {
			return err
		}
	}
	text := short.Markdown()
	if slices.ContainsFunc(all, func(p played) bool { return !p.seen.First }) {
		text += "\nPlayers had no priority over the daemons, which requires root: busy daemons delayed them.\n"
	}
	if len(doubts) > 0 {
		text += "\n" + strings.Join(doubts, "\n") + "\n"
	}
	return l.publishIn("overlays.md", "overlays-live", text)
}
