package gameserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// What a player holds, and that they sneak, is seen by those who are there and by those who come, also in another
// region and after their region was away.
func TestStances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.encoding = sessionmsg.EncodingJSON
		ann, bob := r.join("ann", 2), r.join("bob", 2)
		seen := func(by *client, held chunk.Block, sneaks bool) {
			t.Helper()
			pass(200 * time.Millisecond)
			by.look(func() {
				if a := by.mu.avatars[guestID("ann").String()]; chunk.Block(a.Held) != held || a.Sneaks != sneaks {
					t.Errorf("ann is seen with block %d in her hand, and sneaks: %v; want %d, %v", a.Held, a.Sneaks, held, sneaks)
				}
			})
		}
		if !ann.mu.welcome.Stances {
			t.Error("the gateway does not say that it takes stances")
		}
		seen(bob, chunk.Air, false)
		ann.send(sessionmsg.Stance{Held: uint16(chunk.Stone), Sneaks: true})
		seen(bob, chunk.Stone, true)
		seen(r.join("cid", 2), chunk.Stone, true)
		ann.goTo(.5, 25, -.5)
		seen(bob, chunk.Stone, true)
		r.lands.cut()
		pass(3 * time.Second)
		seen(bob, chunk.Stone, true)
		ann.send(sessionmsg.Stance{Held: 65535})
		seen(bob, chunk.Air, false)
	})
}

// A client that changes its stance a thousand times a second has others sent four of these, and the last one.
func TestStancesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.encoding = sessionmsg.EncodingJSON
		ann, bob := r.join("ann", 2), r.join("bob", 2)
		before := bob.mu.enters
		for n := range 1000 {
			ann.send(sessionmsg.Stance{Held: uint16(chunk.Stone), Sneaks: n%2 == 0})
			pass(time.Millisecond)
		}
		ann.send(sessionmsg.Stance{Held: uint16(chunk.Brick), Sneaks: true})
		pass(time.Second)
		ann.send(sessionmsg.Ping{})
		pass(time.Second)
		if n := bob.mu.enters - before; n < 5 || n > 10 {
			t.Errorf("ann enters %d times in a second", n)
		}
		if a := bob.mu.avatars[guestID("ann").String()]; chunk.Block(a.Held) != chunk.Brick || !a.Sneaks {
			t.Errorf("in the end ann is seen as %+v", a)
		}
	})
}
