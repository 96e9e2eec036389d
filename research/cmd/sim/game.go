package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/overlay/psense"

	"github.com/voxelpopuli/voxeld/research/sim"
)

// simOptions are the flags of the sim commands.
type simOptions struct {
	report
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
	c.Options.OwnFirst = o.ownFirst
	if o.improved {
		c.Options = psense.Improved(o.vision, overlay.FirstServer)
		c.Options.Introductions = o.leader
	}
	c.Options.Cap, c.Options.Header, c.Options.Interaction = o.limit, o.header, o.interaction
	if err := c.Options.Validate(); err != nil {
		return err
	}
	recorded, err := o.recorded()
	if err != nil {
		return err
	}
	if recorded != nil {
		c.Moves, c.Rounds = recorded, min(o.rounds, recorded.Rounds())
	}
	return play(w, c.Config(o.seed), recorded, o)
}

// recorded checks --game, and returns the movement of --moves; nil without it.
func (o *simOptions) recorded() (*sim.Recorded, error) {
	if o.game != "random" && o.game != "hotspot" {
		return nil, fmt.Errorf("--game: there is no game %q", o.game)
	}
	if o.moves == "" {
		return nil, nil
	}
	recorded, err := readMoves(o.moves)
	if err == nil && recorded.Rounds() < 1 {
		err = errors.New("--moves: the file must have two rounds or more")
	}
	return recorded, err
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
