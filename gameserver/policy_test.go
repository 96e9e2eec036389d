package gameserver

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A new policy applies at once: to the edits of players who are here, and to everything that a newcomer asks for.
func TestPolicyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 2)
		ann.goTo(.5, 25, .5)
		pass(time.Second)
		s := r.g.sessions.All()[0]
		edits := func() (allowed int) {
			for range editsAtOnce {
				if _, refused := s.checkEdit(grid.Pos{X: 3, Y: 25, Z: 3}, chunk.Brick); refused == "" {
					allowed++
				}
			}
			return allowed
		}
		edits()
		pass(100 * time.Millisecond)
		if n := edits(); n > 5 {
			t.Errorf("%d edits in 100 ms at 20 a second", n)
		}
		r.g.SetAdmission(admission.Settings{MaxView: 1, PerAddress: 1, EditsPerSecond: 1000})
		pass(100 * time.Millisecond)
		if n := edits(); n != editsAtOnce {
			t.Errorf("%d edits in 100 ms at 1,000 a second", n)
		}
		if v := r.g.viewOf(2); v != 1 {
			t.Errorf("a view of %d chunks is granted", v)
		}
		elsewhere := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}
		if _, err := r.g.limits.Admit(elsewhere, 2*admission.PlayerWeight); err == nil {
			t.Error("an address may have two players")
		}
		bob := newClient(t, r.dial())
		go bob.listen()
		bob.send(sessionmsg.Join{Version: 1, Name: "bob", View: 1, Encoding: "json"})
		pass(time.Second)
		if bob.mu.failure.Code != wire.FailNoGuests {
			t.Errorf("a guest is answered %+v", bob.mu.failure)
		}
	})
}
