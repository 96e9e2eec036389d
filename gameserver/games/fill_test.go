package games

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// filler returns a client whose role may change so many blocks at once, in a land of air on bedrock, 64 blocks high; and
// its land, as far as it has changed.
func filler(t *testing.T, atOnce int, typed ...string) (*Conn, *typist, map[grid.Pos]chunk.Block) {
	t.Helper()
	a, c := connFor("ada", nil, typed...)
	changed := make(map[grid.Pos]chunk.Block)
	c.land = func(pos grid.Pos) (chunk.Block, bool) {
		b, is := changed[pos]
		if !is && pos.Y == 0 {
			b = chunk.Bedrock
		}
		return b, pos.Y >= 0 && pos.Y < 64 && pos.X < 200
	}
	enter(t, a)
	c.edits.Begin(100, time.Now())
	send(t, a, sessionmsg.Permissions{Bulk: atOnce})
	return a, c, changed
}

// readBulk reads a bulk edit, and changes the land.
func readBulk(t *testing.T, a *Conn, land map[grid.Pos]chunk.Block) sessionmsg.Bulk {
	t.Helper()
	data, err := a.Read()
	if err != nil {
		t.Fatal(err)
	}
	m, err := sessionmsg.DecodeClientCBOR(data)
	b, is := m.(sessionmsg.Bulk)
	if err != nil || !is {
		t.Fatalf("the session is sent %+v, %v", m, err)
	}
	runs, err := hex.DecodeString(b.Runs)
	if err != nil {
		t.Fatal(err)
	}
	for to, from := range nodemsg.Bulk(runs).All() {
		pos := to.At.Pos(grid.ChunkPos{X: b.X, Z: b.Z})
		if land[pos] != from {
			t.Errorf("at %v there is %v, not %v", pos, land[pos], from)
		}
		land[pos] = to.Block
	}
	return b
}

// A player fills what is between two corners, over the borders of chunks, and takes it back but for what others have
// changed since.
func TestFill(t *testing.T) {
	a, c, land := filler(t, 5000, "fill 40 2 -3 -3 0 3 Stone", "undo", "undo")
	pillar := grid.Pos{X: 1, Y: 2, Z: 1}
	land[pillar] = chunk.Stone
	var sent []sessionmsg.Bulk
	for range 6 { // three chunks from east to west, and two from north to south
		sent = append(sent, readBulk(t, a, land))
	}
	for i, m := range sent {
		if m.Seq != 100+uint64(i) {
			t.Errorf("bulk edit %d has the number %d", i, m.Seq)
		}
		send(t, a, sessionmsg.Ack{Seq: m.Seq})
	}
	const blocks = 44*7*2 - 1 // bedrock stays, and the pillar is there
	if want := fmt.Sprint(blocks, " blocks were changed."); c.told[len(c.told)-1] != want || len(land) != blocks+1 {
		t.Errorf("%d blocks are filled; the player is told %q, want %q", len(land), c.told, want)
	}
	other := grid.Pos{X: 40, Y: 1, Z: 3}
	land[other] = chunk.Lamp
	for range sent {
		m := readBulk(t, a, land)
		send(t, a, sessionmsg.Ack{Seq: m.Seq})
	}
	for pos, b := range land {
		if want := map[grid.Pos]chunk.Block{pillar: chunk.Stone, other: chunk.Lamp}[pos]; b != want {
			t.Errorf("at %v there is %v", pos, b)
		}
	}
	for range sent { // what was taken back can be taken back
		readBulk(t, a, land)
	}
	if land[grid.Pos{X: -3, Y: 1, Z: -3}] != chunk.Stone {
		t.Error("undoing an undo has done nothing")
	}
}

// An operation that has changed nothing leaves what /undo takes back.
func TestUndoAfterRefusal(t *testing.T) {
	a, _, land := filler(t, 5000, "fill 0 1 0 0 1 0 stone", "fill 5 1 5 5 1 5 stone", "undo")
	send(t, a, sessionmsg.Ack{Seq: readBulk(t, a, land).Seq})
	refused := readBulk(t, a, land)
	delete(land, grid.Pos{X: 5, Y: 1, Z: 5})
	send(t, a, sessionmsg.Ack{Seq: refused.Seq, Error: wire.RefusedClaimed})
	if readBulk(t, a, land); land[grid.Pos{Y: 1}] != chunk.Air {
		t.Errorf("what was filled first is %v", land[grid.Pos{Y: 1}])
	}
}

// Operations are bounded, one by one, and say what was refused.
func TestFillIsBounded(t *testing.T) {
	a, c, land := filler(t, 1<<16, "fill 0 1 0 40 40 30 stone", "fill 0 1 0 0 1 0 lamp")
	var sent []sessionmsg.Bulk
	for range maxUnderWay {
		sent = append(sent, readBulk(t, a, land))
	}
	if _, err := a.Read(); !errors.Is(err, io.EOF) || c.told[len(c.told)-1] != "The last one is not done yet." {
		t.Errorf("beside an operation the player is told %q, %v", c.told, err)
	}
	for i := 0; i < len(sent); i++ {
		refused := ""
		if i%2 == 0 {
			refused = wire.RefusedClaimed
		}
		send(t, a, sessionmsg.Ack{Seq: sent[i].Seq, Error: refused})
		if len(sent) < 20+6 { // of two chunks
			sent = append(sent, readBulk(t, a, land))
		}
	}
	if last := c.told[len(c.told)-1]; !strings.Contains(last, " were not: That is another player's claim.") {
		t.Errorf("the player is told %q of %d bulk edits", last, len(sent))
	}
}

// What cannot be filled is answered with the reason.
func TestFillIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"fill 0 1 0 9 1 9 stone":                  "That has 100 blocks. You may change 99 at once.",
		"fill -2147483648 0 0 2147483647 1 1 air": "You may change 99",
		"fill 0 1 0 9 1 stone":                    "/fill X Y Z X Y Z BLOCK",
		"fill 0 1 0 9 1 1e3 stone":                "/fill X Y Z X Y Z BLOCK",
		"fill 0 1 0 9 1 1 cheese":                 "There is no block cheese.",
		"fill 0 1 0 9 1 1 bedrock":                "There is no block bedrock.",
		"fill 198 1 0 201 1 0 stone":              "not in view",
		"fill 0 60 0 0 64 0 stone":                "not in view",
		"fill 0 0 0 9 0 1 stone":                  "nothing to change",
		"undo":                                    "nothing to change",
	} {
		a, c, _ := filler(t, 99, text)
		if _, err := a.Read(); !errors.Is(err, io.EOF) || !strings.Contains(c.told[len(c.told)-1], want) {
			t.Errorf("%q is answered by %q, want %q", text, c.told, want)
		}
	}
	a, c, _ := filler(t, 0, "fill 0 1 0 0 1 0 stone")
	if _, err := a.Read(); !errors.Is(err, io.EOF) || !strings.Contains(c.told[len(c.told)-1], "Your role may not") {
		t.Errorf("a role that may not is answered by %q", c.told)
	}
}
