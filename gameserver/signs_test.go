package gameserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// write asks for a sign with a text.
func (c *client) write(at grid.Pos, b chunk.Block, text string) sessionmsg.Ack {
	c.t.Helper()
	c.seq++
	c.send(sessionmsg.Edit{Seq: c.seq, X: at.X, Y: at.Y, Z: at.Z, Block: uint16(b), Text: text})
	pass(time.Second)
	return c.answer(c.seq)
}

// Players who see a sign are sent its text: at once, when it changes, and when they come later. Another block takes it
// away.
func TestSigns(t *testing.T) {
	for _, encoding := range []string{sessionmsg.EncodingJSON, sessionmsg.EncodingCBOR} {
		t.Run(encoding, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world := newPeople()
				r := newHarness(t, func(o *Options) { o.People = world })
				r.encoding = encoding
				ann, bob := r.join("ann", 2), r.join("bob", 2)
				ann.goTo(.5, 25, .5)
				pass(time.Second)
				at := grid.Pos{X: 3, Y: 25, Z: 3}
				sees := func(what string, c *client, want string) {
					t.Helper()
					if got := c.mu.signs[at]; got != want {
						t.Errorf("%s: they read %q, want %q", what, got, want)
					}
				}
				if ack := ann.write(at, chunk.Sign, "to the\nharbour"); ack.Error != "" {
					t.Fatal(ack)
				}
				sees("written", ann, "to the\nharbour")
				sees("seen by another", bob, "to the\nharbour")
				sees("seen later", r.join("cid", 2), "to the\nharbour")
				if ack := ann.write(at, chunk.Sign, "home"); ack.Error != "" {
					t.Fatal(ack)
				}
				sees("written again", bob, "home")

				for _, c := range []struct {
					b          chunk.Block
					text, want string
				}{
					{chunk.Stone, "home", wire.RefusedText},
					{chunk.Sign, "a\tb", wire.RefusedText},
					{chunk.Sign, "one line that is too long", wire.RefusedText},
				} {
					if ack := ann.write(at, c.b, c.text); ack.Error != c.want {
						t.Errorf("%q: %+v, want %s", c.text, ack, c.want)
					}
				}
				world.operate(t, "mute ann")
				if ack := ann.write(at, chunk.Sign, "rude"); ack.Error != wire.RefusedMuted {
					t.Errorf("muted: %+v", ack)
				}
				sees("after what was refused", bob, "home")
				if ack := ann.write(at, chunk.Air, ""); ack.Error != "" {
					t.Fatal(ack)
				}
				sees("broken", bob, "")
				sees("broken, seen later", r.join("dan", 2), "")
			})
		})
	}
}

// What has changed while the region was away is sent when it is back.
func TestSignsAfterTheRegionWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 2)
		ann.goTo(.5, 25, .5)
		pass(time.Second)
		sign := func(x int32, seq uint64, text string) nodemsg.Intent {
			return nodemsg.Intent{Player: guestID("eve"), Seq: seq, Pos: grid.Pos{X: x, Y: 25, Z: 3}, Block: chunk.Sign, Text: text}
		}
		r.lands.commit(sign(3, 1, "old"))
		r.lands.commit(sign(4, 2, "gone"))
		r.lands.commit(sign(5, 3, "stays"))
		pass(time.Second)
		r.lands.down(true)
		pass(time.Second)
		r.lands.commit(sign(3, 4, "new"))
		r.lands.commit(sign(4, 5, ""))
		r.lands.down(false)
		pass(10 * time.Second)
		for x, want := range map[int32]string{3: "new", 4: "", 5: "stays"} {
			if got := ann.mu.signs[grid.Pos{X: x, Y: 25, Z: 3}]; got != want {
				t.Errorf("at %d they read %q, want %q", x, got, want)
			}
		}
	})
}
