package chaos

import (
	"context"
	"fmt"
	"strings"

	"github.com/voxelpopuli/voxeld/chaos/machine"
	"github.com/voxelpopuli/voxeld/chaos/report"
	"github.com/voxelpopuli/voxeld/testkit/netns"
)

// scenario is a kind of run.
type scenario struct {
	name     string
	about    string
	events   int  // default
	disks    bool // nodes have disks of their own
	networks bool // nodes have namespaces of their own
	partly   bool // continues without disks or namespaces if they are not available
	hidden   bool // runs only by name
	alone    bool // begins with one node
	copies   int  // of a region, if not 3
	args     []string
	run      func(d *driver, ctx context.Context) error
}

var scenarios = []scenario{
	{name: "kill", about: "kill -9 of one node, two, all replicas of a region, or all nodes", events: 300, run: repeated((*driver).kill)},
	{name: "power", about: "power cuts of one node, two, all replicas of a region, or all nodes", events: 300, disks: true, run: repeated((*driver).cutPower)},
	{name: "pause", about: "SIGSTOP for 0.2 to 6 s, then SIGCONT", events: 100, run: repeated((*driver).pause)},
	{name: "failover", about: "kill -9 of a region's leader: how long until its regions take edits again", events: 200, run: (*driver).failovers},
	{name: "stop", about: "SIGTERM of a region's leader: what players notice", events: 50, run: (*driver).stops},
	{name: "partition", about: "halves, minorities, isolated leaders, one-way cuts, for 6 to 15 s", events: 30, networks: true, run: (*driver).partitions},
	{name: "severed", about: "the same for 15 to 40 s", events: 12, networks: true, run: (*driver).longPartitions},
	{name: "islands", about: "two groups of nodes apart for 90 s", events: 3, networks: true, run: (*driver).splits},
	{name: "grow", about: "one node, then five: how long until all regions have three members", events: 1, alone: true, run: (*driver).grow},
	{name: "gone", about: "a node is lost for good: how long until others have taken its place", events: 5, args: []string{"--replace-after", goneAfter.String()}, run: (*driver).gone},
	{name: "full", about: "full disks, of one node or all, then room again", events: 10, disks: true, run: (*driver).fills},
	{name: "flips", about: "flipped bits in a stopped node's database", events: 30, args: []string{"--replace-after", goneAfter.String()}, run: (*driver).flips},
	{name: "rollback", about: "old copies of nodes' data are put back while others go on", events: 200, run: (*driver).rollbacks},
	{name: "rollback5", about: "the same with five replicas", events: 50, copies: 5, args: []string{"--replicas", "5"}, run: (*driver).rollbacks},
	{name: "divide", about: "regions are split and merged while their members are killed, stopped, cut off or go on", events: 340, networks: true, partly: true, run: (*driver).divides},
	{name: "hostile", about: "an admitted node lies about everything, while a stranger floods another one; then it is revoked", events: 36, networks: true, partly: true, args: []string{"--replace-after", goneAfter.String()}, run: (*driver).attacks},
	{name: "mixed", about: "all of kill, power, pause, SIGTERM, partition, full", events: 200, disks: true, networks: true, partly: true, run: (*driver).mix},
	{name: "short", about: "one of each, half a minute: what CI runs", events: 9, disks: true, networks: true, partly: true, hidden: true, run: (*driver).short},
}

// Scenarios returns the names of the scenarios that run if none is named.
func Scenarios() []string {
	var all []string
	for _, s := range scenarios {
		if !s.hidden {
			all = append(all, s.name)
		}
	}
	return all
}

func find(name string) *scenario {
	for i := range scenarios {
		if scenarios[i].name == name {
			return &scenarios[i]
		}
	}
	return nil
}

// prepare determines which facilities of the scenario this machine has, and records what is missing. It returns false
// if the scenario is impossible without that.
func (s *scenario) prepare(r *report.Report) (disks, networks, possible bool) {
	disks, networks = s.disks, s.networks
	if why := machine.DisksMissing(); disks && why != "" {
		disks = false
		r.Skip("power cuts and full disks", why)
	}
	if why := netns.Missing(); networks && why != "" {
		networks = false
		r.Skip("partitions", why)
	}
	return disks, networks, s.partly || disks == s.disks && networks == s.networks
}

// About describes each scenario in a line.
func About() string {
	var text strings.Builder
	for _, s := range scenarios {
		fmt.Fprintf(&text, "  %-10s %s\n", s.name, s.about)
	}
	return text.String()
}
