package region

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// rulesOf returns how many acts a node has, and its bans and mutes.
func rulesOf(n *node) (text string) {
	n.Policy.Read(func(s *policy.State) {
		text = fmt.Sprint(s.Acts(), " acts;")
		for _, it := range s.Sanctions(time.Now()) {
			text += fmt.Sprint(" ", it.Kind, " ", it.Target)
		}
	})
	return text
}

// issuers has a node be the only issuer, from charter 5 on, of those that are known.
func issuers(o *Options, node string, known *atomic.Uint64) {
	o.World, o.Operator.Charter = "world", known.Load
	o.Issued = func(charter uint64, key ed25519.PublicKey) (bool, error) {
		if charter > known.Load() {
			return false, policy.ErrUnknownCharter
		}
		return charter >= 5 && key.Equal(operator(node).Key), nil
	}
}

// A node that leads the catalog enters commands under charters that will never be. They count for nothing, and hold up
// no other. A command whose charter is known later takes effect then, in its place before those that were read
// meanwhile.
func TestUnknownCharterHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		known := map[string]*atomic.Uint64{"A": new(atomic.Uint64), "B": new(atomic.Uint64)}
		known["A"].Store(5)
		known["B"].Store(5)
		n.adjust = func(peer string, o *Options) { issuers(o, "A", known[peer]) }
		a := n.start("A", newDisk())
		disk := newDisk()
		b := n.start("B", disk)
		operate := func(text string) {
			t.Helper()
			<-time.After(time.Millisecond)
			if _, err := a.Policy.Operate(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			<-time.After(3 * time.Second)
		}
		operate("mute eve")
		liar := operator("liar")
		for i, charter := range []uint64{6, uint64(time.Now().Unix()), 1 << 60} {
			act := nodemsg.Act{At: 1, Key: liar.Key, Seq: uint64(1 + i), Operator: true, Charter: charter, Text: "ban ann"}
			act.Signature, _ = liar.Sign(policy.SignedText("world", act))
			if _, err := a.regions.Catalog().Enter(t.Context(), act); err != nil {
				t.Fatal(err)
			}
		}
		operate("ban bob")
		if got, want := rulesOf(b), "5 acts; ban bob mute eve"; got != want || rulesOf(a) != want {
			t.Errorf("A has %s, B has %s, want %s", rulesOf(a), got, want)
		}
		known["A"].Store(7)
		operate("pardon bob")
		gus := operator("gus")
		act := nodemsg.Act{Key: gus.Key, Seq: uint64(time.Now().UnixMicro()), Name: "gus", Text: "register"}
		act.Signature, _ = gus.Sign(policy.SignedText("world", act))
		if _, err := b.Policy.Enter(t.Context(), act, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := rulesOf(b), "7 acts; ban bob mute eve"; got != want {
			t.Errorf("B does not know the charter, and has %s, want %s", got, want)
		}
		known["B"].Store(7)
		<-time.After(3 * time.Second)
		if got, want := rulesOf(b), "7 acts; mute eve"; got != want || rulesOf(a) != want {
			t.Errorf("once it knows the charter B has %s, and A %s, want %s", got, rulesOf(a), want)
		}
		b.stop()
		b = n.start("B", disk)
		if rulesOf(b) != rulesOf(a) {
			t.Errorf("after a restart B has %s, and A %s", rulesOf(b), rulesOf(a))
		}
	})
}

// What operators ordered while the world was open counts after it was closed, and what they sign without a charter from
// then on does not. In a world that an earlier version closed none of it counts, as it did not there.
func TestOrdersOfAnOpenWorld(t *testing.T) {
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint("kept: ", kept), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.adjust = func(_ string, o *Options) { o.World = "world" }
				disk := newDisk()
				a := n.start("A", disk)
				if _, err := a.Policy.Operate(t.Context(), "ban bob"); err != nil {
					t.Fatal(err)
				}
				a.stop()

				var known atomic.Uint64
				known.Store(5)
				n.adjust = func(_ string, o *Options) {
					issuers(o, "A", &known)
					o.Operator.WasOpen = kept
				}
				a = n.start("A", disk)
				want := map[bool]string{true: "1 acts; ban bob", false: "1 acts;"}[kept]
				if got := rulesOf(a); got != want {
					t.Errorf("after the closing there are %s, want %s", got, want)
				}
				<-time.After(time.Minute)
				act := nodemsg.Act{Key: operator("liar").Key, Seq: uint64(time.Now().UnixMicro()), Operator: true, Text: "ban ann"}
				act.Signature, _ = operator("liar").Sign(policy.SignedText("world", act))
				if _, err := a.Policy.Enter(t.Context(), act, nil); err == nil {
					t.Error("a node without a charter orders something")
				}
				if _, err := a.regions.Catalog().Enter(t.Context(), act); err != nil {
					t.Fatal(err)
				}
				<-time.After(3 * time.Second)
				want = map[bool]string{true: "3 acts; ban bob", false: "2 acts;"}[kept]
				if got := rulesOf(a); got != want {
					t.Errorf("in the end there are %s, want %s", got, want)
				}
				if _, err := a.Policy.Operate(t.Context(), "pardon bob"); (err == nil) != kept || errors.Is(err, policy.ErrUnknownCharter) {
					t.Errorf("a pardon: %v", err)
				}
			})
		})
	}
}
