package cputime

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// This file reads what CPU the operating system lets the daemon use. Go rounds a container's quota up, to two cores at
// least, so GOMAXPROCS does not say it.

// Limit is what CPU this process may use. Its methods read the files of control groups each time, since a quota can
// change. Any goroutine may use it. The zero Limit knows of no quota.
type Limit struct {
	groups []group // the process's, and those that contain it, innermost first
}

// group is a control group of the CPU.
type group struct {
	dir string
	v2  bool // of version 2: its files have other names and units
}

// FindLimit returns the limit of this process. Where there are no control groups, it knows of no quota.
func FindLimit() Limit {
	self, err := procfs.Self()
	if err != nil {
		return Limit{}
	}
	return limitOf(self, "/")
}

// limitOf returns the limit of a process whose files are below root.
func limitOf(p procfs.Proc, root string) Limit {
	cgroups, err := p.Cgroups()
	if err != nil {
		return Limit{}
	}
	mounts, err := p.MountInfo()
	if err != nil {
		return Limit{}
	}
	var l Limit
	for _, c := range cgroups {
		v2 := c.HierarchyID == 0
		if !v2 && !slices.Contains(c.Controllers, "cpu") {
			continue
		}
		for _, m := range mounts {
			_, cpu := m.SuperOptions["cpu"]
			if v2 && m.FSType != "cgroup2" || !v2 && (m.FSType != "cgroup" || !cpu) {
				continue
			}
			inside, err := filepath.Rel(m.Root, c.Path)
			if err != nil || strings.HasPrefix(inside, "..") {
				inside = "." // the process's group is what is mounted, by another name
			}
			for ; ; inside = filepath.Dir(inside) {
				l.groups = append(l.groups, group{filepath.Join(root, m.MountPoint, inside), v2})
				if inside == "." {
					break
				}
			}
			break
		}
	}
	return l
}

// Cores returns how many cores the process may use: a fraction, if a control group has a quota.
func (l Limit) Cores() float64 {
	cores := float64(runtime.GOMAXPROCS(0))
	for _, g := range l.groups {
		if quota, ok := g.quota(); ok {
			cores = min(cores, quota)
		}
	}
	return cores
}

// Throttled returns for how long the process, or others in its groups, were not run because a quota was used up, summed
// over the cores. It never falls: a group keeps its time when its quota changes.
func (l Limit) Throttled() (all time.Duration) {
	for _, g := range l.groups {
		all += g.throttled()
	}
	return all
}

// throttled returns for how long members of the group were not run because its quota was used up.
func (g group) throttled() time.Duration {
	for line := range strings.Lines(g.read("cpu.stat")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
		case g.v2 && name == "throttled_usec":
			return time.Duration(n) * time.Microsecond
		case !g.v2 && name == "throttled_time":
			return time.Duration(n)
		}
	}
	return 0
}

// quota returns the group's quota in cores, if it has one.
func (g group) quota() (cores float64, ok bool) {
	var quota, period string
	if g.v2 {
		quota, period, _ = strings.Cut(strings.TrimSpace(g.read("cpu.max")), " ")
	} else {
		quota, period = strings.TrimSpace(g.read("cpu.cfs_quota_us")), strings.TrimSpace(g.read("cpu.cfs_period_us"))
	}
	used, err := strconv.ParseFloat(quota, 64) // microseconds in each period; "max" or -1: no quota
	if err != nil || used <= 0 {
		return 0, false
	}
	each, err := strconv.ParseFloat(period, 64)
	if err != nil || each <= 0 {
		return 0, false
	}
	return used / each, true
}

// read returns the content of one of the group's files; "" if it cannot be read.
func (g group) read(name string) string {
	b, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		return ""
	}
	return string(b)
}
