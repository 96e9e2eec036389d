package region

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world/acts"
)

// compactedEvery is after how many commands these tests compact them.
const compactedEvery = 10

// village is a network whose players and operators give commands.
type village struct {
	*network
	t     *testing.T
	a     *node
	given int
}

// newVillage starts A, which has the catalog.
func newVillage(t *testing.T, d *disk, adjust func(peer string, o *Options)) *village {
	n := newNetwork(t)
	n.copies = 3
	n.adjust = func(peer string, o *Options) {
		o.World, o.CompactEvery = "world", compactedEvery
		if adjust != nil {
			adjust(peer, o)
		}
	}
	it := &village{network: n, t: t, a: n.start("A", d)}
	if _, err := it.a.Locate(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	return it
}

// act returns a signed command of a player.
func (n *village) act(name, text string) nodemsg.Act {
	key := operator(name)
	act := nodemsg.Act{Key: key.Key, Seq: uint64(time.Now().UnixMicro()), Name: name, Text: text}
	act.Signature, _ = key.Sign(policy.SignedText("world", act))
	return act
}

// some gives so many commands that they are compacted, and waits until they are, and the catalog has dropped those of the time before.
func (n *village) some() (last nodemsg.Act) {
	n.t.Helper()
	for range compactedEvery {
		n.given++
		<-time.After(time.Millisecond)
		text := "register"
		if n.given%2 == 0 {
			text = fmt.Sprintf("claim %d,0 %d,9 home", 100*n.given, 100*n.given+9)
		}
		last = n.act(fmt.Sprintf("p%d", (n.given+1)/2), text)
		if _, err := n.a.Policy.Enter(n.t.Context(), last, nil); err != nil {
			n.t.Fatalf("/%s: %v", text, err)
		}
	}
	<-time.After(time.Minute)
	return last
}

func (n *village) operate(of *node, text string) {
	n.t.Helper()
	<-time.After(time.Millisecond)
	if _, err := of.Policy.Operate(n.t.Context(), text); err != nil {
		n.t.Fatalf("/%s: %v", text, err)
	}
}

// agree fails unless these nodes have the same policy as A.
func (n *village) agree(nodes ...*node) {
	n.t.Helper()
	for _, of := range nodes {
		if got, want := policyOf(of), policyOf(n.a); got != want {
			n.t.Errorf("%s has %s, A %s", of.peer, got, want)
		}
	}
}

// policyOf returns how many commands there are, and the hash of what they have come to.
func policyOf(of *node) (text string) {
	of.Policy.Read(func(s *policy.State) { text = s.CompactText() })
	return text
}

// firstRow returns the number of the first command in a table, and whether there is a snapshot.
func firstRow(t *testing.T, d *disk, table string) (number uint64, snapshot bool) {
	t.Helper()
	if err := d.Scan(table, nil, func(key, _ []byte) error {
		if acts.IsSnapshotRow(kv.Write{Key: key}) {
			snapshot = true
		} else if of := uint64(key[6])<<8 + uint64(key[7]); number == 0 {
			number = of // row 0 of the catalog comes first
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return number, snapshot
}

// Commands that are compacted are dropped on all nodes and from the catalog. A node that comes later begins with the snapshot; one that was away for the
// whole time, as a member of the catalog, catches up; one that starts again has the same policy; and commands that were dropped are not carried out again.
func TestCommandsAreCompacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*disk{"A": newDisk(), "B": newDisk(), "C": newDisk(), "D": newDisk()}
		n := newVillage(t, disks["A"], nil)
		b, c := n.start("B", disks["B"]), n.start("C", disks["C"])
		n.near("A", "B", "C")
		<-time.After(2 * time.Minute)
		if c.regions.Catalog() == nil {
			t.Fatal("C is no member of the catalog")
		}
		n.operate(n.a, "ban eve")
		var dropped nodemsg.Act
		for _, text := range []string{"register", "claim 9000,0 9009,9 home", "unclaim home"} {
			<-time.After(time.Millisecond)
			act := n.act("early", text)
			if _, err := n.a.Policy.Enter(t.Context(), act, nil); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(text, "claim") {
				dropped = act
			}
		}
		left := n.kill(c)
		n.some()
		n.some()
		n.some()
		n.agree(b)
		for _, name := range []string{"A", "B"} {
			if first, snapshot := firstRow(t, disks[name], "policy"); first < 2*compactedEvery || !snapshot {
				t.Errorf("%s has commands from number %d on, and a snapshot: %t", name, first, snapshot)
			}
			rows := 0
			if err := disks[name].Scan(acts.Table, nil, func([]byte, []byte) error { rows++; return nil }); err != nil || rows > 2*compactedEvery {
				t.Errorf("the catalog of %s has %d commands, %v", name, rows, err)
			}
		}
		before := policyHash(n.a)
		if _, err := n.a.regions.Catalog().Enter(t.Context(), dropped); err != nil { // a leader that lies lists it again
			t.Fatal(err)
		}
		c = n.start("C", left)
		d := n.start("D", disks["D"])
		n.near("A", "B", "C", "D")
		<-time.After(time.Minute)
		n.agree(b, c, d)
		if got := policyHash(n.a); got != before {
			t.Error("a command that was dropped is carried out again")
		}
		b = n.start("B", n.kill(b))
		n.agree(b)
		n.near("A", "B", "C", "D")
		n.some()
		n.agree(b, c, d)
		for _, of := range []*node{n.a, b, c, d} {
			if differ := of.metric("voxeld_policy_acts_total", "differs"); differ > 0 {
				t.Errorf("%s found %v snapshots that are not its own", of.peer, differ)
			}
		}
	})
}

func policyHash(of *node) string { return strings.Fields(policyOf(of))[2] }

// A node begins with no snapshot but that which an operator has signed, though a member of the catalog sends another one.
func TestSnapshotOfALiar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*disk{"A": newDisk(), "B": newDisk()}
		n := newVillage(t, disks["A"], nil)
		b := n.start("B", disks["B"])
		n.near("A", "B")
		<-time.After(time.Minute)
		n.operate(n.a, "ban eve")
		n.some()
		n.some()
		for _, name := range []string{"A", "B"} { // each in turn, whichever is asked first
			of, _ := n.a.policyCompacted()
			key := acts.SnapshotKey(of, 0)
			var honest []byte
			if err := disks[name].Scan("policy", key, func(_, value []byte) error { honest = value; return nil }); err != nil {
				t.Fatal(err)
			}
			put := func(value []byte) {
				if err := disks[name].Commit([]kv.Write{{Table: "policy", Key: key, Value: value}}); err != nil {
					t.Fatal(err)
				}
			}
			put(policy.New().Snapshot()[0])
			late := n.start("late"+name, newDisk())
			n.near("A", "B", late.peer)
			<-time.After(time.Minute)
			n.agree(b, late)
			put(honest)
			n.kill(late)
		}
	})
}

func (n *node) policyCompacted() (last, before uint64) {
	n.Policy.Read(func(s *policy.State) { last, before = s.Compacted() })
	return last, before
}

// A node whose policy is another one than that which an operator has signed keeps all commands, and counts that. It goes on with later ones.
func TestPolicyDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*disk{"A": newDisk(), "B": newDisk()}
		wrong := operator("node of an operator")
		n := newVillage(t, disks["A"], func(peer string, o *Options) {
			o.Issued = func(_ uint64, key ed25519.PublicKey) (bool, error) {
				return key.Equal(operator("A").Key) || peer == "A" && key.Equal(wrong.Key), nil
			}
		})
		b := n.start("B", disks["B"])
		n.near("A", "B")
		<-time.After(time.Minute)
		act := nodemsg.Act{Key: wrong.Key, Seq: uint64(time.Now().UnixMicro()), Operator: true, Text: "ban eve"}
		act.Signature, _ = wrong.Sign(policy.SignedText("world", act))
		if _, err := n.a.Policy.Enter(t.Context(), act, nil); err != nil {
			t.Fatal(err)
		}
		n.some()
		n.some()
		n.some()
		if first, snapshot := firstRow(t, disks["B"], "policy"); first != 1 || snapshot {
			t.Errorf("B has commands from number %d on, and a snapshot: %t", first, snapshot)
		}
		if differ := b.metric("voxeld_policy_acts_total", "differs"); differ < 2 {
			t.Errorf("B found %v snapshots that are not its own", differ)
		}
		if got, want := b.Policy.Acts(), n.a.Policy.Acts(); got != want {
			t.Errorf("B has %d commands of %d", got, want)
		}
	})
}

// A node that does not know the charter of the operator when commands are compacted drops them, and has the snapshot, once it does.
func TestCompactedUnderANewCharter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*disk{"A": newDisk(), "B": newDisk()}
		known := map[string]*atomic.Uint64{"A": new(atomic.Uint64), "B": new(atomic.Uint64)}
		known["A"].Store(5)
		known["B"].Store(5)
		n := newVillage(t, disks["A"], func(peer string, o *Options) { issuers(o, "A", known[peer]) })
		b := n.start("B", disks["B"])
		n.near("A", "B")
		<-time.After(time.Minute)
		n.operate(n.a, "ban eve")
		known["A"].Store(7)
		n.some()
		if _, snapshot := firstRow(t, disks["B"], "policy"); snapshot {
			t.Error("B has a snapshot of a charter that it does not know")
		}
		known["B"].Store(7)
		<-time.After(10 * time.Second)
		n.agree(b)
		if _, snapshot := firstRow(t, disks["B"], "policy"); !snapshot {
			t.Error("B knows the charter, and has no snapshot")
		}
		b = n.start("B", n.kill(b))
		n.agree(b)
	})
}
