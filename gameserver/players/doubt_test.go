package players

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func homeAt(x float64) *motion.Pose { return &motion.Pose{X: x, Y: 25} }

// elsewhere returns the record of a player who logged in at another gateway, 0: as a guest, and has a home there.
func elsewhere(name string, login int64, x float64) nodemsg.PlayerRecord {
	r := recordOf(name, uint64(time.Now().UnixMilli()), x)
	r.Gateway, r.Home = "peerOther", homeAt(x)
	if login > 0 {
		r.Guest, r.Login = false, &player.Login{At: login}
	} else {
		r.Verifier = &player.Verifier{byte(x)}
	}
	return r
}

// A session that ends after the player has logged in elsewhere, and has even left there, neither puts them back nor
// takes their home.
func TestStaleSessionEndsLast(t *testing.T) {
	login := time.Now().UnixMilli() - 500
	for name, c := range map[string]struct {
		elsewhere int64 // the other login, after the one here
		seq       int64 // the other record's number, after now
		older     bool  // an older version has saved the row here
		want      float64
	}{
		"elsewhere, later":                    {1, -1000, false, 8},
		"elsewhere, earlier":                  {-1, -1000, false, 7},
		"elsewhere, earlier, clock was ahead": {-1, 1e6, false, 7},
		"an older version saved it":           {1, -1000, true, 7},
		"later than that":                     {time.Hour.Milliseconds(), -1000, true, 8},
	} {
		t.Run(name, func(t *testing.T) {
			network, disk := playerstest.NewMemory(), playerstest.NewMemory()
			ps := newTestStore(network, disk)
			other := elsewhere("ann", login+c.elsewhere, 8)
			other.Seq += uint64(c.seq)
			if err := network.PutPlayer(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			stale := Presence{Player: other.Player, Name: "ann", Pose: motion.Pose{X: 7, Y: 25}, Home: homeAt(7), Login: &player.Login{At: login}}
			if err := ps.store(ps.records([]Presence{stale})); err != nil {
				t.Fatal(err)
			}
			if n := disk.Commits(); n != 1 {
				t.Errorf("%d commits: a crash between them leaves half of it", n)
			}
			if c.older {
				r := ps.records([]Presence{stale})[0]
				r.Login = nil
				write(disk, r)
			}
			r, known, err := newTestStore(network, disk).Load(t.Context(), other.Player)
			if err != nil || !known || r.Pose.X != c.want || r.Home == nil || r.Home.X != c.want {
				t.Errorf("loaded %+v, home %v, %t, %v; want x %v", r, r.Home, known, err, c.want)
			}
			if r.Login == nil || r.Login.At != other.Login.At {
				t.Errorf("the next login must be later than %+v", r.Login)
			}
		})
	}
}

// While the network does not answer, players play, but the record that it may have of them is not replaced. Then theirs
// gets its home, unless they have chosen another one.
func TestNetworkThatDoesNotAnswer(t *testing.T) {
	for name, login := range map[string]int64{"guest": 0, "key": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playInDoubt(t, login) })
		})
	}
}

func playInDoubt(t *testing.T, login int64) {
	g := run(t)
	names := []string{"keeps", "chooses", "new"}
	var here []Presence
	for _, name := range names {
		p := Presence{Player: player.GuestID(name), Name: name, Guest: login == 0, Pose: motion.Pose{X: 1, Y: 25}}
		if login > 0 {
			p.Login = &player.Login{At: time.Now().UnixMilli()}
		}
		here = append(here, p)
		if name != "new" {
			if err := g.network.PutPlayer(t.Context(), elsewhere(name, login, 8)); err != nil {
				t.Fatal(err)
			}
		}
	}
	here[1].Home = homeAt(1)
	g.network.FailLookups(errors.New("timeout"))
	for _, p := range here {
		if _, known, err := g.store.Load(t.Context(), p.Player); err != nil || known {
			t.Errorf("%s is known: %t, %v", p.Name, known, err)
		}
	}
	g.mu.Lock()
	g.mu.here = slices.Clone(here)
	g.mu.Unlock()
	pass(3 * PublishEvery)
	for _, name := range names {
		g.wantSaved("in doubt", name, 1)
	}
	g.network.FailLookups(nil)
	for _, name := range names[:2] {
		g.wantPublished("in doubt", name, 8)
	}
	if _, err := g.network.Player(t.Context(), here[2].Player); !errors.Is(err, nodemsg.ErrNoRecord) {
		t.Errorf("new is published in doubt: %v", err)
	}
	pass(2 * PublishEvery)
	for i, home := range []float64{8, 1, 0} {
		g.wantPublished("after the answer", names[i], 1)
		r, err := g.network.Player(t.Context(), here[i].Player)
		if err != nil || (r.Home == nil) != (home == 0) || r.Home != nil && r.Home.X != home {
			t.Errorf("the home of %s is %v, %v; want %v", names[i], r.Home, err, home)
		}
		if kept := login == 0 && names[i] != "new"; (r.Verifier != nil) != kept {
			t.Errorf("%s keeps the password: %t, want %t", names[i], r.Verifier != nil, kept)
		}
	}
	g.place("keeps", 2)
	g.mu.Lock()
	g.mu.here[len(g.mu.here)-1].Login, g.mu.here[len(g.mu.here)-1].Guest = here[0].Login, login == 0
	g.mu.Unlock()
	g.leave("keeps")
	pass(time.Second)
	if r, err := g.network.Player(t.Context(), here[0].Player); err != nil || r.Pose.X != 2 || r.Home == nil || r.Home.X != 8 {
		t.Errorf("after leaving: %+v, home %v, %v", r, r.Home, err)
	}
	pass(2 * doubtMemory)
	for _, name := range names[1:] {
		g.leave(name)
	}
	pass(2 * doubtMemory)
	if n := len(g.store.mu.doubts); n != 0 {
		t.Errorf("%d doubts are left", n)
	}
}

// A player for whom the network answers within half a minute is brought to where they left, and until then that is
// their place, even if they leave. Later they stay where they are.
func TestRecalled(t *testing.T) {
	for _, c := range []struct {
		answers  time.Duration // the network, after they came
		recalled bool
	}{{500 * time.Millisecond, true}, {3 * time.Second, true}, {25 * time.Second, true}, {recallTime + 5*time.Second, false}} {
		t.Run(c.answers.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := run(t)
				names := []string{"stays", "leaves"}
				g.network.FailLookups(errors.New("no peers"))
				load := func(name string) nodemsg.PlayerRecord {
					r, _, err := g.store.Load(t.Context(), player.GuestID(name))
					if err != nil {
						t.Fatal(err)
					}
					return r
				}
				for _, name := range names {
					if err := g.network.PutPlayer(t.Context(), elsewhere(name, 0, 8)); err != nil {
						t.Fatal(err)
					}
					load(name)
					g.place(name, 1)
				}
				pass(c.answers)
				g.network.FailLookups(nil)
				pass(2 * saveEvery)
				g.leave("leaves")
				pass(PublishEvery + 2*saveEvery) // those who stay are published
				want := map[bool]float64{true: 8, false: 1}[c.recalled]
				for _, name := range names {
					g.wantPublished("after the answer", name, want)
				}
				here := homeAt(3) // chosen since
				record, waits, err := g.store.TakeRecall(player.GuestID("stays"), here, anyPassword)
				if err != nil || waits || (record != nil) != c.recalled || c.recalled && (record.Pose.X != 8 || record.Home != nil) {
					t.Errorf("recalled to %+v; may still be: %t", record, waits)
				}
				if again, _, _ := g.store.TakeRecall(player.GuestID("stays"), here, anyPassword); again != nil {
					t.Error("recalled twice")
				}
				g.place("stays", 2) // they walk on
				g.leave("stays")
				pass(2 * saveEvery)
				if r := load("stays"); r.Pose.X != 2 {
					t.Errorf("they left at 2, and come again at %v", r.Pose.X)
				}
			})
		})
	}
}

// Who comes again during an outage is not recalled as if they had just come, and who is found at once is not recalled.
func TestRecalledOnlyNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t)
		if err := g.network.PutPlayer(t.Context(), elsewhere("ann", 0, 8)); err != nil {
			t.Fatal(err)
		}
		id := player.GuestID("ann")
		load := func() {
			if _, _, err := g.store.Load(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		g.network.FailLookups(errors.New("no peers"))
		load()
		g.place("ann", 1)
		pass(2 * recallTime)
		load() // another connection
		if _, waits, _ := g.store.TakeRecall(id, nil, anyPassword); waits {
			t.Error("who was here for a minute may be recalled")
		}
		g.leave("ann")
		pass(2 * doubtMemory)
		load()
		g.network.FailLookups(nil)
		load() // found
		g.place("ann", 8)
		pass(2 * saveEvery)
		if record, waits, _ := g.store.TakeRecall(id, nil, anyPassword); record != nil || waits {
			t.Errorf("who was found when they came is recalled: %+v, %t", record, waits)
		}
	})
}

// A player who leaves before the network has answered is where they left elsewhere, when they come again.
func TestLeavesInDoubt(t *testing.T) {
	for name, login := range map[string]int64{"guest": 0, "key": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := run(t)
				other := elsewhere("ann", login, 8)
				row := recordOf("ann", other.Seq-10, 5)
				row.SavedAt -= 10
				if login > 0 { // here before they were elsewhere
					other.Login.At = row.SavedAt + 1
				}
				write(g.disk, row)
				if err := g.network.PutPlayer(t.Context(), other); err != nil {
					t.Fatal(err)
				}
				for range 2 { // twice
					g.network.FailLookups(errors.New("timeout"))
					if r, known, err := g.store.Load(t.Context(), other.Player); err != nil || !known || r.Pose.X > 6 {
						t.Fatalf("loaded %+v, %t, %v", r, known, err)
					}
					pass(time.Minute)
					p := Presence{Player: other.Player, Name: "ann", Guest: login == 0, Pose: motion.Pose{X: 6, Y: 25}}
					if login > 0 {
						p.Login = &player.Login{At: time.Now().UnixMilli()}
					}
					g.store.Save(p)
					pass(time.Minute)
				}
				g.wantSaved("at last", "ann", 6)
				g.network.FailLookups(nil)
				r, known, err := g.store.Load(t.Context(), other.Player)
				if err != nil || !known || r.Pose.X != 8 || r.Home == nil || r.Home.X != 8 {
					t.Errorf("loaded %+v, home %v, %t, %v", r, r.Home, known, err)
				}
			})
		})
	}
}

// A guest of the original protocol who leaves in doubt and registers again is in doubt again.
func TestRegistersAgainInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t)
		if err := g.network.PutPlayer(t.Context(), elsewhere("ann", 0, 8)); err != nil {
			t.Fatal(err)
		}
		g.network.FailLookups(errors.New("timeout"))
		if _, _, err := g.store.Load(t.Context(), player.GuestID("ann")); err != nil {
			t.Fatal(err)
		}
		g.place("ann", 1)
		g.leave("ann")
		pass(2 * doubtMemory)
		g.store.NoteStored(player.GuestID("ann"))
		g.place("ann", 2)
		pass(2 * saveEvery)
		g.network.FailLookups(nil)
		g.wantPublished("in doubt", "ann", 8)
	})
}

// Expired and surplus rows go with what is stored beside them.
func TestBasesAreDeleted(t *testing.T) {
	network, disk := playerstest.NewMemory(), playerstest.NewMemory()
	ps := newTestStore(network, disk)
	ps.maxRows = 0
	ann := Presence{Player: player.GuestID("ann"), Name: "ann", Login: &player.Login{At: 1}}
	if err := ps.store(ps.records([]Presence{ann})); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		for _, table := range []string{Table, basesTable} {
			if row, err := disk.Get(table, ann.Player[:]); err == nil && row != nil {
				n++
			}
		}
		return n
	}
	if n := count(); n != 2 {
		t.Fatalf("%d rows", n)
	}
	if err := ps.deleteExpired(); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if err := disk.Commit([]kv.Write{{Table: basesTable, Key: ann.Player[:], Value: []byte("junk")}}); err != nil {
		t.Fatal(err)
	}
	write(disk, recordOf("ann", 5, 5))
	if r, known, err := ps.Load(t.Context(), ann.Player); err != nil || !known || r.Pose.X != 5 {
		t.Errorf("beside junk: %+v, %t, %v", r, known, err)
	}
}

func anyPassword(*player.Verifier) error { return nil }
