package region

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Until the names of a backup are entered, nobody can take one of them, or have a command of before carried out again:
// only moderators give commands.
func TestCommandsWhileNamesAreImported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.adjust = func(_ string, o *Options) { o.World = "world" }
		sign := func(by, name string, seq uint64, text string) nodemsg.Act {
			key := operator(by)
			act := nodemsg.Act{Key: key.Key, Seq: seq, Name: name, Text: text}
			act.Signature, _ = key.Sign(policy.SignedText("world", act))
			return act
		}
		id := func(of string) player.ID { return player.IDOf(operator(of).Key) }
		disk := newDisk()
		for key, text := range map[string]string{
			policysync.ImportUrgent + "1": fmt.Sprintf("member %v 1 moderator mod", id("mod")),
			policysync.ImportNames + "1":  fmt.Sprintf("member %v 5 - ada", id("ada")),
			policysync.ImportNames + "2":  fmt.Sprintf("member %v 5 - eve", id("eve")),
		} {
			if err := disk.Commit([]kv.Write{{Table: policysync.ImportTable, Key: []byte(key), Value: []byte(text)}}); err != nil {
				t.Fatal(err)
			}
		}
		a := n.start("A", disk)
		enter := func(by, name string, seq uint64, text string) string {
			<-time.After(time.Millisecond)
			if seq == 0 {
				seq = uint64(time.Now().UnixMicro())
			}
			did, err := a.Policy.Enter(t.Context(), sign(by, name, seq, text), nil)
			return fmt.Sprint(did, err)
		}
		before := func(when string) {
			t.Helper()
			for _, got := range []string{enter("liar", "ada", 0, "register"), enter("ada", "ada", 5, "register"), enter("ada", "ada", 0, "register")} {
				if !strings.Contains(got, "only moderators give commands") {
					t.Errorf("%s: %s", when, got)
				}
			}
		}
		before("at the start")
		if err := a.Policy.Import(t.Context(), policysync.ImportUrgent); err != nil {
			t.Fatal(err)
		}
		before("once roles are entered")
		if got := enter("mod", "mod", 0, "mute gus"); got != "gus is muted for good. <nil>" {
			t.Errorf("a moderator is answered: %s", got)
		}
		a.stop()
		a = n.start("A", disk)
		before("after a restart")
		if _, err := a.Policy.Operate(t.Context(), fmt.Sprintf("member %v 9 - eve", id("liar"))); err != nil { // an operator has given it away
			t.Fatal(err)
		}
		if err := a.Policy.Import(t.Context(), policysync.ImportNames); err != nil {
			t.Fatal(err)
		}
		var ada, eve player.ID
		a.Policy.Read(func(s *policy.State) {
			ada, _ = s.OwnerOf("ada")
			eve, _ = s.OwnerOf("eve")
		})
		if ada != id("ada") || eve != id("liar") {
			t.Errorf("ada is the name of %v, eve that of %v", ada, eve)
		}
		for _, by := range []string{"ada", "eve"} {
			if got := enter(by, by, 5, "register"); !strings.Contains(got, "carried out already") {
				t.Errorf("a command of before of %s: %s", by, got)
			}
		}
		if got := enter("bob", "bob", 0, "register"); !strings.HasPrefix(got, "The name bob is yours") {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// A node of an operator ends what was never used, once its clock is settled.
func TestUnusedNamesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.adjust = func(_ string, o *Options) { o.World = "world" }
		a := n.start("A", newDisk())
		if _, err := a.Policy.Operate(t.Context(), "set expiry 2d"); err != nil {
			t.Fatal(err)
		}
		key := operator("ada")
		act := nodemsg.Act{Key: key.Key, Seq: uint64(time.Now().UnixMicro()), Name: "ada", Text: "register"}
		act.Signature, _ = key.Sign(policy.SignedText("world", act))
		if _, err := a.Policy.Enter(t.Context(), act, nil); err != nil {
			t.Fatal(err)
		}
		registered := func() (is bool) {
			a.Policy.Read(func(s *policy.State) { _, is = s.OwnerOf("ada") })
			return is
		}
		<-time.After(71 * time.Hour) // the time of names begins when the clock is settled, after a day
		if !registered() {
			t.Error("a name has ended too early")
		}
		<-time.After(4 * time.Hour)
		if registered() {
			t.Error("a name that was never used has not ended")
		}
	})
}

// A gateway that lies about its players, or has many addresses at its door, adds no more within a day than its quota;
// others go on, and operators.
func TestGatewaysHaveQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 2
		n.adjust = func(_ string, o *Options) { o.World = "world" }
		a := n.start("A", newDisk())
		if _, err := a.Locate(t.Context(), here); err != nil { // there is a catalog now
			t.Fatal(err)
		}
		b := n.start("B", newDisk())
		n.near("A", "B")
		<-time.After(time.Minute)
		if _, err := a.Policy.Operate(t.Context(), "set quota gateway 3 0"); err != nil {
			t.Fatal(err)
		}
		register := func(at *node, name string) error {
			<-time.After(time.Millisecond)
			key := operator(name)
			act := nodemsg.Act{Key: key.Key, Seq: uint64(time.Now().UnixMicro()), Name: name, Text: "register"}
			act.Signature, _ = key.Sign(policy.SignedText("world", act))
			_, err := at.Policy.Enter(t.Context(), act, nil) // nobody counts addresses here
			return err
		}
		names := 0
		for i := range 20 {
			if err := register(b, fmt.Sprintf("squat%d", i)); err == nil {
				names++
			} else if !strings.Contains(err.Error(), "set quota gateway") {
				t.Fatal(err)
			}
		}
		if names != 3 {
			t.Errorf("a gateway has registered %d names, want 3", names)
		}
		if err := register(a, "ann"); err != nil {
			t.Errorf("a player of another gateway: %v", err)
		}
		if _, err := b.Policy.Operate(t.Context(), "say hello"); err != nil {
			t.Errorf("the operator of the gateway: %v", err)
		}
		<-time.After(8 * time.Hour)
		if err := register(b, "later"); err != nil {
			t.Errorf("after a third of a day: %v", err)
		}
		if err := register(b, "latest"); err == nil {
			t.Error("the quota is full again after a third of a day")
		}
	})
}

// A gateway that lies sends many logins of one player at once. Each is judged after the one before is entered: one
// confirms the player's name, and the others add nothing.
func TestCommandsOfOneKeyAreEnteredOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.adjust = func(_ string, o *Options) { o.World = "world" }
		a := n.start("A", newDisk())
		key := operator("ada")
		register := nodemsg.Act{Key: key.Key, Seq: uint64(time.Now().UnixMicro()), Name: "ada", Text: "register"}
		register.Signature, _ = key.Sign(policy.SignedText("world", register))
		if _, err := a.Policy.Enter(t.Context(), register, nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(21 * time.Hour)
		before := a.Policy.Acts()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var entering sync.WaitGroup
		var entered atomic.Int32
		for i := range 10 {
			login := player.Login{Key: [32]byte(key.Key), At: time.Now().UnixMilli() - int64(i)}
			signature, _ := key.Sign(player.ProofText(login.Nonce("gateway"), "world"))
			login.Signature = [64]byte(signature)
			entering.Go(func() {
				if _, err := a.Policy.Enter(ctx, policy.Seen("gateway", "ada", login), nil); err == nil {
					entered.Add(1)
				}
			})
		}
		entering.Wait()
		if added := a.Policy.Acts() - before; added != 1 || entered.Load() != 1 {
			t.Errorf("%d commands were added, and %d gateways told so", added, entered.Load())
		}
	})
}
