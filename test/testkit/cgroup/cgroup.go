// Package cgroup runs programs in control groups that limit their CPU, as containers and systemd units do. It needs
// root, and Linux.
package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// hierarchies are where control groups of the CPU may be: of version 1, and of version 2.
var hierarchies = []struct{ dir, file, quota, weightFile, weight string }{
	{"/sys/fs/cgroup/cpu,cpuacct", "cpu.cfs_quota_us", "%d000", "cpu.shares", "100000"},
	{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "%d000", "cpu.shares", "100000"},
	{"/sys/fs/cgroup", "cpu.max", "%d000 100000", "cpu.weight", "10000"},
}

// Group is a control group.
type Group struct {
	t    *testing.T
	dir  string
	file string // that has its quota
	text string // of that file, with the quota in thousandths of its period, 100 ms
}

// New makes a control group that ends with the test, when nothing runs in it any more. It skips the test if none can be
// made.
func New(t *testing.T) *Group {
	t.Helper()
	for _, h := range hierarchies {
		g := &Group{t, filepath.Join(h.dir, fmt.Sprintf("voxeld-test-%d", os.Getpid())), h.file, h.quota}
		if os.Mkdir(g.dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(g.dir); err != nil {
				t.Error(err)
			}
		})
		// It gets its quota, however busy the machine that runs the tests is.
		if g.limit(100) == nil && os.WriteFile(filepath.Join(g.dir, h.weightFile), []byte(h.weight), 0) == nil {
			return g
		}
	}
	t.Skip("no control group of the CPU can be made here: that needs root")
	return nil
}

// Limit sets how much CPU all that runs in the group may use, in percent of a core.
func (g *Group) Limit(percent int) {
	g.t.Helper()
	if err := g.limit(percent); err != nil {
		g.t.Fatal(err)
	}
}

func (g *Group) limit(percent int) error {
	return os.WriteFile(filepath.Join(g.dir, g.file), fmt.Appendf(nil, g.text, percent), 0)
}

// Command returns the beginning of a command line: what follows runs in the group.
func (g *Group) Command() []string {
	return []string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, g.dir}
}
