package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/region"
)

// doctor runs voxeld doctor, and checks that its exit code agrees with its answer.
func (d *daemon) doctor() region.Health {
	d.t.Helper()
	out, errs, code := voxeld(d.t, "doctor", "--data-dir", d.dir, "--json")
	var health region.Health
	if err := json.Unmarshal([]byte(out), &health); err != nil {
		d.t.Fatalf("voxeld doctor: exit %d: %v in %s%s", code, err, out, errs)
	}
	if (code == 0) != (len(health.Findings) == 0) || code > 1 {
		d.t.Fatalf("voxeld doctor: exit %d with %+v", code, health)
	}
	return health
}

// findings returns the kinds of the findings, each once.
func findings(health region.Health) []string {
	var kinds []string
	for _, f := range health.Findings {
		kinds = append(kinds, f.Kind)
	}
	return slices.Compact(slices.Sorted(slices.Values(kinds)))
}

// The doctor finds no problem, then what is wrong when a node is gone, and no problem again.
func TestDoctor(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	ann := join(t, all[0].Game, "ann", 1)
	built := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(built); return ok })
	ann.put(built, chunk.Brick)
	var health region.Health
	well := func() bool {
		health = all[1].doctor()
		return len(health.Findings)+len(health.Unknown) == 0 && health.Nodes == 3 && health.Awake > 0
	}
	eventually(t, "all is well", patience, well)
	if out, _, code := voxeld(t, "doctor", "--data-dir", all[0].dir); code != 0 || !strings.Contains(out, "no problems found") {
		t.Errorf("for people: exit %d: %s", code, out)
	}
	gone := all[2]
	gone.kill()
	var out, errs string
	eventually(t, "the loss is told", patience, func() bool {
		var code int
		out, errs, code = voxeld(t, "doctor", "--data-dir", all[1].dir)
		return code == exitFailed && strings.Contains(out, "\nunder_replicated: catalog\n") &&
			strings.Contains(out, "\nunreachable: "+gone.Status.Peer+"\n") && strings.Contains(out, "do: start it") && strings.Contains(errs, "found")
	})
	if strings.Contains(out, "no_quorum") || strings.Contains(out, "leaderless") {
		t.Error("too much is told")
	}
	t.Logf("while one of three nodes is gone:\n%s", out)
	gone.start()
	eventually(t, "all is well again", patience, well)
}

// Doctor and status say that a disk fills up before it is full, which is no problem yet: neither doctor's exit code nor
// any test depends on how full the machine's disk is. That a disk is full is a finding of the examination.
func TestDiskFills(t *testing.T) {
	for _, c := range []struct {
		disk admin.Disk
		want int
		text string
	}{
		{admin.Disk{Dir: "data", Free: 10 << 20, Size: 100 << 20}, 0, "10 MiB of 100 MiB free in data"},
		{admin.Disk{Dir: "data", Free: 9 << 20, Size: 100 << 20}, 1, "9.0 MiB of 100 MiB free in data, less than a tenth: once it is full, edits are refused here"},
		{admin.Disk{Dir: "data", Free: -1, Size: -1}, 0, "free space unknown in data"},
		{admin.Disk{Dir: "data", Size: 100 << 20, Full: true, Error: "no space left"}, 0, admin.Disk{Dir: "data", Size: 100 << 20, Full: true}.Problem()},
	} {
		if d := examineDisk(admin.Doctor{}, c.disk); len(d.Notes) != c.want || len(d.Findings) != 0 {
			t.Errorf("%+v: notes %q, findings %v; want %d notes", c.disk, d.Notes, d.Findings, c.want)
		}
		if got := c.disk.String(); got != c.text {
			t.Errorf("%+v: %q, want %q", c.disk, got, c.text)
		}
	}
}

// Doctor says that the log of commands fills up before it is full.
func TestCommandLogFills(t *testing.T) {
	for used, want := range map[float64]int{0: 0, 0.8: 0, 0.81: 1, 1.2: 1} {
		if found := examineCommands(admin.Doctor{}, used).Findings; len(found) != want {
			t.Errorf("%v is used: %v, want %d findings", used, found, want)
		}
	}
}
