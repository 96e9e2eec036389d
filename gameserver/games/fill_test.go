package games

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
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

// readBulk reads a bulk edit.
func readBulk(t *testing.T, a *Conn) sessionmsg.Bulk {
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
	return b
}

// arrive changes the land by a bulk edit, and has the blocks arrive, with some more after them.
func arrive(t *testing.T, a *Conn, land map[grid.Pos]chunk.Block, m sessionmsg.Bulk, more ...nodemsg.BlockAt) {
	t.Helper()
	runs, err := hex.DecodeString(m.Runs)
	if err != nil {
		t.Fatal(err)
	}
	d := sessionmsg.TickDelta{Chunk: grid.ChunkPos{X: m.X, Z: m.Z}}
	for to, from := range nodemsg.Bulk(runs).All() {
		if pos := to.At.Pos(d.Chunk); land[pos] != from {
			t.Errorf("at %v there is %v, not %v", pos, land[pos], from)
		}
		d.Blocks = append(d.Blocks, to)
	}
	d.Blocks = append(d.Blocks, more...)
	for _, b := range d.Blocks {
		land[b.At.Pos(d.Chunk)] = b.Block
	}
	if err := a.Send(sessionmsg.AppendDelta(sessionmsg.AppendTick(nil, 7), &d)); err != nil {
		t.Fatal(err)
	}
}

// makeBulk reads a bulk edit, whose blocks arrive before its answer.
func makeBulk(t *testing.T, a *Conn, land map[grid.Pos]chunk.Block) sessionmsg.Bulk {
	t.Helper()
	m := readBulk(t, a)
	arrive(t, a, land, m)
	return m
}

// A player fills what is between two corners, over the borders of chunks, and takes it back but for what others have
// changed since.
func TestFill(t *testing.T) {
	a, c, land := filler(t, 5000, "fill 40 2 -3 -3 0 3 Stone", "undo", "undo")
	pillar := grid.Pos{X: 1, Y: 2, Z: 1}
	land[pillar] = chunk.Stone
	var sent []sessionmsg.Bulk
	for range 6 { // three chunks from east to west, and two from north to south
		sent = append(sent, makeBulk(t, a, land))
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
		m := makeBulk(t, a, land)
		send(t, a, sessionmsg.Ack{Seq: m.Seq})
	}
	for pos, b := range land {
		if want := map[grid.Pos]chunk.Block{pillar: chunk.Stone, other: chunk.Lamp}[pos]; b != want {
			t.Errorf("at %v there is %v", pos, b)
		}
	}
	for range sent { // what was taken back can be taken back
		makeBulk(t, a, land)
	}
	if land[grid.Pos{X: -3, Y: 1, Z: -3}] != chunk.Stone {
		t.Error("undoing an undo has done nothing")
	}
}

// What was answered can be taken back before its blocks have arrived. Once they have, what others change counts.
func TestUndoBeforeBlocksArrive(t *testing.T) {
	a, c, land := filler(t, 5000, "fill 0 1 0 3 1 0 stone", "undo", "fill 0 1 0 3 1 0 lamp", "undo", "undo")
	first, last := grid.Pos{Y: 1}, grid.Pos{X: 3, Y: 1}
	answered := func() sessionmsg.Bulk {
		m := readBulk(t, a)
		send(t, a, sessionmsg.Ack{Seq: m.Seq})
		return m
	}
	filled, undone := answered(), answered()
	arrive(t, a, land, filled)
	arrive(t, a, land, undone)
	lit := answered()
	arrive(t, a, land, lit, nodemsg.BlockAt{At: chunk.At(last), Block: chunk.Brick}) // of somebody else
	answered()
	if land[last] != chunk.Brick {
		t.Fatalf("%v", land)
	}
	for x := range last.X {
		delete(land, grid.Pos{X: x, Y: 1})
	}
	send(t, a, sessionmsg.ChunkData{}) // as the undo has left it
	land[first] = chunk.Glass          // of somebody else
	if makeBulk(t, a, land); land[first] != chunk.Glass || land[grid.Pos{X: 1, Y: 1}] != chunk.Lamp {
		t.Errorf("the undo of the undo leaves %v; the player is told %q", land, c.told)
	}
}

// An operation that has changed nothing leaves what /undo takes back.
func TestUndoAfterRefusal(t *testing.T) {
	a, _, land := filler(t, 5000, "fill 0 1 0 0 1 0 stone", "fill 5 1 5 5 1 5 stone", "undo")
	send(t, a, sessionmsg.Ack{Seq: makeBulk(t, a, land).Seq})
	send(t, a, sessionmsg.Ack{Seq: readBulk(t, a).Seq, Error: wire.RefusedClaimed})
	if makeBulk(t, a, land); land[grid.Pos{Y: 1}] != chunk.Air {
		t.Errorf("what was filled first is %v", land[grid.Pos{Y: 1}])
	}
}

// What was refused of an /undo can be taken back later.
func TestUndoInPart(t *testing.T) {
	a, c, land := filler(t, 5000, "fill 0 1 0 32 1 0 stone", "undo", "undo")
	var undo [2]sessionmsg.Bulk
	for range undo {
		send(t, a, sessionmsg.Ack{Seq: makeBulk(t, a, land).Seq})
	}
	for i := range undo {
		undo[i] = readBulk(t, a)
	}
	arrive(t, a, land, undo[0])
	send(t, a, sessionmsg.Ack{Seq: undo[0].Seq})
	send(t, a, sessionmsg.Ack{Seq: undo[1].Seq, Error: wire.RefusedRate})
	const want = "32 blocks were changed. 1 were not: You have changed as many blocks as you may for now: try again later."
	if told := c.told[len(c.told)-1]; told != want {
		t.Errorf("the player is told %q, want %q", told, want)
	}
	makeBulk(t, a, land)
	for pos, b := range land {
		if b != chunk.Air {
			t.Errorf("at %v there is %v", pos, b)
		}
	}
}

// The answers come in any order.
func TestUndoAfterAnswersInAnyOrder(t *testing.T) {
	a, _, land := filler(t, 5000, "fill 0 1 0 15 9 15 stone", "undo")
	first, second := makeBulk(t, a, land), makeBulk(t, a, land)
	send(t, a, sessionmsg.Ack{Seq: second.Seq})
	send(t, a, sessionmsg.Ack{Seq: first.Seq})
	makeBulk(t, a, land)
	makeBulk(t, a, land)
	for pos, b := range land {
		if b != chunk.Air {
			t.Errorf("at %v there is %v", pos, b)
		}
	}
}

// Whoever has filled nothing, or names a rollback, undoes a rollback.
func TestUndoOfRollbacks(t *testing.T) {
	const fill, undo = "fill 0 1 0 0 1 0 stone", "undo"
	for _, atOnce := range []int{0, 99} {
		a, _, land := filler(t, atOnce, undo, "help undo", fill, "undo 3", undo)
		pass := func(text string) {
			t.Helper()
			data, err := a.Read()
			if err != nil {
				t.Fatal(err)
			}
			if m, err := sessionmsg.DecodeClientCBOR(data); err != nil || m != (sessionmsg.Command{Text: text}) {
				t.Errorf("of %d blocks, %q is sent as %+v, %v", atOnce, text, m, err)
			}
		}
		pass(undo)
		pass("help undo")
		if atOnce > 0 {
			send(t, a, sessionmsg.Ack{Seq: makeBulk(t, a, land).Seq})
		}
		pass("undo 3")
		if atOnce > 0 {
			makeBulk(t, a, land)
		} else {
			pass(undo)
		}
	}
}

// Operations are bounded, one by one, and say what was refused.
func TestFillIsBounded(t *testing.T) {
	a, c, _ := filler(t, 1<<17, "fill 0 1 0 40 60 30 stone", "fill 0 1 0 0 1 0 lamp")
	var sent []sessionmsg.Bulk
	for range maxUnderWay {
		sent = append(sent, readBulk(t, a))
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
		if len(sent) < 30+9 { // of two chunks
			sent = append(sent, readBulk(t, a))
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
		"help fill":                               usageFill,
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

// A client has the land looked at five times at once.
func TestFillsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nothing = "fill 0 0 0 9 0 1 stone"
		a, c, _ := filler(t, 99, nothing, nothing, nothing, nothing, nothing, nothing)
		if _, err := a.Read(); !errors.Is(err, io.EOF) || c.told[len(c.told)-1] != "Wait a moment." {
			t.Errorf("the player is told %q, %v", c.told, err)
		}
	})
}
