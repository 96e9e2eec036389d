package region

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/policy"
)

// While a node is there that does not know roles that admins define, none can be defined; once there is one, such a node prevents nothing.
func TestOldNodePreventsTheFirstRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies, n.old = 2, "B"
		n.adjust = func(_ string, o *Options) { o.World = "world" }
		a := n.start("A", newDisk())
		if _, err := a.Locate(t.Context(), here); err != nil { // there is a catalog now
			t.Fatal(err)
		}
		b := n.start("B", newDisk())
		n.near("A", "B")
		<-time.After(time.Minute)
		defined := func(of *node) (count int) {
			of.Policy.Read(func(s *policy.State) { count = len(s.Roles().Defined()) })
			return count
		}
		define := func(text string) error {
			_, err := a.Policy.Operate(t.Context(), text)
			<-time.After(5 * time.Second)
			return err
		}
		say := func(old string) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.old = old
		}
		if err := define("role create helper builder"); err == nil || !strings.Contains(err.Error(), "older version") || defined(a)+defined(b) > 0 {
			t.Errorf("with an old node: %v; %d and %d roles", err, defined(a), defined(b))
		}
		if found := kinds(a.Examiner.Examine(t.Context()), "B"); !slices.Contains(found, "older") {
			t.Errorf("what is found about the old node: %v", found)
		}
		say("")
		<-time.After(time.Minute)
		if err := define("role create helper builder"); err != nil || defined(a) != 1 || defined(b) != 1 {
			t.Errorf("with a new node: %v; %d and %d roles", err, defined(a), defined(b))
		}
		if found := kinds(a.Examiner.Examine(t.Context()), "B"); slices.Contains(found, "older") {
			t.Errorf("what is found about the new node: %v", found)
		}
		say("B")
		<-time.After(time.Minute)
		if err := define("role create other builder"); err != nil || defined(a) != 2 {
			t.Errorf("a node that says that it is old prevents a change: %v", err)
		}
	})
}
