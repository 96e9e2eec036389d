package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/bot"
	"github.com/voxelpopuli/voxeld/grid"
)

// newBot makes the command that loads a world with players who are programs.
func newBot() *cobra.Command {
	var o bot.Options
	var chunkAt []int32
	var csv, svg string
	var asJSON, quiet bool
	c := &cobra.Command{
		Use: "bot", Short: "Let bots play, and report what they felt",
		Long: "Lets a crowd of bots play on a running node, over the real protocols, in one of the three modes of\n" +
			"VoxelPopuli's test client: everybody in one chunk, over many chunks, or wandering through the network.\n" +
			"Reports rates, bytes, and the percentiles of how long edits and moves took.\n\n" +
			"With --protocol original each bot plays as VoxelPopuli's released client does:\n" +
			"- It loads 3×3 chunks around itself and keeps up to 9×9, each on a connection of its own, and one dht connection.\n" +
			"- It sends one move per frame (--rate is the frame rate), also while it stands still, and only to the chunk in\n" +
			"  which it stands. The other connections stay silent, except for block changes, which go to all chunks.\n" +
			"- A wandering bot enters the world where dht says, and falls to the ground. No ground in a column is a failure.\n" +
			"- When a server resets a connection, it asks dht again and reconnects. When a server closes one in any other\n" +
			"  way, the bot fails: the released client would hang. A refusal during play, which would stop that client too,\n" +
			"  is counted, and the bot asks again after 2 s.",
		Example: "  voxeld bot --players 50\n  voxeld bot --mode wander --protocol original --players 100 --duration 2m --svg wander.svg",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if len(chunkAt) != 2 {
				return usageError{errors.New("--chunk: want two numbers, X,Z")}
			}
			if err := checkCrowd(o); err != nil {
				return usageError{err}
			}
			if o.Rate == 0 {
				o.Rate = -1 // none; bot takes 0 for its default
			}
			o.Chunk = grid.ChunkPos{X: chunkAt[0], Z: chunkAt[1]}
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			showing := !quiet && !asJSON && isTerminal(c.ErrOrStderr())
			if showing {
				o.Progress = func(s bot.Second) {
					fmt.Fprintf(c.ErrOrStderr(), "\r%4.0f s  %d players  %d packets/s out, %d in ", float64(s.At), s.Players, s.Sent, s.Received)
				}
			}
			report, err := bot.Run(c.Context(), o)
			if showing {
				fmt.Fprintln(c.ErrOrStderr())
			}
			if err != nil {
				return err
			}
			return writeReport(c.OutOrStdout(), report, asJSON, csv, svg)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Target, "target", "127.0.0.1:4002", "host:port of a node's game server")
	f.StringVar((*string)(&o.Mode), "mode", string(bot.OneChunk), "one-chunk, many-chunks or wander")
	f.StringVar((*string)(&o.Protocol), "protocol", string(bot.Session), "session, or original (VoxelPopuli's own, played as its released client does)")
	f.StringVar((*string)(&o.Encoding), "encoding", string(bot.CBOR), "cbor or json (session)")
	f.IntVar(&o.Players, "players", 10, "how many bots")
	f.Float64Var(&o.Rate, "rate", 20, "moves a second of each bot (original: its frame rate); 0 for none")
	f.Float64Var(&o.Edits, "edits", 0, "block changes a second of each bot")
	f.Float64Var(&o.Speed, "speed", 4, "walking speed in blocks a second")
	f.DurationVar(&o.Duration, "duration", 30*time.Second, "how long they play")
	f.Float64Var(&o.Ramp, "ramp", 20, "bots that join a second")
	f.IntVar(&o.View, "view", 2, "view distance in chunks (session)")
	f.Int32SliceVar(&chunkAt, "chunk", []int32{0, 0}, "X,Z of the chunk in the middle")
	f.IntVar(&o.Chunks, "chunks", 9, "number of chunks of many-chunks")
	f.BoolVar(&o.Keep, "keep", false, "leave standing what they build; else they take it up again")
	f.Uint64Var(&o.Seed, "seed", 1, "of every random choice")
	f.StringVar(&csv, "csv", "", "write one row per second to this file")
	f.StringVar(&svg, "svg", "", "write a plot to this file")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	f.BoolVar(&quiet, "quiet", false, "show no progress (which is shown on terminals only)")
	return c
}

// checkCrowd refuses what bot.Options would take for "the default".
func checkCrowd(o bot.Options) error {
	for _, f := range []struct {
		flag  string
		value float64
	}{
		{"players", float64(o.Players)},
		{"duration", float64(o.Duration)},
		{"speed", o.Speed},
		{"ramp", o.Ramp},
		{"view", float64(o.View)},
		{"chunks", float64(o.Chunks)},
		{"seed", float64(o.Seed)},
	} {
		if f.value <= 0 {
			return fmt.Errorf("--%s: want more than 0", f.flag)
		}
	}
	if o.Rate < 0 {
		return errors.New("--rate: want 0 moves a second or more")
	}
	return nil
}

// isTerminal says whether w is a device that shows text to somebody, where a line can be written over.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func writeReport(out io.Writer, report bot.Report, asJSON bool, csv, svg string) error {
	for _, file := range []struct {
		path  string
		write func(io.Writer) error
	}{{csv, report.WriteCSV}, {svg, report.WriteSVG}} {
		if file.path == "" {
			continue
		}
		if err := writeFile(file.path, file.write); err != nil {
			return err
		}
	}
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(report)
	}
	return report.WriteTable(out)
}

// writeFile writes a file whole or not at all.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer f.Cleanup() //nolint:errcheck // after CloseAtomicallyReplace there is nothing to clean up
	if err := write(f); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.CloseAtomicallyReplace()
}
