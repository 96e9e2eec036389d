package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/overlay/psense"
	"github.com/voxelpopuli/voxeld/overlay/sim"
)

// simOptions are the flags of the sim commands.
type simOptions struct {
	figure, out, page   string
	seeds               int
	seed                uint64
	rounds              int
	moves, log          string
	players             int
	game                string
	side, step          float64
	vision, interaction float64
	improved            bool
	leader, ownFirst    bool
	limit, header       int
}

// newSim returns the commands that run the overlays' state machines in rounds.
func newSim() *cobra.Command {
	c := &cobra.Command{
		Use: "sim", Short: "Simulate the overlays and vector clocks, and compare the results with the papers",
		Long: "Runs the state machines that distribute players' movement (docs/overlays.md) in rounds: a message sent in\n" +
			"one round arrives in the next. With --figure it prints a figure of the paper beside the simulated values.\n" +
			"Without it, it simulates one game, which may be read from a file, and can log it.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newSimOverlay("relay", "VoxelPopuli's relay through the region's leader", nil),
		newSimOverlay("psense", "pSense", func(o simOptions) []sim.Figure {
			s := sim.PSenseSetting{Cap: o.limit, Header: o.header, Rounds: o.rounds}
			return append(sim.PSenseFigures(s), sim.PSenseAsked(s), sim.PSenseSwitches(s, o.players), sim.PSenseOpen(s))
		}), newSimAreacast(), newSimVclock(), newSimScore())
	return c
}

func newSimOverlay(name, what string, figures func(simOptions) []sim.Figure) *cobra.Command {
	var o simOptions
	c := &cobra.Command{
		Use: name, Short: "Simulate " + what,
		Example: "  voxeld sim " + name + " --players 600 --log out\n  voxeld sim " + name + " --moves moves.csv --log out",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.rounds < 1 || o.seeds < 1 || o.players < 1 || o.limit < 0 || o.header < 0 {
				return usageError{errors.New("--rounds, --seeds and --players must be 1 or more, --cap and --header 0 or more")}
			}
			if o.figure == "" {
				return simGame(c.OutOrStdout(), name, o)
			}
			var chosen []sim.Figure
			var names []string
			for _, f := range figures(o) {
				names = append(names, f.Name)
				if o.figure == "all" || slices.Contains(strings.Split(o.figure, ","), f.Name) {
					chosen = append(chosen, f)
				}
			}
			if len(chosen) == 0 {
				return usageError{fmt.Errorf("--figure: choose all, or some of %s", strings.Join(names, ","))}
			}
			for _, f := range chosen {
				if err := simFigure(c.Context(), c.OutOrStdout(), name, f, o); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := c.Flags()
	if figures != nil {
		f.StringVar(&o.figure, "figure", "", "figures of the paper to print, such as 3a,3c, or all; then only --cap, --header, --rounds, --players (figure switches), --seed, --seeds, --out and --page count")
		f.StringVar(&o.out, "out", "", "directory to write each figure's CSV and SVG to; empty writes none")
		f.StringVar(&o.page, "page", "", "markdown page to insert the figures' tables into")
		f.IntVar(&o.seeds, "seeds", 1, "number of seeds for each point of a figure, counted from --seed")
	} else {
		o.seeds = 1
	}
	o.gameFlags(f)
	f.IntVar(&o.rounds, "rounds", 500, "number of rounds; a file of --moves with fewer ends earlier")
	f.IntVar(&o.limit, "cap", sim.DefaultCap, "maximum bytes that a player sends per round, headers included; 0 for no limit")
	f.IntVar(&o.header, "header", overlay.HeaderPlain, "header bytes of each packet; UDP over IPv4 has 28")
	f.IntVar(&o.players, "players", 300, "number of players")
	if name != "relay" {
		f.BoolVar(&o.improved, "improved", false, "use all improvements over the paper")
		f.BoolVar(&o.ownFirst, "own-first", false, "when over the cap, delete forwarded updates before own ones (paper, §3.1), not random ones (§3.2)")
		f.BoolVar(&o.leader, "leader", true, "with --improved: the region's leader introduces players to each other")
	}
	return c
}

// gameFlags declares the flags of a single game: how players move and how far they see.
func (o *simOptions) gameFlags(f *pflag.FlagSet) {
	f.Uint64Var(&o.seed, "seed", 1, "seed of the game and of the state machines")
	f.StringVar(&o.game, "game", "random", "movement of the players: random or hotspot, as in the papers")
	f.Float64Var(&o.side, "side", 1000, "side length of the field, in blocks")
	f.Float64Var(&o.step, "step", sim.DefaultStep, "distance that a player walks per round, in blocks")
	f.Float64Var(&o.vision, "vision", sim.PaperRanges.Vision, "vision range, in blocks")
	f.Float64Var(&o.interaction, "interaction", sim.PaperRanges.Interaction, "interaction range, in blocks")
	f.StringVar(&o.moves, "moves", "", "CSV file to read the movement from instead: round,player,x,y,vx,vy, one row for each player and round")
	f.StringVar(&o.log, "log", "", "directory to write deliveries.csv (round,receiver,origin,origin_round) and traffic.csv (round,player,out,in) to; empty writes none")
}

// simGame simulates one game of pSense or relay.
func simGame(w io.Writer, name string, o simOptions) error {
	c := sim.PSenseCase{
		Players: o.players, Side: o.side, Rounds: o.rounds, Step: o.step, Hotspot: o.game == "hotspot", Relay: name == "relay",
		Options: psense.Paper(o.vision),
	}
	if o.game != "random" && o.game != "hotspot" {
		return usageError{fmt.Errorf("--game: there is no game %q", o.game)}
	}
	c.Options.OwnFirst = o.ownFirst
	if o.improved {
		c.Options = psense.Improved(o.vision, overlay.FirstServer)
		c.Options.Introductions = o.leader
	}
	c.Options.Cap, c.Options.Header, c.Options.Interaction = o.limit, o.header, o.interaction
	if err := c.Options.Validate(); err != nil {
		return usageError{err}
	}
	recorded, err := readMoves(o.moves)
	if err != nil {
		return err
	}
	if recorded != nil {
		c.Moves, c.Rounds = recorded, min(o.rounds, recorded.Rounds())
		if c.Rounds < 1 {
			return usageError{errors.New("--moves: the file must have two rounds or more")}
		}
	}
	return play(w, c.Config(o.seed), recorded, o)
}

// play simulates one game, logs it if --log is set, and prints the results.
func play(w io.Writer, cfg sim.Config, recorded *sim.Recorded, o simOptions) (err error) {
	if o.log != "" {
		log, done, err := openLog(o.log, recorded)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
		cfg.Log = log
	}
	r, err := sim.Run(cfg)
	if err != nil {
		return err
	}
	printGame(w, r)
	return nil
}

func printGame(w io.Writer, r *sim.Result) {
	printScore(w, r)
	most := 0
	for _, m := range r.Rounds {
		most = max(most, m.MostOut)
	}
	mean := func(of func(sim.Round) float64) float64 { return r.Mean(1, of) }
	fmt.Fprintf(w, "bytes/round   per player %.0f out and %.0f in, at most %d out; leader %.0f out\n",
		mean(func(m sim.Round) float64 { return m.Out }), mean(func(m sim.Round) float64 { return m.In }), most,
		mean(func(m sim.Round) float64 { return float64(m.ServersOut) }))
}

// printScore prints the results except for bytes.
func printScore(w io.Writer, r *sim.Result) {
	settled := min(sim.SettledFrom, (len(r.Rounds)+1)/2)
	mean := func(of func(sim.Round) float64) float64 { return r.Mean(1, of) }
	fmt.Fprintf(w, "PQ            %.4f in all %d rounds, %.4f from round %d on\n", r.PQ(1), len(r.Rounds), r.PQ(settled), settled)
	fmt.Fprintf(w, "neighbors     %.1f in vision range, of whom %.2f %% are known\n",
		mean(func(m sim.Round) float64 { return m.Neighbors }), 100*mean(func(m sim.Round) float64 { return m.Known }))
}

func readMoves(path string) (*sim.Recorded, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open moves: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	return sim.ReadMoves(f)
}

// openLog creates both files in dir. done flushes and closes them.
func openLog(dir string, of *sim.Recorded) (log *sim.CSVLog, done func() error, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, fmt.Errorf("create log: %w", err)
	}
	deliveries, err := os.Create(filepath.Join(dir, "deliveries.csv"))
	if err != nil {
		return nil, nil, fmt.Errorf("create log: %w", err)
	}
	traffic, err := os.Create(filepath.Join(dir, "traffic.csv"))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("create log: %w", err), deliveries.Close())
	}
	log = sim.NewCSVLog(deliveries, traffic, of)
	return log, func() error { return errors.Join(log.Flush(), deliveries.Close(), traffic.Close()) }, nil
}

// runAll runs each trial of a figure with each seed, on all processors. A run is a pure function; the goroutines are
// started here, because floor 2 starts none.
func runAll(ctx context.Context, trials []sim.Trial, seed uint64, seeds int) ([][]*sim.Result, error) {
	results := make([][]*sim.Result, len(trials))
	errs := make([]error, len(trials)*seeds)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i, t := range trials {
		results[i] = make([]*sim.Result, seeds)
		for s := range seeds {
			slots <- struct{}{}
			if ctx.Err() != nil {
				all.Wait()
				return nil, ctx.Err()
			}
			all.Go(func() {
				defer func() { <-slots }()
				results[i][s], errs[i*seeds+s] = sim.Run(t.Config(seed + uint64(s)))
			})
		}
	}
	all.Wait()
	return results, errors.Join(errs...)
}
