package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bot"
	"github.com/voxelpopuli/voxeld/wire"
)

// newBot returns the command that runs load bots against a world.
func newBot() *cobra.Command {
	var o bot.Options
	var chunkAt []int32
	var asJSON, quiet bool
	var carrier string
	c := &cobra.Command{
		Use: "bot", Short: "Run load bots and report latency and throughput",
		Long: "Runs bots against a running node, over the protocols of real players, in one of the three modes of\n" +
			"VoxelPopuli's test client: all in one chunk, spread over many chunks, or wandering through the network.\n" +
			"Reports rates, bytes, and the percentiles of the latency of edits and moves.\n\n" +
			"With --protocol original each bot behaves as VoxelPopuli's released client does:\n" +
			"- It loads 3×3 chunks around itself and keeps up to 9×9, each on its own connection, and one dht connection.\n" +
			"- It sends one move per frame (--rate is the frame rate), even while it stands still, and only to the chunk in\n" +
			"  which it stands. The other connections stay silent, except for block changes, which go to all chunks.\n" +
			"- A wandering bot enters the world at the place that dht returns, and falls to the ground. A column without\n" +
			"  ground is a failure.\n" +
			"- When a server resets a connection, the bot asks dht again and reconnects. When a server closes one in any\n" +
			"  other way, refuses one, cannot be reached, or ends the dht connection, the bot fails, because the released\n" +
			"  client would hang or stop.",
		Example: "  voxeld bot --players 50\n  voxeld bot --mode wander --protocol original --players 100 --duration 2m",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if len(chunkAt) != 2 {
				return cli.Usage(errors.New("--chunk: want two numbers, X,Z"))
			}
			if err := checkCrowd(o); err != nil {
				return cli.Usage(err)
			}
			if err := aim(&o, carrier); err != nil {
				return cli.Usage(err)
			}
			if o.Rate == 0 {
				o.Rate = -1 // none; bot reads 0 as its default
			}
			o.Chunk = grid.ChunkPos{X: chunkAt[0], Z: chunkAt[1]}
			if err := o.Validate(); err != nil {
				return cli.Usage(err)
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
			if asJSON {
				return cli.PrintJSON(c.OutOrStdout(), report)
			}
			return report.WriteTable(c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&o.Target, "target", "", "`host:port` of a node's HTTP server, or of its game server for what is carried over TCP, or the URL of a\n"+
		"WebSocket, ws:// or wss:// (default: this machine, with the usual port)")
	f.StringVar(&carrier, "carrier", carrierWebSocket, "what carries sessions: websocket, as for pages in a browser, or tcp")
	f.StringVar((*string)(&o.Mode), "mode", string(bot.OneChunk), "what the bots do: one-chunk, many-chunks or wander")
	f.StringVar((*string)(&o.Protocol), "protocol", string(bot.Session), "protocol: session, or original (that of VoxelPopuli's released client)")
	f.StringVar((*string)(&o.Encoding), "encoding", string(bot.CBOR), "encoding of the session protocol: cbor or json")
	f.IntVar(&o.Players, "players", 10, "number of bots")
	f.Float64Var(&o.Rate, "rate", 20, "moves per second of each bot (original: its frame rate); 0 disables movement")
	f.Float64Var(&o.Edits, "edits", 0, "block changes per second of each bot")
	f.Float64Var(&o.Speed, "speed", 4, "walking speed, in blocks per second")
	f.DurationVar(&o.Duration, "duration", 30*time.Second, "duration of the run")
	f.Float64Var(&o.Ramp, "ramp", 20, "number of bots that join per second")
	f.IntVar(&o.View, "view", 2, "view distance, in chunks (session protocol)")
	f.Int32SliceVar(&chunkAt, "chunk", []int32{0, 0}, "`X,Z` of the central chunk")
	f.IntVar(&o.Chunks, "chunks", 9, "number of chunks in the mode many-chunks")
	f.BoolVar(&o.Keep, "keep", false, "keep the blocks that the bots place; by default they remove them again")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of all random choices")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON, with a row for each second")
	f.BoolVar(&quiet, "quiet", false, "do not show progress; it is shown on terminals only")
	return c
}

// What carries sessions.
const (
	carrierWebSocket = "websocket"
	carrierTCP       = "tcp"
)

// aim sets the target for the carrier: the original protocol is always over TCP.
func aim(o *bot.Options, carrier string) error {
	isURL := strings.Contains(o.Target, "://")
	switch {
	case carrier != carrierWebSocket && carrier != carrierTCP:
		return fmt.Errorf("--carrier %s: want %s or %s", carrier, carrierWebSocket, carrierTCP)
	case isURL && (carrier == carrierTCP || o.Protocol == bot.Original):
		return fmt.Errorf("--target %s: want host:port, as TCP carries the players", o.Target)
	case isURL:
		return wire.CheckURL(o.Target, "ws", "wss")
	case o.Target == "" && carrier == carrierTCP:
		o.Target = bot.DefaultTarget(bot.Original)
	case o.Target != "" && carrier == carrierWebSocket && o.Protocol != bot.Original:
		o.Target = "ws://" + o.Target + "/ws"
	}
	return nil
}

// checkCrowd refuses values that bot.Options would read as "the default".
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

// isTerminal reports whether w is a terminal, where a line can be overwritten.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
