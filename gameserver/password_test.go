package gameserver

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// withPassword is the record of a guest who keeps a name with a password, and left another node a while ago.
func withPassword(name string, ago time.Duration) nodemsg.PlayerRecord {
	return nodemsg.PlayerRecord{
		Player: guestID(name), Name: name, Guest: true, Seq: 7, Pose: motion.Pose{X: 60.5, Y: 25, Z: 4.5},
		Gateway: "peerOther", SavedAt: time.Now().Add(-ago).UnixMilli(), Verifier: &player.Verifier{1, 2},
	}
}

// Nobody has the name of a guest with a password who has not proved it, until the guest has been away too long: neither
// by a page nor with an original client.
func TestNameWithPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		for name, ago := range map[string]time.Duration{"ann": 29 * 24 * time.Hour, "old": 31 * 24 * time.Hour} {
			if err := r.network.PutPlayer(t.Context(), withPassword(name, ago)); err != nil {
				t.Fatal(err)
			}
		}
		eve := newClient(t, r.dial())
		eve.open(sessionmsg.Join{Version: 1, Name: "ann", View: 1, Encoding: "json"})
		pass(time.Second)
		if eve.mu.failure.Code != wire.FailNameTaken {
			t.Errorf("another ann is answered %+v", eve.mu.failure)
		}
		r.join("old", 1)
		const address = "192.0.2.1"
		o := r.connectFrom(address, "ann", grid.ChunkPos{})
		o.send(`{"type":1,"args":[0,0],"player":"ann"}` + "\n")
		pass(time.Second)
		if _, registered := r.registered(player.Namesake("ann", address, 0)); !registered {
			t.Error("an original client has the name")
		}
		pass(2 * time.Minute)
		if known, err := r.network.Player(t.Context(), guestID("ann")); err != nil || known.Verifier == nil || known.Seq != 7 {
			t.Errorf("the network has %+v, %v", known, err)
		}
	})
}

// Who comes when the network does not answer plays until it says that another one keeps the name. They are not shown
// where that one left, whose record stays as it was.
func TestPasswordThatIsFoundLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		left := withPassword("ann", time.Hour)
		if err := r.network.PutPlayer(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		r.network.FailLookups(errors.New("timeout"))
		eve := r.join("ann", 1)
		r.network.FailLookups(nil)
		pass(3 * time.Second)
		eve.goTo(3.5, 25, 4.5)
		pass(time.Second)
		eve.look(func() {
			if eve.mu.failure.Code != wire.FailNameTaken || !strings.Contains(eve.mu.failure.Message, "come again") {
				t.Errorf("failure %+v", eve.mu.failure)
			}
			if eve.mu.corrections > 0 {
				t.Error("they were brought to where ann left")
			}
		})
		pass(2 * time.Minute)
		known, err := r.network.Player(t.Context(), left.Player)
		if err != nil || known.Verifier == nil || *known.Verifier != *left.Verifier || known.Pose != left.Pose {
			t.Errorf("the network has %+v, %v", known, err)
		}
	})
}
