package bot

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Mode is where the players go.
type Mode string

// The modes of the dissertation's test client (§3.4.3).
const (
	OneChunk   Mode = "one-chunk"   // all players in Options.Chunk
	ManyChunks Mode = "many-chunks" // evenly over Options.Chunks chunks around Options.Chunk
	Wander     Mode = "wander"      // over the land, from server to server
)

// Protocol is the protocol that the players use.
type Protocol string

// The two protocols of docs/protocol.md.
const (
	Session  Protocol = "session"
	Original Protocol = "original"
)

// Encoding is the encoding of session messages.
type Encoding string

// The two encodings of docs/protocol.md.
const (
	CBOR Encoding = sessionmsg.EncodingCBOR
	JSON Encoding = sessionmsg.EncodingJSON
)

// Bounds of the options, to catch typing errors.
const (
	maxPlayers = 20_000
	maxRate    = 1_000
)

// Options configure the load. The zero value of a field means its default.
type Options struct {
	Target   string        // host:port of a game server; in sessions also the URL of a WebSocket; default see DefaultTarget
	Mode     Mode          // default OneChunk
	Protocol Protocol      // default Session
	Encoding Encoding      // session only; default CBOR
	Players  int           // default 10
	Rate     float64       // moves per second and player, in the original protocol its frames; default 20; negative: none
	Edits    float64       // block changes per second and player; default none
	Speed    float64       // walking speed in blocks per second; default 4
	Duration time.Duration // measured from the first join on, the ramp included; default 30 s
	Ramp     float64       // players joining per second; default 20
	View     int           // view distance in chunks, session only; default 2
	Chunk    grid.ChunkPos // the middle of one-chunk and many-chunks; session players walk there from the spawn
	Chunks   int           // number of chunks of many-chunks; default 9
	Keep     bool          // leave placed blocks; by default bots remove them again
	Seed     uint64        // of every random choice; default 1
	Timeout  time.Duration // for one dial, handshake or write; default 10 s

	// Acked, if not nil, is called for every acknowledged edit. Session only; each player calls it from its own
	// goroutine.
	Acked func(player string, seq uint64, pos grid.Pos, block chunk.Block)
	// Timed, if not nil, is called likewise, with the time at which the edit was sent first, and that at which the answer arrived.
	Timed    func(pos grid.Pos, sent, answered time.Time)
	Logger   *slog.Logger // default: discard
	Progress func(Second) // called once a second from one goroutine, if not nil
}

// DefaultTarget returns the target on this machine in which players of a protocol are like real ones: sessions are those of pages.
func DefaultTarget(p Protocol) string {
	if p == Original {
		return "127.0.0.1:4002"
	}
	return sessionclient.Page("127.0.0.1:8080")
}

// withDefaults returns the options with every zero field replaced by its default.
func (o Options) withDefaults() Options {
	def(&o.Mode, OneChunk)
	def(&o.Protocol, Session)
	def(&o.Target, DefaultTarget(o.Protocol))
	def(&o.Encoding, CBOR)
	def(&o.Players, 10)
	def(&o.Rate, 20)
	def(&o.Speed, 4)
	def(&o.Duration, 30*time.Second)
	def(&o.Ramp, 20)
	def(&o.View, 2)
	def(&o.Chunks, 9)
	def(&o.Seed, 1)
	def(&o.Timeout, 10*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate returns an error if the options, with defaults applied, are invalid.
func (o Options) Validate() error {
	o = o.withDefaults()
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(o.Mode == OneChunk || o.Mode == ManyChunks || o.Mode == Wander,
		"mode %q: want %s, %s or %s", o.Mode, OneChunk, ManyChunks, Wander)
	check(o.Protocol == Session || o.Protocol == Original,
		"protocol %q: want %s or %s", o.Protocol, Session, Original)
	check(o.Encoding == CBOR || o.Encoding == JSON, "encoding %q: want %s or %s", o.Encoding, CBOR, JSON)
	check(o.Players > 0 && o.Players <= maxPlayers, "players %d: want 1 to %d", o.Players, maxPlayers)
	check(o.Rate <= maxRate, "rate %g: want at most %d moves a second", o.Rate, maxRate)
	check(o.Edits >= 0 && o.Edits <= maxRate, "edits %g: want 0 to %d a second", o.Edits, maxRate)
	check(o.Speed > 0 && o.Speed <= 100, "speed %g: want up to 100 blocks a second", o.Speed)
	check(o.Duration > 0, "duration %s: want more than 0", o.Duration)
	check(o.Ramp > 0, "ramp %g: want more than 0 players a second", o.Ramp)
	check(o.View >= 1 && o.View <= wire.MaxView, "view %d: want 1 to %d chunks", o.View, wire.MaxView)
	check(o.Chunk.Valid(), "chunk %v: out of the world", o.Chunk)
	check(o.Chunks > 0 && o.Chunks <= maxPlayers, "chunks %d: want 1 to %d", o.Chunks, maxPlayers)
	check(o.Timeout > 0, "timeout %s: want more than 0", o.Timeout)
	return errors.Join(errs...)
}

// name returns the name of the i-th player. Names differ between seeds, so that two runs can share a world.
func (o Options) name(i int) string {
	return "bot-" + strconv.FormatUint(o.Seed%(36*36*36*36), 36) + "-" + strconv.Itoa(i)
}

// homeOf returns the chunk of the i-th player in the modes in which a player stays in one.
func (o Options) homeOf(i int) grid.ChunkPos {
	if o.Mode != ManyChunks {
		return o.Chunk
	}
	side := 1
	for side*side < o.Chunks {
		side++
	}
	n := i % o.Chunks
	return grid.ChunkPos{
		X: o.Chunk.X + int32(n%side-side/2),
		Z: o.Chunk.Z + int32(n/side-side/2),
	}
}
