package players

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func newTestStore(network, disk *playerstest.Memory) *Store {
	return NewStore(Options{Storage: disk, Network: network, Peer: "peerThisNode", Wall: time.Now, Logger: slog.New(slog.DiscardHandler)})
}

// gateway is a running store, and the players who are here.
type gateway struct {
	t             *testing.T
	store         *Store
	network, disk *playerstest.Memory
	cancel        context.CancelFunc
	ended         chan struct{}

	mu struct {
		sync.Mutex
		here []Presence
	}
}

// run starts a store in a synctest bubble.
func run(t *testing.T) *gateway {
	g := &gateway{t: t, network: playerstest.NewMemory(), disk: playerstest.NewMemory(), ended: make(chan struct{})}
	g.store = newTestStore(g.network, g.disk)
	var ctx context.Context
	ctx, g.cancel = context.WithCancel(t.Context())
	go func() {
		g.store.Run(ctx, g.present)
		close(g.ended)
	}()
	t.Cleanup(func() {
		g.cancel()
		<-g.ended
	})
	return g
}

func (g *gateway) present() []Presence {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.mu.here)
}

// place puts a player somewhere.
func (g *gateway) place(name string, x float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.here = slices.DeleteFunc(g.mu.here, func(p Presence) bool { return p.Name == name })
	g.mu.here = append(g.mu.here, Presence{Player: player.GuestID(name), Name: name, Guest: true, Pose: motion.Pose{X: x, Y: 25}})
}

// leave removes a player, and saves them.
func (g *gateway) leave(name string) {
	g.mu.Lock()
	i := slices.IndexFunc(g.mu.here, func(p Presence) bool { return p.Name == name })
	p := g.mu.here[i]
	g.mu.here = slices.Delete(g.mu.here, i, i+1)
	g.mu.Unlock()
	g.store.Save(p)
}

// wantPublished checks where the network has a player.
func (g *gateway) wantPublished(what, name string, x float64) {
	g.t.Helper()
	if got, err := g.network.Player(g.t.Context(), player.GuestID(name)); err != nil || got.Pose.X != x {
		g.t.Errorf("%s: %s is published at %+v (%v), want %v", what, name, got.Pose, err, x)
	}
}

// wantSaved checks where this node's disk has a player.
func (g *gateway) wantSaved(what, name string, x float64) {
	g.t.Helper()
	id := player.GuestID(name)
	row, err := g.disk.Get(Table, id[:])
	if err != nil {
		g.t.Fatal(err)
	}
	if r, err := nodemsg.DecodePlayerRecord(row); err != nil || r.Pose.X != x {
		g.t.Errorf("%s: %s is saved at %+v (%v), want %v", what, name, r.Pose, err, x)
	}
}

// pass lets time pass until everything that is due has happened.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func recordOf(name string, seq uint64, x float64) nodemsg.PlayerRecord {
	return nodemsg.PlayerRecord{Player: player.GuestID(name), Name: name, Guest: true, Seq: seq, Pose: motion.Pose{X: x, Y: 25}, Gateway: "peerThisNode", SavedAt: time.Now().UnixMilli()}
}

func write(disk *playerstest.Memory, r nodemsg.PlayerRecord) {
	row, err := nodemsg.EncodePlayerRecord(r)
	if err == nil {
		err = disk.Commit([]kv.Write{{Table: Table, Key: r.Player[:], Value: row}})
	}
	if err != nil {
		panic(err)
	}
}

// A record that cannot be written does not keep the others of its batch from the disk, and no record counts on too far.
func TestOneBadRecordHoldsNobodyBack(t *testing.T) {
	disk := playerstest.NewMemory()
	ps := newTestStore(playerstest.NewMemory(), disk)
	bad, far, good := recordOf("bad", 3, 1), recordOf("far", 3, 2), recordOf("good", 3, 3)
	bad.Done = wire.MaxDone + 1
	if err := ps.store([]nodemsg.PlayerRecord{bad, good}); err != nil {
		t.Fatal(err)
	}
	people := []Presence{{Player: far.Player, Name: "far", Guest: true, Done: wire.MaxDone + 5}}
	if err := ps.store(ps.records(people)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"bad": false, "far": true, "good": true} {
		id := player.GuestID(name)
		if row, err := disk.Get(Table, id[:]); err != nil || (row != nil) != want {
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
			network, disk := playerstest.NewMemory(), playerstest.NewMemory()
			ps := newTestStore(network, disk)
			if c.disk > 0 {
				write(disk, recordOf("ann", c.disk, float64(c.disk)))
			}
			if id := player.GuestID("ann"); c.damaged {
				if err := disk.Commit([]kv.Write{{Table: Table, Key: id[:], Value: []byte("junk")}}); err != nil {
					t.Fatal(err)
				}
			}
			if c.network > 0 {
				if err := network.PutPlayer(t.Context(), recordOf("ann", c.network, float64(c.network))); err != nil {
					t.Fatal(err)
				}
			}
			got, known, err := ps.Load(t.Context(), player.GuestID("ann"))
			if err != nil || known != (c.want > 0) || got.Pose.X != c.want {
				t.Errorf("recalled %+v, %v, %v; want x %v", got, known, err, c.want)
			}
		})
	}
}

// A player who has come to another gateway since is where they left that one, although the clock of this one was ahead
// when they were here.
func TestLaterLoginElsewhereCounts(t *testing.T) {
	for name, c := range map[string]struct {
		gateway string
		login   int64 // later than the row by so many milliseconds
		want    float64
	}{
		"elsewhere, later":   {"peerOther", 1, 8},
		"elsewhere, earlier": {"peerOther", -1, 7},
		"here, later":        {"peerThisNode", 1, 7},
	} {
		t.Run(name, func(t *testing.T) {
			network, disk := playerstest.NewMemory(), playerstest.NewMemory()
			ps := newTestStore(network, disk)
			stored := recordOf("ann", uint64(time.Now().Add(24*time.Hour).UnixMilli()), 7)
			write(disk, stored)
			later := recordOf("ann", uint64(time.Now().UnixMilli()), 8)
			later.Gateway, later.Login = c.gateway, &player.Login{At: stored.SavedAt + c.login}
			if err := network.PutPlayer(t.Context(), later); err != nil {
				t.Fatal(err)
			}
			r, known, err := ps.Load(t.Context(), stored.Player)
			if err != nil || !known || r.Pose.X != c.want {
				t.Errorf("loaded %+v, %t, %v; want x %v", r, known, err, c.want)
			}
			ps.NoteLoaded(r)
			if next := ps.records([]Presence{{Player: stored.Player, Name: "ann"}})[0]; next.Seq <= stored.Seq {
				t.Errorf("the next record has number %d, the one on disk %d", next.Seq, stored.Seq)
			}
		})
	}
}

// A player whose record comes from a clock that is ahead still gets newer ones.
func TestSequencesAlwaysGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t)
		future := uint64(time.Now().Add(24 * time.Hour).UnixMilli())
		g.store.NoteLoaded(recordOf("ann", future, 5))
		g.place("ann", 6)
		g.leave("ann")
		pass(time.Second)
		g.wantPublished("after leaving", "ann", 6)
		if got, err := g.network.Player(t.Context(), player.GuestID("ann")); err != nil || got.Seq <= future {
			t.Errorf("published %+v, want a sequence above %d", got, future)
		}
		if n := len(g.store.mu.seqs); n != 0 {
			t.Errorf("%d sequences are remembered of players who left", n)
		}
	})
}

func TestPlayersAreSavedWhileTheyPlay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t)
		g.place("ann", .5)
		pass(3 * saveEvery)
		g.wantPublished("at the first save", "ann", .5)
		before := g.disk.Commits()
		pass(10 * saveEvery)
		if g.disk.Commits() != before {
			t.Errorf("%d commits for a player who stands still", g.disk.Commits()-before)
		}
		g.place("ann", 4.5)
		pass(saveEvery + time.Millisecond)
		g.wantSaved("after a move", "ann", 4.5)
		g.wantPublished("four blocks are not far", "ann", .5)
		pass(PublishEvery)
		g.wantPublished("in time", "ann", 4.5)
	})
}

// A player who goes far is published, but not all the time.
func TestFarMovesArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t)
		g.place("ann", .5)
		pass(2 * saveEvery)
		g.place("ann", 18.5)
		pass(saveEvery)
		g.wantPublished("at once", "ann", .5)
		pass(publishPause)
		g.wantPublished("after a while", "ann", 18.5)
	})
}

// A player who leaves is published before those who were queued earlier, as soon as one record is done.
func TestWhoLeavesIsPublishedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t)
		g.network.Gate = make(chan struct{})
		for i := range 3 * publishers {
			g.place(fmt.Sprintf("p%d", i), 1)
		}
		g.place("ann", 4.5)
		pass(2 * saveEvery)
		g.leave("ann")
		pass(100 * time.Millisecond)
		// Those in progress, and the first after. If the record of her arrival was among them, she is that after its
		// end.
		for range 2 * publishers {
			select {
			case g.network.Gate <- struct{}{}:
			case <-time.After(time.Millisecond): // in a crowd only some are published at once
			}
		}
		synctest.Wait()
		g.wantPublished("first", "ann", 4.5)
		close(g.network.Gate)
	})
}

// A slow network delays neither saves nor players who leave; in the end all are published.
func TestSlowNetworkHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t)
		g.network.Gate = make(chan struct{})
		g.place("bob", 1)
		for i := range 2 * publishers {
			g.place(fmt.Sprintf("p%d", i), 1)
		}
		began := time.Now()
		for i := range 2 * publishers {
			g.leave(fmt.Sprintf("p%d", i))
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("players could leave after %v", took)
		}
		g.place("bob", 4.5)
		pass(saveEvery + time.Millisecond)
		g.wantSaved("while the network is slow", "bob", 4.5)
		g.leave("bob")
		g.cancel()
		pass(time.Second)
		close(g.network.Gate)
		<-g.ended
		for i := range 2 * publishers {
			g.wantPublished("in the end", fmt.Sprintf("p%d", i), 1)
		}
		g.wantPublished("in the end", "bob", 4.5)
	})
}

// Players may leave and come again while the disk hangs. They are where they left, and it is saved when the disk
// answers.
func TestHungDiskHoldsNobodyUp(t *testing.T) {
	for name, login := range map[string]*player.Login{"guest": nil, "key": {At: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := run(t)
				g.disk.Disk = make(chan struct{})
				ann := Presence{Player: player.GuestID("ann"), Name: "ann", Guest: login == nil, Login: login}
				seq := uint64(0)
				for x := range 4 {
					began := time.Now()
					r, known, err := g.store.Load(t.Context(), ann.Player)
					if err != nil || known != (x > 0) || known && (r.Pose.X != float64(x) || r.Seq <= seq) {
						t.Fatalf("loaded %+v, %t, %v after number %d; want x %d", r, known, err, seq, x)
					}
					g.store.NoteLoaded(r)
					seq, ann.Pose.X = r.Seq, float64(x)+1
					g.store.Save(ann)
					if took := time.Since(began); took > 0 {
						t.Fatalf("to come and leave took %v", took)
					}
					pass(time.Second)
				}
				r, known, err := g.store.Load(t.Context(), ann.Player)
				if err != nil || !known {
					t.Fatal(err)
				}
				g.store.NoteLoaded(r)
				if n := len(g.store.mu.leaving); n != 1 {
					t.Errorf("%d departures of one player are kept", n)
				}
				close(g.disk.Disk)
				pass(time.Second)
				g.wantSaved("when the disk answers", "ann", 4)
				g.wantPublished("when the disk answers", "ann", 4)
				if len(g.store.mu.leaving) != 0 || len(g.store.mu.seqs) != 1 {
					t.Errorf("%d are leaving, and %d sequences are known of the player who is here", len(g.store.mu.leaving), len(g.store.mu.seqs))
				}
			})
		})
	}
}

// Nothing is kept of a player who comes and does not arrive, whether they left here before or not, and whether they are
// saved by then or not.
func TestPlayersWhoDoNotArriveAreForgotten(t *testing.T) {
	for name, c := range map[string]struct{ left, hangs bool }{
		"new": {}, "left": {left: true}, "left, and the disk hangs": {left: true, hangs: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := run(t)
				id := player.GuestID("ann")
				thaw := make(chan struct{})
				if c.hangs {
					g.disk.Disk = thaw
				}
				if c.left {
					g.store.Save(Presence{Player: id, Name: "ann", Guest: true})
				} else {
					write(g.disk, recordOf("ann", uint64(time.Now().UnixMilli()), 5))
				}
				pass(time.Second)
				r, known, err := g.store.Load(t.Context(), id)
				if err != nil || !known {
					t.Fatal(err)
				}
				g.store.NoteLoaded(r)
				g.store.Forget(id)
				close(thaw)
				pass(time.Second)
				if s := &g.store.mu; len(s.leaving)+len(s.seqs)+len(s.done) != 0 {
					t.Errorf("%d are leaving, %d sequences and %d counts are known", len(s.leaving), len(s.seqs), len(s.done))
				}
				if r, known, err = g.store.Load(t.Context(), id); err != nil || !known {
					t.Errorf("loaded %+v, %t, %v", r, known, err)
				}
			})
		})
	}
}

// A network that never answers does not keep the node from stopping.
func TestDeadNetworkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t)
		g.network.Gate = make(chan struct{})
		for i := range 3 * publishers {
			g.place(fmt.Sprintf("p%d", i), 1)
			g.leave(fmt.Sprintf("p%d", i))
		}
		began := time.Now()
		g.cancel()
		<-g.ended
		if took := time.Since(began); took > publishLast {
			t.Errorf("stopping took %v", took)
		}
		g.wantSaved("on this node's disk", "p0", 1)
	})
}

func TestDiskThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t)
		g.place("ann", 1)
		g.disk.Fail(errors.New("disk full"))
		pass(2 * saveEvery)
		if _, _, err := g.store.Load(t.Context(), player.GuestID("bob")); err == nil {
			t.Error("bob was loaded from a disk that fails")
		}
		g.disk.Fail(nil)
		pass(saveEvery)
		g.wantSaved("after the disk works again", "ann", 1)
	})
}

// Of a crowd that walks about only so many players are published a second, the oldest records first, and in time all of
// them: those of a crowd that is not too large once a minute.
func TestCrowdIsPublishedInTurn(t *testing.T) {
	for players, each := range map[int]int{120: publishLeast, 240: 4, 360: 6, 1000: publishMost} {
		t.Run(fmt.Sprint(players), func(t *testing.T) { publishInTurn(t, players, each) })
	}
}

func publishInTurn(t *testing.T, players, each int) {
	synctest.Test(t, func(t *testing.T) {
		ps := newTestStore(playerstest.NewMemory(), playerstest.NewMemory())
		var here []Presence
		for i := range players {
			here = append(here, Presence{Player: player.GuestID(fmt.Sprint("p", i)), Name: fmt.Sprint("p", i)})
		}
		taken := func() (n int) {
			for {
				if _, ok := ps.publisher.nextRecord(); !ok {
					clear(ps.publisher.mu.under)
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
				here[i].Pose.X += publishDistance // far, each second
			}
			marks = enqueueDue(ps, here, marks)
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
		for range int(PublishEvery/saveEvery) + round { // they stand still now
			pass(saveEvery)
			marks = enqueueDue(ps, here, marks)
			taken()
		}
		if age := time.Since(oldest); age < PublishEvery {
			t.Fatal("too short a test")
		}
		for id, m := range marks {
			if m.pose.X != here[0].Pose.X {
				t.Fatalf("%s is published at %v, want %v", id, m.pose.X, here[0].Pose.X)
			}
		}
	})
}

// enqueueDue does what the saver does once a second.
func enqueueDue(ps *Store, here []Presence, before map[player.ID]lastPublished) map[player.ID]lastPublished {
	due, marks := dueOf(here, before)
	ps.publisher.enqueue(ps.records(due), false)
	return marks
}

// The record of a guest who has been away for a month expires, on the disk too; that of a player with a key does not.
// The guest's next record is newer all the same.
func TestGuestsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t)
		old, recent, keyed := recordOf("old", 3, 1), recordOf("recent", 3, 2), recordOf("keyed", 3, 3)
		month := 31 * 24 * time.Hour.Milliseconds()
		old.SavedAt, keyed.SavedAt, keyed.Guest = old.SavedAt-month, keyed.SavedAt-month, false
		for _, r := range []nodemsg.PlayerRecord{old, recent, keyed} {
			write(g.disk, r)
		}
		known := func(r nodemsg.PlayerRecord) bool {
			_, known, err := g.store.Load(t.Context(), r.Player)
			if err != nil {
				t.Fatal(err)
			}
			return known
		}
		if known(old) || !known(recent) || !known(keyed) {
			t.Errorf("known are old: %t, recent: %t, keyed: %t", known(old), known(recent), known(keyed))
		}
		if next := g.store.records([]Presence{{Player: old.Player, Name: old.Name, Guest: true}})[0]; next.Seq <= old.Seq {
			t.Errorf("the next record has number %d, after %d", next.Seq, old.Seq)
		}
		pass(2 * expireEvery)
		for _, r := range []nodemsg.PlayerRecord{old, recent, keyed} {
			if row, err := g.disk.Get(Table, r.Player[:]); err != nil || (row == nil) != (r.Name == "old") {
				t.Errorf("%s has a row: %t, %v", r.Name, row != nil, err)
			}
		}
	})
}

// A record from when this node's clock was years ahead is used, but not its numbers: no node would accept the next
// ones. A node keeps so many players on its disk: those who were saved last.
func TestRowsAreBounded(t *testing.T) {
	ps := newTestStore(playerstest.NewMemory(), playerstest.NewMemory())
	ps.maxRows = 3
	for i := range 10 {
		name := fmt.Sprint("ann", i)
		r := nodemsg.PlayerRecord{Player: player.GuestID(name), Name: name, Guest: true, Seq: 1, Gateway: "a", SavedAt: time.Now().UnixMilli() + int64(i)}
		if err := ps.store([]nodemsg.PlayerRecord{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := ps.deleteExpired(); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		id := player.GuestID(fmt.Sprint("ann", i))
		if row, err := ps.Storage.Get(Table, id[:]); err != nil || (row != nil) != (i >= 7) {
			t.Errorf("player %d is kept: %v, %v", i, row != nil, err)
		}
	}
}

func TestRecordsFromTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t)
		early := recordOf("early", uint64(time.Now().AddDate(5, 0, 0).UnixMilli()), 7)
		early.SavedAt = int64(early.Seq)
		write(g.disk, early)
		r, known, err := g.store.Load(t.Context(), early.Player)
		if err != nil || !known || r.Pose != early.Pose {
			t.Fatalf("loaded %+v, %t, %v", r, known, err)
		}
		g.store.NoteLoaded(r)
		if next := g.store.records([]Presence{{Player: early.Player, Name: "early"}})[0]; !next.Plausible(time.Now()) {
			t.Errorf("the next record is %+v", next)
		}
	})
}

// Who has a record, here or in the network, is known, and so is everybody while the network does not answer; a guest who
// has been away too long is not.
func TestKnown(t *testing.T) {
	network, disk := playerstest.NewMemory(), playerstest.NewMemory()
	ps := newTestStore(network, disk)
	put := func(name string, ago time.Duration) {
		r := nodemsg.PlayerRecord{
			Player: player.GuestID(name), Name: name, Guest: true, Seq: 1, SavedAt: time.Now().Add(-ago).UnixMilli(), Gateway: "peerOther",
			Verifier: &player.Verifier{1},
		}
		if err := network.PutPlayer(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	put("ada", time.Hour)
	put("old", 40*24*time.Hour)
	for name, want := range map[string]bool{"ada": true, "old": false, "bob": false} {
		if v, known := ps.Known(t.Context(), player.GuestID(name)); known != want || (v != nil) != want {
			t.Errorf("%s is known: %v, with %v", name, known, v)
		}
	}
	network.FailLookups(errors.New("nobody answers"))
	if v, known := ps.Known(t.Context(), player.GuestID("bob")); !known || v != nil {
		t.Error("bob is not known, though nobody answers")
	}
}
