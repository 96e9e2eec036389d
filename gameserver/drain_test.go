package gameserver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/handoff"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// neighbours are other nodes, by peer id. One without a function never answers.
type neighbours map[string]func(nodemsg.HandoffRequest) ([]byte, error)

func (n neighbours) Connected() []string { return slices.Sorted(maps.Keys(n)) }

func (n neighbours) Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error) {
	if protocol != handoff.Protocol {
		return nil, errors.New("protocol not spoken")
	}
	q, err := nodemsg.DecodeHandoffRequest(question)
	if err != nil {
		return nil, err
	}
	if n[peer] == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return n[peer](q)
}

// offered answers with an offer that names the host.
func offered(host string, sessions uint64, change ...func(*nodemsg.HandoffOffer)) func(nodemsg.HandoffRequest) ([]byte, error) {
	o := nodemsg.HandoffOffer{HTTP: "http://" + host + ":8080", Game: host + ":4002", Sessions: sessions, Ready: true}
	for _, c := range change {
		c(&o)
	}
	return func(nodemsg.HandoffRequest) ([]byte, error) { return nodemsg.EncodeHandoffOffer(o) }
}

func home(host string) wire.Gateway {
	return wire.Gateway{URL: "ws://" + host + ":8080/ws", Game: host + ":4002"}
}

// stopping ends the gateway as a signal does, and does not wait for it.
func (r *harness) stopping() { r.cancel() }

// sentTo waits until the client is redirected, and returns where to.
func (c *client) sentTo() sessionmsg.Reconnect {
	c.t.Helper()
	for range 200 {
		var reconnect *sessionmsg.Reconnect
		if c.look(func() { reconnect = c.mu.reconnect }); reconnect != nil {
			return *reconnect
		}
		pass(20 * time.Millisecond)
	}
	c.t.Fatal("nobody sends the player on")
	return sessionmsg.Reconnect{}
}

// moved returns the number of sessions ended with the outcome, from the metric.
func (r *harness) moved(outcome string) float64 {
	r.t.Helper()
	families, err := r.g.Registerer.(*prometheus.Registry).Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "voxeld_sessions_moved_total" && m.GetLabel()[0].GetValue() == outcome {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// Players are distributed over the nodes that take some; those that shut down, are not ready, lie or are silent are not
// among them.
func TestDrainSharesPlayersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []DrainStep
		var guard sync.Mutex
		r := newHarness(t, func(o *Options) {
			o.Nodes = neighbours{
				"b": offered("b", 3), "c": offered("c", 1), "d": offered("d", 0, func(o *nodemsg.HandoffOffer) { o.Draining = true }),
				"e": offered("e", 0, func(o *nodemsg.HandoffOffer) { o.Ready = false }),
				"f": func(nodemsg.HandoffRequest) ([]byte, error) { return []byte("rubbish"), nil }, "g": nil,
			}
			o.Drained = func(s DrainStep) {
				guard.Lock()
				defer guard.Unlock()
				steps = append(steps, s)
			}
		})
		clients := make([]*client, 4)
		for i, name := range []string{"ann", "bob", "cat", "dan"} {
			clients[i] = r.join(name, 1)
		}
		r.stopping()
		first := make(map[string]int)
		for _, c := range clients {
			reconnect := c.sentTo()
			want := []wire.Gateway{home("b"), home("c")}
			if len(reconnect.Gateways) != 2 || !slices.Contains(want, reconnect.Gateways[0]) || !slices.Contains(want, reconnect.Gateways[1]) || reconnect.Reason == "" {
				t.Errorf("sent to %+v", reconnect)
			}
			first[reconnect.Gateways[0].Game]++
			c.conn.Close()
		}
		if want := map[string]int{"c:4002": 3, "b:4002": 1}; !maps.Equal(first, want) { // 4 and 4 then
			t.Errorf("sent to %v, want %v", first, want)
		}
		r.stop()
		want := []DrainStep{
			{Step: StepBegun, Sessions: 4},
			{Step: StepRegions, Sessions: 4, Handed: 4},
			{Step: StepTargets, Sessions: 4, Targets: []handoff.Target{{Peer: "c", URL: "http://c:8080", Sessions: 1}, {Peer: "b", URL: "http://b:8080", Sessions: 3}}},
			{Step: StepSessions, Followed: 4},
		}
		if diff := cmp.Diff(want, steps, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".offer" }, cmp.Ignore())); diff != "" {
			t.Error(diff)
		}
		if n := r.moved(followed); n != 4 {
			t.Errorf("%v sessions counted as moved", n)
		}
	})
}

// A player whose record cannot be read here, as the disk does not answer, goes on at another node.
func TestUnreadPlayersAreRedirected(t *testing.T) {
	for name, nodes := range map[string]neighbours{"alone": nil, "others": {"b": offered("b", 3)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := playerstest.NewMemory()
				r := newHarness(t, func(o *Options) { o.Nodes, o.Storage = nodes, disk })
				disk.Fail(errors.New("the disk does not answer"))
				defer disk.Fail(nil)
				c := newClient(t, r.dial())
				c.open(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: "ann", View: 1})
				pass(time.Second)
				var failure sessionmsg.Failure
				c.look(func() { failure = c.mu.failure })
				if nodes == nil {
					if failure.Code != wire.FailUnreadable || failure.Notice == nil {
						t.Errorf("the failure is %+v", failure)
					}
				} else if to := c.sentTo(); !slices.Equal(to.Gateways, []wire.Gateway{home("b")}) || to.Code != reasonUnread.Code {
					t.Errorf("sent to %+v", to)
				}
			})
		})
	}
}

// A player who comes while the network does not answer is brought to where they left as soon as it does.
func TestPlayersAreRecalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		home := motion.Pose{X: 70.5, Y: 25, Z: 4.5}
		left := nodemsg.PlayerRecord{
			Player: guestID("ann"), Name: "ann", Guest: true, Seq: 7, Pose: motion.Pose{X: 60.5, Y: 25, Z: 4.5}, Home: &home,
			Gateway: "peerOther", SavedAt: time.Now().UnixMilli(),
		}
		if err := r.network.PutPlayer(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		r.network.FailLookups(errors.New("timeout"))
		ann := r.join("ann", 1)
		if ann.mu.welcome.Pose.X == left.Pose.X {
			t.Fatal("the network was asked")
		}
		r.network.FailLookups(nil)
		pass(3 * time.Second)
		ann.goTo(3.5, 25, 4.5) // the page does not know it yet
		pass(time.Second)
		ann.look(func() {
			if ann.mu.reason != teleported || len(ann.mu.notices) != 1 || ann.mu.corrections != 1 {
				t.Errorf("%d corrections because of %q, notices %q", ann.mu.corrections, ann.mu.reason, ann.mu.notices)
			}
		})
		ann.send(sessionmsg.Move{Pose: motion.Pose{X: 60.5, Y: 25, Z: 5.5}})
		pass(time.Second)
		ann.command("home")
		pass(time.Second)
		if at := r.g.sessions.Of(guestID("ann")).place.pose(); at.X != home.X {
			t.Errorf("home is %+v", at)
		}
	})
}

// Before a player is redirected their place is saved in the network; whatever this node receives afterwards, it never
// overwrites what the next node saves.
func TestDrainSavesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		r := newHarness(t, func(o *Options) { o.Nodes = neighbours{"b": offered("b", 0)} })
		ann := r.join("ann", 1)
		ann.goTo(3.5, 25, 4.5)
		pass(100 * time.Millisecond)
		r.network.Gate = gate
		r.stopping()
		pass(time.Second)
		if ann.look(func() {}); ann.mu.reconnect != nil {
			t.Fatal("redirected before the network has the record")
		}
		close(gate)
		ann.sentTo()
		known, err := r.network.Player(t.Context(), guestID("ann"))
		if err != nil || known.Pose.X != 3.5 || known.Pose.Z != 4.5 {
			t.Fatalf("the network has %+v, %v", known, err)
		}
		// The player has moved on: another gateway saves them, and the old connection still sends.
		newer := known
		newer.Seq++
		newer.Gateway, newer.Pose.X = "peerOther", 9.5
		if err := r.network.PutPlayer(t.Context(), newer); err != nil {
			t.Fatal(err)
		}
		ann.goTo(6.5, 25, 4.5)
		pass(2 * time.Second)
		ann.conn.Close()
		r.stop()
		synctest.Wait() // she reads to the end
		if known, err := r.network.Player(t.Context(), guestID("ann")); err != nil || known != newer {
			t.Errorf("in the end the network has %+v, %v", known, err)
		}
		if row, saved := saved(r.disk, guestID("ann")); !saved || row.Seq >= newer.Seq {
			t.Errorf("this node's disk has %+v (%v)", row, saved)
		}
	})
}

// A slow network does not hold a player up for ever.
func TestDrainDoesNotWaitForASlowNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Nodes = neighbours{"b": offered("b", 0)} })
		ann := r.join("ann", 1)
		pass(2 * time.Second)
		r.network.Gate = make(chan struct{})
		r.stopping()
		start := time.Now()
		ann.sentTo()
		if took := time.Since(start); took > partTime+100*time.Millisecond {
			t.Errorf("sent on after %v", took)
		}
		if _, saved := saved(r.disk, guestID("ann")); !saved {
			t.Error("not saved here either")
		}
		ann.conn.Close()
		close(r.network.Gate)
	})
}

// Pending edits are answered before the player is redirected, if possible; no further ones are accepted.
func TestDrainAnswersEdits(t *testing.T) {
	for name, deaf := range map[string]bool{"regions that answer": false, "regions that do not": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, func(o *Options) { o.Nodes = neighbours{"b": offered("b", 0)} })
				ann := r.join("ann", 1)
				r.lands.deaf(true)
				under := ann.put(grid.Pos{X: 1, Y: 25, Z: 1}, chunk.Stone)
				pass(100 * time.Millisecond)
				r.stopping()
				pass(100 * time.Millisecond)
				late := ann.put(grid.Pos{X: 2, Y: 25, Z: 1}, chunk.Stone)
				pass(100 * time.Millisecond)
				if !deaf {
					r.lands.deaf(false)
					r.lands.cut() // the leader has changed: the gateway sends the request again
				}
				start := time.Now()
				ann.sentTo()
				took := time.Since(start)
				ann.look(func() {
					if answers := len(ann.mu.acks[under]); deaf && answers != 0 || !deaf && (answers != 1 || ann.mu.acksBefore != 1) {
						t.Errorf("%d answers, %d of them in time", answers, ann.mu.acksBefore)
					}
					if len(ann.mu.acks[late]) != 0 {
						t.Error("an edit that came too late is answered")
					}
				})
				if deaf && took > settleTime+100*time.Millisecond || !deaf && took >= settleTime {
					t.Errorf("sent on after %v", took)
				}
				id := guestID("ann").String()
				if n := r.lands.applied(id, late); n != 0 {
					t.Errorf("an edit that came too late is applied %d times", n)
				}
				if n := r.lands.applied(id, under); n != 1 {
					t.Errorf("the edit under way is applied %d times", n)
				}
				ann.conn.Close()
			})
		})
	}
}

// While a player is saved, which may take the network a while, their edits are accepted. An edit within reach only of
// where they have moved since is not refused: the client sends it again at its next node.
func TestDrainTakesEditsWhileItSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		r := newHarness(t, func(o *Options) { o.Nodes = neighbours{"b": offered("b", 0)} })
		ann := r.join("ann", 1)
		pass(100 * time.Millisecond)
		r.network.Gate = gate
		r.stopping()
		pass(500 * time.Millisecond)
		near := ann.put(grid.Pos{X: 1, Y: 25, Z: 1}, chunk.Stone)
		ann.send(sessionmsg.Move{Pose: motion.Pose{X: 9.5, Y: 25, Z: .5}})
		far := ann.put(grid.Pos{X: 15, Y: 25, Z: 1}, chunk.Stone)
		pass(500 * time.Millisecond)
		ann.look(func() {
			if a := ann.mu.acks[near]; ann.mu.reconnect != nil || len(a) != 1 || a[0].Error != "" {
				t.Errorf("the edit within reach is answered %+v", a)
			}
			if a := ann.mu.acks[far]; len(a) != 0 {
				t.Errorf("the edit out of reach is answered %+v", a)
			}
		})
		close(gate)
		ann.sentTo()
		ann.conn.Close()
	})
}

// A player who joins while the node shuts down is redirected, and the node reports that it is not ready.
func TestDrainRefusesNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Nodes = neighbours{"b": offered("b", 0), "g": nil} })
		ann := r.join("ann", 1)
		if err := r.g.ready(); err != nil {
			t.Error(err)
		}
		r.stopping()
		pass(100 * time.Millisecond) // one node has not answered yet
		if err := r.g.ready(); !errors.Is(err, errDraining) {
			t.Errorf("ready: %v", err)
		}
		if offer := offerOf(t, r.g); !offer.Draining || offer.Sessions != 1 {
			t.Errorf("it offered %+v", offer)
		}
		bob := newClient(t, r.dial())
		go bob.listen()
		bob.send(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: "bob", View: 1, Encoding: "json"})
		if reconnect := bob.sentTo(); !slices.Equal(reconnect.Gateways, []wire.Gateway{home("b")}) {
			t.Errorf("bob is sent to %+v", reconnect)
		}
		pass(outbox.CloseTimeout)
		bob.look(func() {
			if bob.mu.welcome.Player != "" || !bob.mu.ended || bob.mu.failure.Code != "" {
				t.Errorf("bob: welcome %+v, ended %v, failure %+v", bob.mu.welcome, bob.mu.ended, bob.mu.failure)
			}
		})
		ann.conn.Close()
	})
}

// A player whose record is still being loaded is redirected as well, and not saved where they never were.
func TestDrainWhileSomebodyJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) {
			o.Nodes = neighbours{"b": offered("b", 0)}
			o.Players = silentNetwork{o.Players}
		})
		ann := newClient(t, r.dial())
		go ann.listen()
		ann.send(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: "ann", View: 1, Encoding: "json"})
		pass(100 * time.Millisecond)
		r.stopping()
		ann.sentTo()
		pass(3 * time.Second) // players are loaded for as long
		ann.look(func() {
			if ann.mu.welcome.Player != "" || !ann.mu.ended {
				t.Errorf("welcome %+v, ended %v", ann.mu.welcome, ann.mu.ended)
			}
		})
		if row, saved := saved(r.disk, guestID("ann")); saved {
			t.Errorf("saved at %+v", row)
		}
	})
}

// silentNetwork is a network that does not answer.
type silentNetwork struct{ players.Network }

func (silentNetwork) Player(ctx context.Context, _ player.ID) (nodemsg.PlayerRecord, error) {
	<-ctx.Done()
	return nodemsg.PlayerRecord{}, ctx.Err()
}

// Without another node players are notified that there is none, and that this one will be back.
func TestDrainAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		r.stopping()
		if reconnect := ann.sentTo(); reconnect.Gateways == nil || len(reconnect.Gateways) != 0 || reconnect.Code != reasonAlone.Code {
			t.Errorf("got %+v", reconnect)
		}
		start := time.Now()
		r.stop() // ann stays
		if took := time.Since(start); took > noTargetTime+outbox.CloseTimeout {
			t.Errorf("it took %v", took)
		}
		synctest.Wait() // until ann's client has read what was sent last
		ann.look(func() {
			if !ann.mu.ended || ann.mu.failure.Code != wire.FailShuttingDown {
				t.Errorf("ended %v, failure %+v", ann.mu.ended, ann.mu.failure)
			}
		})
		if n := r.moved(noTarget); n != 1 {
			t.Errorf("%v sessions counted as without a target", n)
		}
	})
}

// A client that does not leave is cut off after a while, and its player saved where they stood when redirected.
func TestDrainCutsWhoStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Nodes = neighbours{"b": offered("b", 0)} })
		ann := r.join("ann", 1)
		ann.goTo(3.5, 25, 4.5)
		pass(100 * time.Millisecond)
		start := time.Now()
		r.stopping()
		ann.sentTo()
		ann.goTo(5.5, 25, 4.5)
		r.stop()
		synctest.Wait() // she reads to the end
		if took := time.Since(start); took < leaveTime || took > leaveTime+outbox.CloseTimeout+100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		ann.look(func() {
			if !ann.mu.ended || ann.mu.failure.Code != wire.FailShuttingDown {
				t.Errorf("ended %v, failure %+v", ann.mu.ended, ann.mu.failure)
			}
		})
		if row, saved := saved(r.disk, guestID("ann")); !saved || row.Pose.X != 3.5 {
			t.Errorf("saved %+v (%v)", row, saved)
		}
		if n := r.moved(cutOff); n != 1 {
			t.Errorf("%v sessions counted as cut off", n)
		}
	})
}

func offerOf(t *testing.T, g *Gateway) nodemsg.HandoffOffer {
	t.Helper()
	question, err := nodemsg.EncodeHandoffRequest(nodemsg.HandoffRequest{Sessions: 1})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := g.AnswerHandoff(t.Context(), "peerOther", question)
	if err != nil {
		t.Fatal(err)
	}
	offer, err := nodemsg.DecodeHandoffOffer(reply)
	if err != nil {
		t.Fatal(err)
	}
	return offer
}

func TestAnswerHandoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unready := errors.New("alone")
		var trouble error
		r := newHarness(t, func(o *Options) {
			o.Ready = func() error { return trouble }
			o.Games = map[string]uint16{"luanti": 30000}
		})
		r.join("ann", 1)
		want := nodemsg.HandoffOffer{
			HTTP: "http://192.0.2.7:8080", Origins: []string{"http://192.0.2.7:8080"}, Game: "192.0.2.7:4002", Sessions: 1, Ready: true,
			Games: map[string]uint16{"luanti": 30000},
		}
		if offer := offerOf(t, r.g); !cmp.Equal(offer, want) {
			t.Errorf("it offered %+v, want %+v", offer, want)
		}
		trouble = unready
		if offer := offerOf(t, r.g); offer.Ready {
			t.Error("it offered room although it is not ready")
		}
		if _, err := r.g.AnswerHandoff(t.Context(), "peerOther", []byte("rubbish")); err == nil {
			t.Error("rubbish is answered")
		}
	})
}
