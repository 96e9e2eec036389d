package region

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// harmGroup makes a row of the group's log or state unreadable: the last one whose key ends in the byte.
func (d *disk) harmGroup(table string, id uint64, last byte) (found bool) {
	d.harm(table, func(rows map[string][]byte, bad badRows) {
		for key := range rows {
			if strings.HasPrefix(key, string(directory.Key(id))) && (last == 0 || key[len(key)-1] == last) {
				bad[table+"/"+key], found = true, true
			}
		}
	})
	return found
}

func (n *node) replicaID(id uint64) uint64 {
	l := n.regions.Loaded(id)
	if l == nil {
		return 0
	}
	for _, m := range l.Raft().Configuration().Members {
		if m.Peer == n.peer && !m.Learner {
			return m.ID
		}
	}
	return 0
}

// A node that comes back and cannot read its copy does not use it. The others remove its replica, and it gets a new
// one, under another id.
func TestDamagedCopyIsReplaced(t *testing.T) {
	for _, c := range []struct {
		name, table string
		last        byte
	}{
		{"vote", "raft_state", 's'}, {"configuration", "raft_state", 'c'}, {"log", "raft_log", 0}, {"land", world.LandTable, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, cc, g, info := built(t)
				left := a.net.kill(cc)
				if !left.harmGroup(c.table, info.ID, c.last) {
					t.Fatal("nothing was harmed")
				}
				if err := g.Close(); err != nil {
					t.Fatal(err)
				}
				g = a.refollow()
				again := a.net.start("C", left)
				if r := g.edit(stone(50))[50]; r.Refused != "" {
					t.Errorf("edit: %+v", r)
				}
				<-time.After(40 * time.Second)
				if id := again.replicaID(info.ID); id <= 3 {
					t.Errorf("C is replica %d", id)
				}
				if d := again.Damaged(); len(d) != 0 {
					t.Errorf("left: %+v", d)
				}
				if s := g.state(here); len(s.Edits) != 6 {
					t.Errorf("the land has the edits %+v", s.Edits)
				}
				same(t, info.ID, a, b, again)
				if out := a.Scrub(t.Context(), info.Cell); out.Err != nil || out.Reported != 3 || out.Damaged != 0 {
					t.Errorf("%+v", out)
				}
			})
		})
	}
}

// A copy is not deleted while the disk does not let the file be checked, and nobody is told that the file is damaged.
// If it is, a new copy would be, too, and an operator is asked.
func TestCopyIsReplacedOnceTheFileIsSound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, cc, g, info := built(t)
		left := a.net.kill(cc)
		left.harmGroup("raft_state", info.ID, 's')
		left.setBroken(errors.New("no space left on device"))
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		a.refollow()
		again := a.net.start("C", left)
		for _, c := range []struct {
			err  error
			want copies.Reason
		}{
			{errors.New("no space left on device"), copies.Damaged},
			{kv.ErrDamaged, copies.FileDamaged},
			{errors.New("no space left on device"), copies.FileDamaged},
		} {
			left.setBroken(c.err)
			<-time.After(40 * time.Second)
			if d := again.Damaged(); len(d) != 1 || d[0].Reason != c.want.String() {
				t.Errorf("while the check says %q: %+v", c.err, d)
			}
		}
		if id := again.replicaID(info.ID); id != 0 {
			t.Errorf("C is replica %d", id)
		}
		left.setBroken(nil)
		again = a.net.start("C", a.net.kill(again)) // whoever has mended the file has stopped the node for it
		<-time.After(40 * time.Second)
		if id := again.replicaID(info.ID); id <= 3 {
			t.Errorf("with a sound file C is replica %d", id)
		}
	})
}

// A copy that is damaged again after each replacement is not replaced a fourth time within a day: the disk is to be
// looked at.
func TestCopyIsReplacedThreeTimesADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, c, _, info := built(t)
		for times := 1; times <= 4; times++ {
			c.opener.OpenMember(t.Context(), info.ID) //nolint:errcheck // an error shows in the id
			before := c.replicaID(info.ID)
			now, err := c.regions.Member(info.ID)
			if err != nil {
				t.Fatal(err)
			}
			c.executor.Note(now, copies.Unreadable, kv.ErrDamaged)
			<-time.After(time.Minute)
			c.opener.OpenMember(t.Context(), info.ID) //nolint:errcheck // an error shows in the id
			left := c.Damaged()
			switch {
			case before == 0:
				t.Fatal("C has no copy")
			case times <= 3 && (len(left) != 0 || c.replicaID(info.ID) <= before):
				t.Errorf("replica %d is not replaced: %+v", before, left)
			case times == 4 && (len(left) != 1 || left[0].Reason != copies.ReplacedTooOften.String()):
				t.Errorf("after three replacements: %+v", left)
			}
		}
	})
}

// A scrub also detects that the log of an open group cannot be read. The node, even a leader, continues with its memory
// until another replica has replaced it.
func TestDamagedLogOfAnOpenGroup(t *testing.T) {
	for _, who := range []string{"A", "C"} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, c, g, info := built(t)
				it := map[string]*node{"A": a, "C": c}[who]
				it.disk.harmGroup("raft_log", info.ID, 0)
				if out := a.Scrub(t.Context(), info.Cell); out.Err != nil || out.Damaged != 0 {
					t.Errorf("%+v", out)
				}
				if d := it.Damaged(); len(d) != 1 || d[0].Peer != who {
					t.Errorf("damaged: %+v", d)
				}
				if err := g.Close(); err != nil {
					t.Fatal(err)
				}
				<-time.After(40 * time.Second)
				g = b.refollow()
				if r := g.edit(stone(50))[50]; r.Refused != "" {
					t.Errorf("edit: %+v", r)
				}
				<-time.After(10 * time.Second)
				if id := it.replicaID(info.ID); id <= 3 {
					t.Errorf("%s is replica %d", who, id)
				}
				if d := it.Damaged(); len(d) != 0 {
					t.Errorf("left: %+v", d)
				}
				same(t, info.ID, a, b, c)
			})
		})
	}
}

// The removal of a corrupt copy is requested twice, because the first answer was lost. The tombstone has the id of that
// copy, whoever is a member by now. The replica that replaced it is not discarded.
func TestReseedIsAskedForTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		left := a.net.kill(c)
		leader := leaderAmong(a, b)
		if id, err := leader.executor.RemoveReplica(t.Context(), "C", info.ID); err != nil || id != 3 {
			t.Fatalf("C is taken out as replica %d, %v", id, err)
		}
		if id, err := leader.executor.RemoveReplica(t.Context(), "C", info.ID); err != nil || id < 3 {
			t.Errorf("it is out already: the tombstone is to be %d, %v", id, err)
		}
		before, err := leader.regions.registry.Region(info.ID)
		if err != nil {
			t.Fatal(err)
		}
		before.Members = append(before.Members, nodemsg.Member{Peer: "C", Game: "127.0.0.1:4002", Replica: 3})
		c = a.net.start("C", left)
		a.refollow() // keeps it open
		<-time.After(20 * time.Second)
		id := c.replicaID(info.ID)
		if id <= 3 {
			t.Fatalf("C is replica %d", id)
		}
		if err := c.executor.Replace(t.Context(), before); err != nil {
			t.Error(err)
		}
		if now := c.replicaID(info.ID); now != id {
			t.Errorf("the sound replica %d was discarded: C is replica %d", id, now)
		}
	})
}

// An edit that was acknowledged by the leader and the member with the damaged copy is on a second disk before that copy
// may be deleted.
func TestReseedWaitsForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _, g, info := built(t)
		if !a.leads() {
			t.Fatal("A does not lead")
		}
		a.net.cut("B", true)
		if r := g.edit(stone(50))[50]; r.Refused != "" { // on A and C
			t.Fatalf("edit: %+v", r)
		}
		held := b.regions.Loaded(info.ID).Raft().Status().Last
		if id, err := a.executor.RemoveReplica(t.Context(), "C", info.ID); err == nil {
			t.Errorf("C is taken out as replica %d, while B has %d entries of %d", id, held, a.regions.Loaded(info.ID).Raft().Status().Last)
		}
		a.net.cut("B", false)
		<-time.After(3 * time.Second)
		if id, err := a.executor.RemoveReplica(t.Context(), "C", info.ID); err != nil || id != 3 {
			t.Errorf("C is taken out as replica %d, %v", id, err)
		}
	})
}

// Without other members the damaged copy is not used, and stays as it is.
func TestDamagedCopyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a := n.start("A", newDisk())
		a.follow(here).edit(stone(1))
		<-time.After(time.Second)
		info := a.Regions(t.Context())[0].Region
		catalog, err := n.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		left := n.kill(a)
		n.mu.Lock()
		n.mu.catalog = catalog
		n.mu.Unlock()
		left.harmGroup(world.LandTable, info.ID, 0)
		rows := len(left.land(info.ID))
		a = n.start("A", left)
		if _, _, err := a.Follow(t.Context(), here); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("follow: %v", err)
		}
		<-time.After(time.Minute)
		if d := a.Damaged(); len(d) != 1 || d[0].Region != info.ID {
			t.Errorf("damaged: %+v", d)
		}
		if len(left.land(info.ID)) != rows {
			t.Error("rows were deleted")
		}
	})
}

// A copy that was found damaged when the storage was opened is never opened, even if all remaining rows of it can be
// read.
func TestSuspectsAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, _, info := built(t)
		left := a.net.kill(c)
		a.net.adjust = func(peer string, o *Options) {
			o.DamagedRegions = map[uint64]string{info.ID: "a row lies near a damaged one", 77: "nothing here"}
		}
		left.harm(world.LandTable, func(rows map[string][]byte, _ badRows) { delete(rows, editRow(info.ID, stone(1))) })
		c = a.net.start("C", left)
		if d := c.Damaged(); len(d) != 1 {
			t.Errorf("damaged: %+v", d)
		}
		<-time.After(40 * time.Second)
		g := b.refollow()
		g.edit(stone(60))
		<-time.After(10 * time.Second)
		if id := c.replicaID(info.ID); id <= 3 {
			t.Errorf("C is replica %d", id)
		}
		same(t, info.ID, a, b, c)
	})
}

// Damaged rows of the node's own list of regions are dispensable: the catalog has the same data.
func TestDamagedRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		left := a.net.kill(c)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		left.harmGroup(directory.Table, info.ID, 0)
		c = a.net.start("C", left)
		g = b.refollow()
		g.edit(stone(60))
		<-time.After(5 * time.Second)
		same(t, info.ID, a, b, c)
	})
}
