package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
)

// Commands are compacted twice while one node is down for the whole time and another one is killed. These two, a node that joins later and a world that is
// restored from a backup have the same names, roles, bans and claims, and no node has the commands of before.
func TestCommandsAreCompacted(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	first, second, away := all[0], all[1], all[2]
	eventually(t, "three members of the catalog", patience, func() bool { return first.metric("voxeld_catalog_members") == 3 })
	ada, bob := joinWithKey(t, first.Game, "ada", "ada's key"), joinWithKey(t, away.Game, "bob", "bob's key")
	for _, text := range []string{"register", "claim 5000,0 5009,9 home", "trust home bob"} {
		if text == "trust home bob" {
			bob.command("register")
		}
		if got := ada.command(text); strings.Contains(got, "usage") || strings.Contains(got, "nobody has") {
			t.Error(got)
		}
	}
	first.operate("role", "bob", "moderator")
	away.kill()
	first.operate("ban", "eve")
	first.operate("compact")
	for i := range 5 {
		ada.command(fmt.Sprintf("claim 60%d0,0 60%d9,9 land%d", i, i, i))
	}
	done := make(chan error, 1)
	go func() {
		_, errs, code := voxeld(t, "compact", "--data-dir", first.dir)
		for try := 0; code != 0 && try < 20; try++ { // the others are down
			_, errs, code = voxeld(t, "compact", "--data-dir", first.dir)
		}
		if code != 0 {
			errs = fmt.Sprintf("voxeld compact: exit %d: %s", code, errs)
			done <- fmt.Errorf("%s", errs)
			return
		}
		done <- nil
	}()
	second.kill()
	second.start()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	first.operate("mute", "zoe")
	eventually(t, "the catalog has dropped commands", patience, func() bool { return strings.Contains(first.Output(), "the catalog has dropped commands") })
	away.start()
	late := startDaemon(t, "--join", first.invite())
	nodes := []*daemon{first, second, away, late}
	numbers := func(d *daemon) (from, to uint64) {
		var audit []admin.AuditEntry
		d.ask("audit", &audit)
		if len(audit) == 0 {
			return 0, 0
		}
		return audit[0].Number, audit[len(audit)-1].Number
	}
	lists := func(d *daemon) (text string) {
		for _, command := range []string{"roles", "bans", "claims"} {
			out, errs, code := voxeld(t, command, "--data-dir", d.dir)
			if code != 0 {
				t.Fatalf("voxeld %s: exit %d: %s", command, code, errs)
			}
			text += out
		}
		return text
	}
	eventually(t, "the node that was away takes a snapshot", patience, func() bool { return strings.Contains(away.Output(), "or later ones only") })
	_, last := numbers(first)
	for _, d := range nodes {
		eventually(t, "the node on "+d.ip+" has all commands", patience, func() bool { _, to := numbers(d); return to == last })
		if from, _ := numbers(d); from < 2 {
			t.Errorf("the node on %s has commands from number %d on", d.ip, from)
		}
		if got, want := lists(d), lists(first); got != want {
			t.Errorf("the node on %s has\n%s\nwant\n%s", d.ip, got, want)
		}
	}
	for _, d := range nodes { // each signs what it has, and the others compare it with theirs
		d.operate("compact")
		last++
	}
	for _, d := range nodes {
		eventually(t, "the node on "+d.ip+" has compared them", patience, func() bool { _, to := numbers(d); return to == last })
		if n := d.metric("voxeld_policy_acts_total", "result", "differs"); n > 0 {
			t.Errorf("the node on %s has another policy than %v of the signed ones", d.ip, n)
		}
	}
	want := lists(first)
	file := first.backUp()
	for _, d := range nodes {
		d.kill()
	}
	restored := restoreDaemon(t, first.rootKey(), file)
	eventually(t, "the restored world has the same policy", patience, func() bool { return lists(restored) == want })
}
