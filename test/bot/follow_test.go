package bot

import (
	"bufio"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// fakeGateway is a gateway that welcomes every player on flat ground and answers edits as the test says.
type fakeGateway struct {
	t        *testing.T
	address  string
	sendOn   *sessionmsg.Reconnect          // the answer to the first edit; nil: an acknowledgement
	instead  bool                           // sendOn comes instead of a welcome
	answer   func(seq uint64, n int) string // the code that refuses the n-th attempt of an edit; empty: none
	visitors sync.WaitGroup

	mu    sync.Mutex
	edits []sessionmsg.Edit
	joins int
}

func (h *fakeGateway) open() *fakeGateway {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	h.address = l.Addr().String()
	h.visitors.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.visitors.Go(func() { h.serve(c) })
		}
	})
	h.t.Cleanup(func() { l.Close(); h.visitors.Wait() })
	return h
}

func (h *fakeGateway) serve(c net.Conn) {
	defer c.Close()
	send := func(m sessionmsg.FromServer) {
		text, err := sessionmsg.EncodeServer(m)
		if err != nil {
			h.t.Error(err)
		}
		c.Write(append(text, '\n')) //nolint:errcheck // the player may have gone
	}
	asked := make(map[uint64]int)
	for in := bufio.NewReader(c); ; {
		line, err := wire.ReadLine(in, wire.MaxLine)
		if err != nil {
			return
		}
		m, err := sessionmsg.DecodeClient(line)
		if err != nil {
			h.t.Error(err)
			return
		}
		switch m := m.(type) {
		case sessionmsg.Join:
			h.mu.Lock()
			h.joins++
			h.mu.Unlock()
			if h.instead {
				send(*h.sendOn)
				continue
			}
			send(sessionmsg.Welcome{Version: sessionmsg.SessionVersion, Player: "6b", Name: m.Name, NextSeq: 100, Pose: motion.Pose{X: 8, Y: 10, Z: 8}, View: 1, Reach: 8})
			for x := int32(-1); x <= 1; x++ {
				for z := int32(-1); z <= 1; z++ {
					send(flatLand(h.t, grid.ChunkPos{X: x, Z: z}))
				}
			}
		case sessionmsg.Edit:
			h.mu.Lock()
			h.edits = append(h.edits, m)
			h.mu.Unlock()
			if h.sendOn != nil {
				send(*h.sendOn)
				continue
			}
			ack := sessionmsg.Ack{Seq: m.Seq, Block: m.Block}
			if asked[m.Seq]++; h.answer != nil {
				ack.Error = h.answer(m.Seq, asked[m.Seq])
			}
			send(ack)
		}
	}
}

func flatLand(t *testing.T, at grid.ChunkPos) sessionmsg.ChunkData {
	c, err := chunk.FromBlocks(make([]chunk.Block, chunk.SectionBlocks))
	if err != nil {
		t.Error(err)
	}
	for x := range int32(32) {
		for z := range int32(32) {
			c.Set(chunk.At(grid.Pos{X: x, Y: 9, Z: z}), chunk.Stone)
		}
	}
	encoded, err := c.MarshalBinary()
	if err != nil {
		t.Error(err)
	}
	packed, err := wire.PackChunk(encoded)
	if err != nil {
		t.Error(err)
	}
	return sessionmsg.ChunkData{Chunk: at, Data: packed}
}

func homesOf(addresses ...string) *sessionmsg.Reconnect {
	r := &sessionmsg.Reconnect{Gateways: []wire.Gateway{}, Reason: "test"}
	for _, a := range addresses {
		r.Gateways = append(r.Gateways, wire.Gateway{URL: "ws://" + a + "/ws", Game: a})
	}
	return r
}

// deadAddress returns an address at which nothing listens.
func deadAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

func playAt(t *testing.T, target string) (Report, error) {
	return Run(t.Context(), Options{Encoding: JSON, Target: target, Mode: Wander, Players: 1, Edits: 10, Keep: true, View: 1, Duration: 1500 * time.Millisecond})
}

// A redirected player skips gateways that cannot be reached. At the next one they send the unanswered edit first,
// under its number, and repeat it while it cannot be accepted.
func TestPlayersFollow(t *testing.T) {
	second := (&fakeGateway{t: t, answer: func(_ uint64, n int) string {
		if n == 1 {
			return wire.RefusedNotLoaded
		}
		return ""
	}}).open()
	hop := (&fakeGateway{t: t, instead: true, sendOn: homesOf(deadAddress(t), second.address)}).open()
	first := (&fakeGateway{t: t, sendOn: homesOf(deadAddress(t), hop.address)}).open()
	r, err := playAt(t, first.address)
	if err != nil {
		t.Fatal(err)
	}
	if r.Moved != 1 || r.Lost != 0 || r.Failed != 0 || r.EditsLost != 0 || r.Joined != 1 || r.Move.Count != 1 {
		t.Errorf("report: moved %d, lost %d, failed %d, edits lost %d, joined %d, %+v", r.Moved, r.Lost, r.Failed, r.EditsLost, r.Joined, r.Move)
	}
	if len(first.edits) != 1 || len(second.edits) < 3 {
		t.Fatalf("%d edits at the first home, %d at the second", len(first.edits), len(second.edits))
	}
	if second.edits[0] != first.edits[0] {
		t.Errorf("first at the new home: %+v, want %+v", second.edits[0], first.edits[0])
	}
	seen := 0
	for _, e := range second.edits {
		if e == first.edits[0] {
			seen++
		}
	}
	if seen != 2 {
		t.Errorf("the edit was asked for %d times at the new home, want 2", seen)
	}
}

// If no gateway is left, or none is named, the player is lost, and so are the edits without an answer.
func TestPlayersWithoutAHomeAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		sendOn  *sessionmsg.Reconnect
		because string
	}{
		"none given":      {homesOf(), "sent away"},
		"round and round": {nil, "sent away"},
	} {
		t.Run(name, func(t *testing.T) {
			first := &fakeGateway{t: t, sendOn: c.sendOn}
			if c.sendOn == nil {
				round := &fakeGateway{t: t, instead: true}
				round.open()
				round.sendOn = homesOf(round.address)
				first.sendOn = round.sendOn
			}
			r, err := playAt(t, first.open().address)
			if err != nil {
				t.Fatal(err)
			}
			if r.Moved != 0 || r.Lost != 1 || r.EditsLost != 1 || r.Failures[c.because] != 1 {
				t.Errorf("moved %d, lost %d (%v), edits lost %d", r.Moved, r.Lost, r.Failures, r.EditsLost)
			}
		})
	}
}

// After the last named gateway the player tries the address at which they began.
func TestPlayersFallBack(t *testing.T) {
	first := &fakeGateway{t: t, sendOn: homesOf(deadAddress(t))}
	first.open()
	r, err := playAt(t, first.address)
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost != 0 && r.Moved == 0 || first.joins < 2 {
		t.Errorf("%d joins at the start, moved %d, lost %d (%v)", first.joins, r.Moved, r.Lost, r.Failures)
	}
}
