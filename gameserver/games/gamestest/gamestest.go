// Package gamestest has what tests of the adapters of other games share: a player at a place, land, and what their
// session sends and reads.
package gamestest

import (
	"bytes"
	"math"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Start is where the player of Welcome is: on a Floor.
var Start = motion.Pose{X: 1.5, Y: 10, Z: 2.5}

// Welcome is that of a player ada.
var Welcome = sessionmsg.Welcome{
	Player: "000102030405060708090a0b0c0d0e0f", Name: "ada", WorldName: "test", View: 1, Sections: 1, NextSeq: 100, Reach: 8, Pose: Start, DayMS: 1000,
}

// Open opens a connection whose client logs in as ada, and welcomes her.
func Open[C games.Client](t testing.TB, p games.Protocol, c net.Conn) C {
	t.Helper()
	client, join, err := p.Open(t.Context(), c)
	if err != nil || join.Name != Welcome.Name {
		t.Fatalf("join %+v, %v", join, err)
	}
	Receive(t, client, Welcome)
	return client.(C)
}

// Script is a connection whose client has sent everything already.
type Script struct {
	net.Conn
	in  *bytes.Reader
	Out bytes.Buffer
}

// NewScript returns a connection whose client has sent some bytes.
func NewScript(sent ...[]byte) *Script {
	return &Script{in: bytes.NewReader(bytes.Join(sent, nil))}
}

func (s *Script) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *Script) Write(b []byte) (int, error) { return s.Out.Write(b) }

// SetWriteDeadline does nothing.
func (s *Script) SetWriteDeadline(time.Time) error { return nil }

// ChunkData returns a chunk with the blocks.
func ChunkData(t testing.TB, at grid.ChunkPos, blocks []chunk.Block) sessionmsg.ChunkData {
	t.Helper()
	c, err := chunk.FromBlocks(blocks)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := c.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := wire.PackChunk(plain)
	if err != nil {
		t.Fatal(err)
	}
	return sessionmsg.ChunkData{Chunk: at, Data: packed}
}

// Floor returns a chunk with stone up to height 9.
func Floor(t testing.TB, at grid.ChunkPos) sessionmsg.ChunkData {
	t.Helper()
	blocks := make([]chunk.Block, chunk.SectionBlocks)
	for i := range chunk.IndexOf(0, 10, 0) {
		blocks[i] = chunk.Stone
	}
	return ChunkData(t, at, blocks)
}

// Receive sends a client a message of its session.
func Receive(t testing.TB, c games.Client, m sessionmsg.FromServer) {
	t.Helper()
	if err := c.Send(m); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
}

// ReceiveDelta sends a client a tick frame with the changes of a chunk.
func ReceiveDelta(t testing.TB, c games.Client, tick uint64, d sessionmsg.TickDelta) {
	t.Helper()
	if err := c.SendTick(sessionmsg.AppendDelta(sessionmsg.AppendTick(nil, tick), &d)); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
}

// Entering returns the changes of a chunk that so many players enter, or are put, at an X in it.
func Entering(n int, x float64) (d sessionmsg.TickDelta) {
	for i := range n {
		d.Enter = append(d.Enter, sessionmsg.TickAvatar{
			Index: uint32(i), Player: player.ID{1, byte(i), byte(i >> 8)}, Name: "p", Place: sessionmsg.PlaceOf(grid.ChunkPos{}, motion.Pose{X: x, Y: 10, Z: 3}),
		})
	}
	return d
}

// ReceiveBlocks sends a client blocks that have changed, all of one chunk.
func ReceiveBlocks(t testing.TB, c games.Client, changes ...games.Change) {
	t.Helper()
	d := sessionmsg.TickDelta{Chunk: changes[0].Pos.Chunk()}
	for _, change := range changes {
		if at := change.Pos.Chunk(); at != d.Chunk {
			t.Fatalf("a block of %v changes with those of %v", at, d.Chunk)
		}
		d.Blocks = append(d.Blocks, nodemsg.BlockAt{At: chunk.At(change.Pos), Block: change.To})
	}
	ReceiveDelta(t, c, 7, d)
}

// Tick sends a client what a time brings.
func Tick(t testing.TB, c games.Client, now time.Time) {
	t.Helper()
	if err := c.Tick(now); err != nil {
		t.Fatal(err)
	}
}

// Read returns the next message of a client; stances in between are left out.
func Read[M sessionmsg.FromClient](t testing.TB, c games.Client) M {
	t.Helper()
	for {
		m, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := m.(M); ok {
			return got
		}
		if _, ok := m.(sessionmsg.Stance); !ok {
			t.Fatalf("the client sends %#v", m)
		}
	}
}

// ReadEdits reads the first edits of a session, which must make some changes.
func ReadEdits(t testing.TB, c games.Client, changes ...games.Change) {
	t.Helper()
	for i, want := range changes {
		e := Read[sessionmsg.Edit](t, c)
		got := games.Change{Pos: grid.Pos{X: e.X, Y: e.Y, Z: e.Z}, To: chunk.Block(e.Block), Text: e.Text}
		if number := Welcome.NextSeq + uint64(i); !reflect.DeepEqual(got, want) || e.Seq != number {
			t.Errorf("edit %d is %v, want %v as %d", e.Seq, got, want, number)
		}
	}
}

// CheckLook checks the direction in which a player looks, as docs/protocol.md has it.
func CheckLook(t testing.TB, p motion.Pose, want [3]float64) {
	t.Helper()
	yaw, pitch := float64(p.Yaw), float64(p.Pitch)
	got := [3]float64{-math.Sin(yaw) * math.Cos(pitch), math.Sin(pitch), math.Cos(yaw) * math.Cos(pitch)}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-6 {
			t.Errorf("yaw %v and pitch %v look along %v, want %v", yaw, pitch, got, want)
			return
		}
	}
}

// CheckMessage checks that a session takes a message.
func CheckMessage(t testing.TB, m sessionmsg.FromClient) {
	t.Helper()
	data, err := sessionmsg.EncodeClientCBOR(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sessionmsg.DecodeClientCBOR(data); err != nil {
		t.Fatalf("%#v is refused: %v", m, err)
	}
}

// CheckMessages reads all that a client sends, and checks that a session takes it, and that it is not more messages
// than a bound.
func CheckMessages(t testing.TB, c games.Client, most int) {
	t.Helper()
	for n := 0; ; n++ {
		m, err := c.Read()
		if err != nil {
			return
		}
		if n >= most {
			t.Fatalf("more than %d messages", most)
		}
		CheckMessage(t, m)
	}
}
