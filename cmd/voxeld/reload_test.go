package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
)

// A running node takes a changed file on request and by SIGHUP. It names what needs a restart. A file with an error
// changes nothing, and the answer says why.
func TestReload(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "voxeld.toml")
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("")
	d := startDaemon(t, "--config", file)
	guest := func(name string) bool {
		t.Helper()
		p := dialSession(t, d.Game, name, 1)
		defer p.leave()
		for m := range p.Inbox {
			if p.receive(m); p.Welcome.Player != "" || p.failure != "" {
				break
			}
		}
		return p.failure == ""
	}
	if !guest("ann") {
		t.Fatal("a guest cannot join")
	}

	save("guests = false\nlog_level = \"warn\"\nreplicas = 5\nedits_per_second = 100\n")
	out, errs, code := voxeld(t, "reload", "--data-dir", d.dir)
	for _, want := range []string{
		"guests changed from true to false\n", "edits_per_second changed from 20 to 100\n",
		"replicas changed from 3 to 5: takes effect after a restart\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("exit %d: no %q in %q %s", code, want, out, errs)
		}
	}
	if guest("bea") {
		t.Error("a guest can join")
	}

	save("guests = true\nmotion_budgt = 3\nview_distance = 99\n")
	_, errs, code = voxeld(t, "reload", "--data-dir", d.dir)
	for _, want := range []string{"nothing was changed", "no option motion_budgt (did you mean motion_budget?)", "view_distance: 99 is out of range"} {
		if !strings.Contains(errs, want) || code != exitUsage {
			t.Errorf("exit %d: no %q in %q", code, want, errs)
		}
	}
	if guest("cid") {
		t.Error("an invalid file has an effect")
	}

	save("guests = true\nreplicas = 5\n")
	if err := d.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "guests can join again", patience, func() bool { return guest("dan") })
	var again admin.Reloaded
	d.ask("reload", &again)
	if len(again.Applied) != 0 || len(again.Restart) != 1 || again.Restart[0] != (admin.Change{Option: "replicas", Old: "3", New: "5"}) {
		t.Errorf("a reload without a change: %+v", again)
	}

	token := d.invite()
	save("guests = true\nreplicas = 5\njoin = [\"" + token + "\", \"/dns4/a.example.org/tcp/4001\"]\n")
	out, errs, code = voxeld(t, "reload", "--data-dir", d.dir)
	if want := `join changed from "" to vx2…,/dns4/a.example.org/tcp/4001: takes effect`; code != 0 || !strings.Contains(out, want) {
		t.Errorf("exit %d: no %q in %q %s", code, want, out, errs)
	}
	if all := out + d.Output(); strings.Contains(all, token[3:20]) || !strings.Contains(d.Output(), "option=join") {
		t.Errorf("a reload prints a join token: %s", all)
	}
}
