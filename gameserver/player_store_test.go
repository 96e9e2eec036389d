package gameserver

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

func recordOf(name string, seq uint64, x float64) nodemsg.PlayerRecord {
	return nodemsg.PlayerRecord{Player: guestID(name), Name: name, Guest: true, Seq: seq, Pose: motion.Pose{X: x, Y: 25}, Gateway: self}
}

func (m *memory) writeLater(r nodemsg.PlayerRecord) {
	row, err := nodemsg.EncodePlayerRecord(r)
	if err == nil {
		err = m.Commit([]kv.Write{{Table: playerTable, Key: r.Player[:], Value: row}})
	}
	if err != nil {
		panic(err)
	}
}

// A record that cannot be written does not keep the others of its batch from the disk, and no record counts on too far.
func TestOneBadRecordHoldsNobodyBack(t *testing.T) {
	disk := newMemory()
	ps := newPlayerStore(options(newLands(), newMemory(), disk))
	bad, far, good := recordOf("bad", 3, 1), recordOf("far", 3, 2), recordOf("good", 3, 3)
	bad.Done = wire.MaxDone + 1
	if err := ps.store([]nodemsg.PlayerRecord{bad, good}); err != nil {
		t.Fatal(err)
	}
	people := []presence{{body: nodemsg.Body{Player: far.Player, Name: "far", Guest: true}, done: wire.MaxDone + 5}}
	if err := ps.store(ps.records(people)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"bad": false, "far": true, "good": true} {
		id := guestID(name)
		if row, err := disk.Get(playerTable, id[:]); err != nil || (row != nil) != want {
			t.Errorf("%s: %d bytes on disk, %v", name, len(row), err)
		}
	}
}

func TestRecallTakesTheNewest(t *testing.T) {
	for name, c := range map[string]struct {
		disk, network uint64 // sequences; 0 for none
		damaged       bool
		want          float64 // x, 0 for unknown
	}{
		"unknown":       {0, 0, false, 0},
		"disk only":     {5, 0, false, 5},
		"network only":  {0, 6, false, 6},
		"disk newer":    {9, 6, false, 9},
		"network newer": {5, 6, false, 6},
		"damaged":       {0, 6, true, 6},
	} {
		t.Run(name, func(t *testing.T) {
			network, disk := newMemory(), newMemory()
			ps := newPlayerStore(options(newLands(), network, disk))
			if c.disk > 0 {
				disk.writeLater(recordOf("ann", c.disk, float64(c.disk)))
			}
			if id := guestID("ann"); c.damaged {
				if err := disk.Commit([]kv.Write{{Table: playerTable, Key: id[:], Value: []byte("junk")}}); err != nil {
					t.Fatal(err)
				}
			}
			if c.network > 0 {
				network.mu.records[guestID("ann")] = recordOf("ann", c.network, float64(c.network))
			}
			got, known, err := ps.load(t.Context(), guestID("ann"))
			if err != nil || known != (c.want > 0) || got.Pose.X != c.want {
				t.Errorf("recalled %+v, %v, %v; want x %v", got, known, err, c.want)
			}
		})
	}
}

// A player whose record comes from a clock that is ahead still gets newer ones.
func TestSequencesAlwaysGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		future := uint64(time.Now().Add(24 * time.Hour).UnixMilli())
		r.network.mu.records[guestID("ann")] = recordOf("ann", future, 5)
		ann := r.join("ann", 1)
		if ann.mu.welcome.Pose.X != 5 {
			t.Fatalf("ann begins at %+v", ann.mu.welcome.Pose)
		}
		ann.goTo(6, 25, 0)
		pass(100 * time.Millisecond)
		ann.conn.Close()
		pass(time.Second)
		if got, _ := r.network.Player(t.Context(), guestID("ann")); got.Seq <= future || got.Pose.X != 6 {
			t.Errorf("published %+v, want a sequence above %d", got, future)
		}
		if n := len(r.g.players.mu.seqs); n != 0 {
			t.Errorf("%d sequences are remembered of players who left", n)
		}
	})
}

func TestPlayersAreSavedWhileTheyPlay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		pass(3 * saveEvery)
		if got, err := r.network.Player(t.Context(), guestID("ann")); err != nil || got.Pose.X != .5 {
			t.Errorf("published %+v (%v) at the first save, want where she came", got, err)
		}
		before := r.disk.mu.commits
		pass(10 * saveEvery)
		if r.disk.mu.commits != before {
			t.Errorf("%d commits for a player who stands still", r.disk.mu.commits-before)
		}
		ann.goTo(4.5, 25, .5)
		pass(saveEvery + time.Millisecond)
		if got, _ := r.disk.saved(guestID("ann")); got.Pose.X != 4.5 {
			t.Errorf("saved at %+v", got.Pose)
		}
		if got, _ := r.network.Player(t.Context(), guestID("ann")); got.Pose.X != .5 {
			t.Error("four blocks are published before their time")
		}
		pass(publishEvery - 14*saveEvery)
		ann.send(sessionmsg.Ping{})
		pass(2 * saveEvery)
		if got, err := r.network.Player(t.Context(), guestID("ann")); err != nil || got.Pose.X != 4.5 {
			t.Errorf("published %+v (%v)", got, err)
		}
	})
}

// A player who goes far is published, but not all the time.
func TestFarWaysArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		pass(2 * saveEvery)
		published := func() float64 {
			got, err := r.network.Player(t.Context(), guestID("ann"))
			if err != nil {
				t.Fatal(err)
			}
			return got.Pose.X
		}
		ann.goTo(18.5, 25, .5)
		pass(saveEvery)
		if x := published(); x != .5 {
			t.Errorf("published at %v at once", x)
		}
		pass(publishPause)
		if x := published(); x != 18.5 {
			t.Errorf("published at %v, she stands at 18.5 for long", x)
		}
	})
}

// A player who leaves is published before those who were queued earlier, as soon as one record is done.
func TestWhoLeavesIsPublishedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Players.(*memory).gate = make(chan struct{}) })
		for i := range 3 * publishers {
			r.join(fmt.Sprintf("p%d", i), 1)
		}
		ann := r.join("ann", 1)
		ann.goTo(4.5, 25, .5)
		pass(2 * saveEvery)
		ann.conn.Close()
		pass(100 * time.Millisecond)
		// Those in progress, and the first after. If the record of her arrival was among them, she is that after its end.
		for range 2 * publishers {
			r.network.gate <- struct{}{}
		}
		synctest.Wait()
		if got, err := r.network.Player(t.Context(), guestID("ann")); err != nil || got.Pose.X != 4.5 {
			t.Errorf("published %+v (%v)", got, err)
		}
		close(r.network.gate)
	})
}

// A slow network delays neither saves nor players who leave; in the end all are published.
func TestSlowNetworkHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Players.(*memory).gate = make(chan struct{}) })
		bob := r.join("bob", 1)
		var crowd []*client
		for i := range 2 * publishers {
			crowd = append(crowd, r.join(fmt.Sprintf("p%d", i), 1))
		}
		for _, c := range crowd {
			c.conn.Close()
		}
		pass(100 * time.Millisecond)
		if got := len(r.g.Online()); got != 1 {
			t.Errorf("%d players online, want bob alone", got)
		}
		bob.goTo(4.5, 25, .5)
		pass(saveEvery + time.Millisecond)
		if got, _ := r.disk.saved(guestID("bob")); got.Pose.X != 4.5 {
			t.Errorf("bob is saved at %+v", got.Pose)
		}
		r.cancel()
		pass(time.Second)
		close(r.network.gate)
		r.stop()
		for i := range crowd {
			if _, err := r.network.Player(t.Context(), guestID(fmt.Sprintf("p%d", i))); err != nil {
				t.Errorf("player %d is not published", i)
			}
		}
		if got, _ := r.network.Player(t.Context(), guestID("bob")); got.Pose.X != 4.5 {
			t.Errorf("bob is published at %+v", got.Pose)
		}
	})
}

// A network that never answers does not keep the node from stopping.
func TestDeadNetworkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Players.(*memory).gate = make(chan struct{}) })
		for i := range 3 * publishers {
			r.join(fmt.Sprintf("p%d", i), 1)
		}
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > publishLast+2*closeTimeout {
			t.Errorf("stopping took %v", took)
		}
		if _, saved := r.disk.saved(guestID("p0")); !saved {
			t.Error("not saved on this node's disk")
		}
	})
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.fail = err
}

func TestDiskThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		r.disk.fail(errors.New("disk full"))
		ann.goTo(4.5, 25, .5)
		pass(2 * saveEvery)
		bob := newClient(t, r.dial())
		go bob.listen()
		bob.send(sessionmsg.Join{Version: 1, Name: "bob", View: 1, Encoding: "json"})
		pass(time.Second)
		if bob.mu.failure.Code != wire.FailInternal || ann.mu.ended {
			t.Errorf("bob got %+v; ann ended: %v", bob.mu.failure, ann.mu.ended)
		}
		r.disk.fail(nil)
		pass(saveEvery)
		if got, _ := r.disk.saved(guestID("ann")); got.Pose.X != 4.5 {
			t.Errorf("saved at %+v after the disk works again", got.Pose)
		}
	})
}

// Of a crowd that walks about only so many players are published a second, the oldest records first, and in time all of them:
// those of a crowd that is not too large once a minute.
func TestCrowdIsPublishedInTurn(t *testing.T) {
	for players, each := range map[int]int{120: publishLeast, 240: 4, 360: 6, 1000: publishMost} {
		t.Run(fmt.Sprint(players), func(t *testing.T) { publishInTurn(t, players, each) })
	}
}

func publishInTurn(t *testing.T, players, each int) {
	synctest.Test(t, func(t *testing.T) {
		ps := newPlayerStore(options(newLands(), newMemory(), newMemory()))
		var here []presence
		for i := range players {
			here = append(here, presence{body: nodemsg.Body{Player: guestID(fmt.Sprint("p", i)), Name: fmt.Sprint("p", i)}})
		}
		taken := func() (n int) {
			for {
				if _, ok := ps.nextRecord(); !ok {
					clear(ps.mu.backlog.under)
					return n
				}
				n++
			}
		}
		var marks map[player.ID]lastPublished
		round := (players + each - 1) / each // saves until everybody has had a turn
		oldest := time.Now()
		for second := range 2 * round {
			pass(saveEvery)
			for i := range here {
				here[i].pose.X += publishWay // far, each second
			}
			marks = ps.enqueueMoved(here, marks)
			if n := taken(); n != each {
				t.Fatalf("%d records at second %d, want %d", n, second, each)
			}
			if second < round-1 {
				continue
			}
			if len(marks) != players {
				t.Fatalf("%d players were published by second %d, want all %d", len(marks), second, players)
			}
			oldest = time.Now()
			for _, m := range marks {
				if m.at.Before(oldest) {
					oldest = m.at
				}
			}
			if age := time.Since(oldest); age > time.Duration(round)*saveEvery {
				t.Fatalf("a record is %v old at second %d", age, second)
			}
		}
		for range int(publishEvery/saveEvery) + round { // they stand still now
			pass(saveEvery)
			marks = ps.enqueueMoved(here, marks)
			taken()
		}
		if age := time.Since(oldest); age < publishEvery {
			t.Fatal("too short a test")
		}
		for id, m := range marks {
			if m.pose.X != here[0].pose.X {
				t.Fatalf("%s is published at %v, want %v", id, m.pose.X, here[0].pose.X)
			}
		}
	})
}
