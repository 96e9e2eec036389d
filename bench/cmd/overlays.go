package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/bench/crowd"
	"github.com/voxelpopuli/voxeld/bench/measure"
	"github.com/voxelpopuli/voxeld/overlay/sim"
	"github.com/voxelpopuli/voxeld/testkit/daemon"
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

// overlayOptions are the options of an overlay measurement.
type overlayOptions struct {
	players  []int
	games    []string
	overlays []string
	phases   []string
	gateways int
	rounds   int
	seed     uint64
	moves    string // path
	log      string // path
	scale    float64
}

// newOverlays returns the command that measures overlays between real daemons.
func newOverlays(b *bench) *cobra.Command {
	var l overlayOptions
	c := b.command("overlays", "Position age and PQ between real gateways, by overlay",
		"Players of the papers' games are spread over gateways that are real daemons. Every move contains the player's round.\n"+
			"Each player records the updates of others that they receive; the simulator's code computes PQ from that. The papers'\n"+
			"plane lies above the land around the spawn, scaled so that no player is faster than the gateways allow.\n\n"+
			"With --moves the players follow a file (round,player,x,y,vx,vy: one row for each player and round). --log writes\n"+
			"deliveries.csv, traffic.csv and moves.csv in the format of voxeld sim; voxeld sim score reads them.",
		func(ctx context.Context) error { return b.overlays(ctx, l) })
	f := c.Flags()
	f.IntSliceVar(&l.players, "players", []int{100, 300}, "numbers of players")
	f.StringSliceVar(&l.games, "game", []string{"random", "hotspot"}, "games of the papers: random, hotspot")
	f.StringSliceVar(&l.overlays, "overlay", []string{"relay", "psense", "areacast"}, "overlays")
	f.StringSliceVar(&l.phases, "phase", []string{phaseTogether, phaseSpread},
		fmt.Sprintf("when players begin their rounds: together, all of them %v before the gateways' rounds; spread, evenly over a round", crowd.LeadTime))
	f.IntVar(&l.gateways, "gateways", 4, "daemons")
	f.IntVar(&l.rounds, "rounds", 300, "rounds of 50 ms to measure, after 60 rounds of warm-up")
	f.Uint64Var(&l.seed, "seed", 1, "seed of the games")
	f.StringVar(&l.moves, "moves", "", "CSV file with the movement, in place of the games")
	f.StringVar(&l.log, "log", "", "folder for deliveries.csv, traffic.csv and moves.csv; with several measurements one folder in it for each")
	f.Float64Var(&l.scale, "scale", 0, fmt.Sprintf("blocks for one unit of the plane (default %v, less if a player would be too fast)", liveScale))
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

// played is one measurement of an overlay.
type played struct {
	overlay, game, phase string

	players int
	result  *sim.Result
	from    int // the first measured round
	seen    *crowd.GameResult
	seconds float64   // of the measured rounds
	cpu     float64   // of all daemons, as a share of one core
	out     []float64 // bytes/s that each gateway sent to other nodes
	packets []float64 // likewise, of the overlay alone
	refused float64
}

func (b *bench) overlays(ctx context.Context, l overlayOptions) error {
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
		daemons, err := b.daemons(ctx, l.gateways, "--overlay", overlay, "--view-distance", "1")
		if err != nil {
			return err
		}
		for _, g := range games {
			for _, phase := range l.phases {
				p, err := b.playLive(ctx, l, overlay, phase, g, daemons, several)
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
	return b.reportOverlays(all)
}

// movement is a movement to be played.
type movement struct {
	name  string
	moves *sim.Recorded
}

func (l overlayOptions) gamesToPlay() (games []movement, err error) {
	if l.moves != "" {
		f, err := os.Open(l.moves)
		if err != nil {
			return nil, fmt.Errorf("open moves: %w", err)
		}
		defer f.Close() //nolint:errcheck // it was only read
		moves, err := sim.ReadMoves(f)
		return []movement{{strings.TrimSuffix(filepath.Base(l.moves), ".csv"), moves}}, err
	}
	for _, name := range l.games {
		for _, n := range l.players {
			field := sim.Field{Players: n, Width: paperSide, Depth: paperSide}
			switch name {
			case "random":
				games = append(games, movement{name, sim.Record(sim.NewRandom(field, l.seed), settleRounds+l.rounds)})
			case "hotspot":
				games = append(games, movement{name, sim.Record(sim.NewHotspot(field, sim.HotspotOptions{}, l.seed), settleRounds+l.rounds)})
			default:
				return nil, fmt.Errorf("unknown game %q: want random or hotspot", name)
			}
		}
	}
	return games, nil
}

// scaledMovement returns a movement in blocks, centred on 0.
func (l overlayOptions) scaledMovement(moves *sim.Recorded) (path [][]crowd.Point, scale float64, err error) {
	low, high := crowd.Point{X: math.Inf(1), Z: math.Inf(1)}, crowd.Point{X: math.Inf(-1), Z: math.Inf(-1)}
	fastest := 0.
	for round := range moves.Rounds() + 1 {
		places := make([]crowd.Point, moves.Players())
		for i := range places {
			at, here := moves.At(round, i)
			if !here {
				return nil, 0, fmt.Errorf("player %d has no row for round %d: live, all players play in every round", moves.Names[i], moves.First+round)
			}
			places[i] = crowd.Point{X: at.X, Z: at.Z}
			low, high = crowd.Point{X: min(low.X, at.X), Z: min(low.Z, at.Z)}, crowd.Point{X: max(high.X, at.X), Z: max(high.Z, at.Z)}
			if round > 0 {
				fastest = max(fastest, math.Hypot(at.X-path[round-1][i].X, at.Z-path[round-1][i].Z))
			}
		}
		path = append(path, places)
	}
	if scale = l.scale; scale == 0 {
		scale = min(liveScale, .999*crowd.MaxStep/max(fastest, 1e-9))
	}
	for _, places := range path {
		for i := range places {
			places[i] = crowd.Point{X: (places[i].X - (low.X+high.X)/2) * scale, Z: (places[i].Z - (low.Z+high.Z)/2) * scale}
		}
	}
	return path, scale, nil
}

// playLive measures one game over daemons that run an overlay.
func (b *bench) playLive(ctx context.Context, l overlayOptions, overlay, phase string, g movement, daemons []*daemon.Daemon, several bool) (p played, err error) {
	path, scale, err := l.scaledMovement(g.moves)
	if err != nil {
		return p, err
	}
	p = played{overlay: overlay, game: g.name, phase: phase, players: g.moves.Players(), from: min(settleRounds, g.moves.Rounds()/2) + 1}
	ledger := newUsageLog(daemons)
	o := crowd.Rounds{
		Targets: gamesOf(daemons), Paths: path, FromSpawn: true, Spread: phase == phaseSpread, View: 1, Prefix: overlay + "-" + g.name,
		OnRound: func(round int) {
			ledger.record(ctx, round, round == p.from-1 || round == len(path)-1 || l.log != "" && round%measure.TickRate == 0)
		},
	}
	if l.log == "" {
		o.Range = 1.25 * sim.PaperRanges.Vision * scale // updates beyond that are not measured
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
	return p, p.write(dir, g.moves, l.moves, ledger)
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

// usageLog reads the daemons' resource usage at rounds.
type usageLog struct {
	daemons []*daemon.Daemon
	readers sync.WaitGroup
	mu      struct {
		sync.Mutex
		entries []entry // by round; sorted by close
		err     error
	}
}

// entry is the daemons' usage up to a round.
type entry struct {
	round   int
	at      time.Time
	cpu     time.Duration
	out, in []float64 // bytes to and from other nodes, by daemon
	packets []float64 // bytes of the overlay's packets
	refused float64
}

func newUsageLog(daemons []*daemon.Daemon) *usageLog { return &usageLog{daemons: daemons} }

// record reads the usage, concurrently with the game, if wanted.
func (l *usageLog) record(ctx context.Context, round int, wanted bool) {
	if !wanted {
		return
	}
	l.readers.Go(func() { // awaited by close
		e, err := l.read(ctx, round)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.mu.entries, l.mu.err = append(l.mu.entries, e), errors.Join(l.mu.err, err)
	})
}

func (l *usageLog) read(ctx context.Context, round int) (entry, error) {
	e := entry{round: round, at: time.Now()}
	for _, d := range l.daemons {
		u, err := d.Usage()
		if err != nil {
			return e, err
		}
		e.cpu += u.CPU
	}
	for _, d := range l.daemons {
		m, err := d.Scrape(ctx)
		if err != nil {
			return e, err
		}
		e.out = append(e.out, m.Value("voxeld_stream_bytes_total", "direction", "out"))
		e.in = append(e.in, m.Value("voxeld_stream_bytes_total", "direction", "in"))
		e.packets = append(e.packets, m.Value("voxeld_overlay_packet_bytes_total", "direction", "out"))
		e.refused += m.Value("voxeld_overlay_refused_total")
	}
	return e, nil
}

func (l *usageLog) close() error {
	l.readers.Wait()
	slices.SortFunc(l.mu.entries, func(a, b entry) int { return a.round - b.round })
	return l.mu.err
}

func (l *usageLog) at(round int) entry {
	i, _ := slices.BinarySearchFunc(l.mu.entries, round, func(e entry, round int) int { return e.round - round })
	return l.mu.entries[i]
}

// account computes the traffic and the processor time of the measured rounds.
func (p *played) account(first, last entry) {
	p.seconds = last.at.Sub(first.at).Seconds()
	p.cpu = (last.cpu - first.cpu).Seconds() / p.seconds
	p.refused = last.refused - first.refused
	for i := range last.out {
		p.out = append(p.out, (last.out[i]-first.out[i])/p.seconds)
		p.packets = append(p.packets, (last.packets[i]-first.packets[i])/p.seconds)
	}
}
