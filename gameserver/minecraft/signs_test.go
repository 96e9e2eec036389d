package minecraft

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/gameserver/games/gamestest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// writeSign is what the client sends when its player has closed the form of a sign.
func writeSign(at grid.Pos, lines ...string) packet {
	p := begin(packetWriteSign).position(at).u8(1)
	for i := range 4 {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		p = p.text(line)
	}
	return p
}

// A player writes on a sign that they have placed, or have clicked. What was not written is put back.
func TestSignsAreWritten(t *testing.T) {
	at := grid.Pos{X: 1, Y: 10, Z: 2}
	choose := begin(packetSetCreativeSlot).i16(36).u8(1).varint(int(blocktable.MinecraftItem(chunk.Sign))).u8(64, 0)
	cl, s := playing(t, sent(
		confirm(), choose, useOn(1, 9, 2, 1), writeSign(at, "to the", "harbour  "), useOn(1, 10, 2, 2), writeSign(at, "to the", "harbour"),
		writeSign(at, "this word is much toolongforalineofasign"), writeSign(grid.Pos{X: 1, Y: 9, Z: 2}, "stone"), writeSign(at, "rude"), writeSign(at),
		dig(1, 10, 2, 3),
	))
	opened, shown := begin(packetOpenSign).position(at).u8(1), begin(packetBlockEntity).position(at)
	check := func(what string, open bool, text string) (sent []byte) {
		t.Helper()
		gamestest.Tick(t, cl, time.Now())
		got := received(t, s, true)
		sent = bytes.Join(got, nil)
		written := bytes.Contains(sent, shown)
		if has(got, opened) != open || written != (text != "") || written && !bytes.Contains(sent, []byte(`{"text":"`+text+`"}`)) {
			t.Errorf("%s: the client is sent %q", what, got)
		}
		return sent
	}
	answer := func(seq uint64, b chunk.Block, refused string) {
		gamestest.Receive(t, cl, sessionmsg.Ack{Seq: seq, Block: uint16(b), Error: refused})
	}
	gamestest.ReadEdits(t, cl, games.Change{Pos: at, To: chunk.Sign + 2})
	check("before the answer", false, "")
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: at, To: chunk.Sign + 2})
	answer(100, chunk.Sign+2, "")
	check("a sign is placed", true, "")

	read := func(seq uint64, want games.Change) {
		t.Helper()
		e := gamestest.Read[sessionmsg.Edit](t, cl)
		if got := (games.Change{Pos: grid.Pos{X: e.X, Y: e.Y, Z: e.Z}, To: chunk.Block(e.Block), Text: e.Text}); !reflect.DeepEqual(got, want) || e.Seq != seq {
			t.Errorf("edit %d is %+v, want %+v as %d", e.Seq, got, want, seq)
		}
	}
	read(101, games.Change{Pos: at, To: chunk.Sign + 2, Text: "to the\nharbour"})
	gamestest.Receive(t, cl, sessionmsg.SignsOf(grid.ChunkPos{}, []nodemsg.SignAt{{At: chunk.At(at), Text: "to the\nharbour"}}))
	answer(101, chunk.Sign+2, "")
	check("it is written on", false, "harbour")

	read(102, games.Change{Pos: at, To: chunk.Sign + 2, Text: "rude"}) // after a click, no change, and what cannot be written
	if sent := check("it is clicked", true, "harbour"); bytes.Count(sent, []byte("A sign has at most 4 lines")) != 1 {
		t.Errorf("a line that is too long is answered by %q", sent)
	}
	answer(102, chunk.Sign+2, wire.RefusedMuted)
	check("it is refused", false, "harbour")
	read(103, games.Change{Pos: at, To: chunk.Sign + 2})
	answer(103, chunk.Sign+2, "")
	check("it is made blank", false, "")
	read(104, games.Change{Pos: at})
	answer(104, chunk.Sign+2, wire.RefusedClaimed)
	check("it may not be broken", false, "harbour")
}

// Who closes the form of a sign as it was opened does not undo what somebody else has written meanwhile.
func TestFormsLeftUnchanged(t *testing.T) {
	at := grid.Pos{X: 1, Y: 10, Z: 2}
	cl, s := playing(t, sent(confirm(), useOn(1, 10, 2, 1), chatPacket("reads"), writeSign(at, "to the", "harbour"), writeSign(at, "to my", "harbour")))
	write := func(text string) {
		gamestest.Receive(t, cl, sessionmsg.SignsOf(grid.ChunkPos{}, []nodemsg.SignAt{{At: chunk.At(at), Text: text}}))
	}
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: at, To: chunk.Sign})
	write("to §4the\nharbour") // colours are not shown
	gamestest.Read[sessionmsg.Chat](t, cl)
	write("to the\nold harbour")
	s.Out.Reset()
	gamestest.ReadEdits(t, cl, games.Change{Pos: at, To: chunk.Sign, Text: "to my\nharbour"})
	gamestest.Tick(t, cl, time.Now())
	if got := bytes.Join(received(t, s, true), nil); !bytes.Contains(got, []byte(`{"text":"old harbour"}`)) {
		t.Errorf("the client is sent %q", got)
	}
}

// A text that cannot be written now is refused aloud, and what is written is shown.
func TestRefusedTexts(t *testing.T) {
	at := grid.Pos{X: 1, Y: 10, Z: 2}
	for name, c := range map[string]struct {
		before packet // what the client has sent before
		prime  func(*Client)
		want   string
	}{
		"put elsewhere": {begin(packetMoveOnGround).u8(1), func(*Client) {}, "That came too late. Try again."},
		"too often":     {confirm(), func(cl *Client) { cl.looks.SetBurst(0) }, "You build too fast."},
	} {
		t.Run(name, func(t *testing.T) {
			cl, s := playing(t, sent(c.before, writeSign(at, "to my"), chatPacket("done")))
			gamestest.ReceiveBlocks(t, cl, games.Change{Pos: at, To: chunk.Sign})
			gamestest.Receive(t, cl, sessionmsg.SignsOf(grid.ChunkPos{}, []nodemsg.SignAt{{At: chunk.At(at), Text: "to the"}}))
			s.Out.Reset()
			c.prime(cl)
			gamestest.Read[sessionmsg.Chat](t, cl)
			gamestest.Tick(t, cl, time.Now())
			got := bytes.Join(received(t, s, true), nil)
			if !bytes.Contains(got, []byte(c.want)) || !bytes.Contains(got, []byte(`{"text":"to the"}`)) {
				t.Errorf("the client is sent %q", got)
			}
		})
	}
}

// What is too long for a line goes on in blank ones. Blanks at the ends of lines are left out.
func TestLongLines(t *testing.T) {
	for _, c := range []struct {
		lines signLines
		want  string
	}{
		{signLines{"to the ", "", " harbour  ", "  "}, "to the\n\n harbour"},
		{signLines{"exactly twenty chars", "and"}, "exactly twenty chars\nand"},
		{signLines{"this goes on in the  next line, and in that after it"}, "this goes on in the\nnext line, and in\nthat after it"},
		{signLines{"this goes on nowhere: no line is blank", "x"}, "this goes on nowhere: no line is blank\nx"},
		{signLines{"öööööööööö ööööööööö ö"}, "öööööööööö ööööööööö\nö"},
		{signLines{"äwordthatistoolongforaline", ""}, "äwordthatistoolongforaline"},
		{signLines{"", "", "", "the last line goes on nowhere"}, "\n\n\nthe last line goes on nowhere"},
	} {
		if got := c.lines.text(); got != c.want {
			t.Errorf("%q become %q, want %q", c.lines, got, c.want)
		}
	}
}
