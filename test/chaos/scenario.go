package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/machine"
	"github.com/voxelpopuli/voxeld/test/testkit/clockstep"
	"github.com/voxelpopuli/voxeld/test/testkit/netns"
)

// scenario is a kind of run: a shape of cluster, and the strikes that hit it in random order.
type scenario struct {
	name    string
	about   string
	events  int      // default
	strikes []string // names; as many of each as of the others
	settle  bool     // the cluster is healthy before each event
	reads   int      // events between two intermediate readings; default 25
	hidden  bool     // runs only by name
	brief   bool     // faults last at most briefly, also on a machine with other load
	copies  int      // of a region, if not 3

	// hostile is more than its strikes, and has these in their place. It uses what it needs if the machine has it.
	run   func(d *driver, ctx context.Context) error
	needs need
	takes time.Duration // of an event, on average
}

var scenarios = []scenario{
	{
		name: "kill", about: "kill -9 of one node, two, all replicas of a region, or all nodes",
		events: 300, strikes: []string{"kill"},
	},
	{
		name: "power", about: "power cuts of one node, two, all replicas of a region, or all nodes",
		events: 300, strikes: []string{"power"},
	},
	{name: "pause", about: "SIGSTOP for 0.2 to 6 s, then SIGCONT", events: 100, strikes: []string{"pause"}},
	{name: "hang", about: "a disk hangs for 5 to 60 s", events: 50, strikes: []string{"hang"}, settle: true},
	{
		name: "slow", about: "a disk syncs only every 0.1 to 0.8 s, for 10 to 30 s",
		events: 30, strikes: []string{"slow"}, settle: true,
	},
	{
		name: "partial", about: "a leader and another member of its region cannot reach each other, one way or both, for 6 to 15 s",
		events: 30, strikes: []string{"partial"}, settle: true,
	},
	{
		name: "step", about: "wall clocks are off by 30 s to 400 days, for 40 to 130 s",
		events: 16, strikes: []string{"step"}, settle: true,
	},
	{
		name: "failover", about: "kill -9 of a region's leader: how long until its regions take edits again",
		events: 200, strikes: []string{"failover"},
	},
	{name: "stop", about: "SIGTERM of a region's leader: what players notice", events: 50, strikes: []string{"stop"}},
	{
		name: "partition", about: "halves, minorities, isolated leaders, one-way cuts, for 6 to 15 s",
		events: 30, strikes: []string{"partition"}, settle: true, reads: 5,
	},
	{name: "severed", about: "the same for 15 to 40 s", events: 12, strikes: []string{"severed"}, settle: true, reads: 5},
	{name: "islands", about: "two groups of nodes apart for 90 s", events: 3, strikes: []string{"islands"}, settle: true, reads: 1},
	{
		name: "grow", about: "one node, then five: how long until all regions have three members",
		events: 1, strikes: []string{"grow"},
	},
	{
		name: "gone", about: "a node is lost for good: how long until others have taken its place",
		events: 5, strikes: []string{"gone"}, settle: true,
	},
	{name: "full", about: "full disks, of one node or all, then room again", events: 10, strikes: []string{"full"}, settle: true},
	{name: "flips", about: "flipped bits in a stopped node's database", events: 30, strikes: []string{"flip"}, settle: true, reads: 1},
	{
		name: "rollback", about: "old copies of nodes' data are put back while others go on",
		events: 200, strikes: []string{"rollback"}, settle: true, reads: 5,
	},
	{name: "rollback5", about: "the same with five replicas", events: 50, copies: 5, strikes: []string{"rollback"}, settle: true, reads: 5},
	{
		name: "divide", about: "regions are split and merged while their members are killed, stopped, cut off or go on",
		events: 340, strikes: []string{"divide"}, needs: networks,
	},
	{
		name: "hostile", about: "an admitted node lies about everything, while a stranger floods another one; then it is revoked",
		events: 36, run: (*driver).attacks, needs: networks, takes: 12 * time.Second,
	},
	{
		name: "mix", about: "kills, power cuts, disks that hang or are slow, clocks that step, partial cuts",
		events: 72, strikes: []string{"kill", "power", "hang", "slow", "step", "partial"},
	},
	{
		name: "short", about: "each once, in two minutes: what CI runs",
		events: 11, hidden: true, settle: true, brief: true,
		strikes: []string{"kill", "power", "pause", "hang", "slow", "partial", "failover", "stop", "partition", "full", "divide"},
	},
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

// find returns the scenario of a name. Strikes with + between them are one as well: of ten events for each.
func find(name string) (*scenario, error) {
	for i := range scenarios {
		if scenarios[i].name == name {
			return &scenarios[i], nil
		}
	}
	s := &scenario{name: name, strikes: strings.Split(name, "+")}
	if s.events = 10 * len(s.strikes); len(s.kinds()) < len(s.strikes) {
		var all []string
		for _, k := range strikes {
			all = append(all, k.name)
		}
		return nil, fmt.Errorf("unknown scenario %q; known are: %s; and strikes with + between them: %s",
			name, strings.Join(Scenarios(), ", "), strings.Join(all, ", "))
	}
	return s, nil
}

// judged reports whether it is judged how long edits and joins wait. If the cluster was not healthy before a fault,
// they wait for more than that one.
func (s *scenario) judged() bool { return s.settle && !s.brief }

// alone reports whether the run begins with one node.
func (s *scenario) alone() bool { return slices.Contains(s.strikes, "grow") }

// flags returns the flags with which the daemons run.
func (s *scenario) flags() (all []string) {
	for _, k := range s.kinds() {
		all = append(all, k.args...)
	}
	if s.copies > 0 {
		all = append(all, "--replicas", fmt.Sprint(s.copies))
	}
	if s.run != nil {
		all = append(all, replaceSoon...)
	}
	return all
}

// need is what the machine must have for a strike.
type need uint8

const (
	disks    need = 1 << iota // nodes have disks of their own
	networks                  // nodes have namespaces of their own
	clocks                    // nodes have wall clocks of their own
)

// needs of the strikes by which a missing one is reported, and how to find out whether the machine has it.
var facilities = []struct {
	need
	serves  string
	missing func() string
}{
	{disks, "power cuts, and disks that hang, are slow or full", machine.DisksMissing},
	{networks, "partitions", netns.Missing},
	{clocks, "steps of clocks", clockstep.Missing},
}

// kinds returns the scenario's strikes.
func (s *scenario) kinds() (all []strike) {
	for _, k := range strikes {
		if slices.Contains(s.strikes, k.name) {
			all = append(all, k)
		}
	}
	return all
}

// prepare determines what this machine has of what the scenario needs, and which of its strikes are possible with that.
// It records what is missing. It returns false if nothing of the scenario is possible.
func (s *scenario) prepare(r *Report) (has need, all []strike, possible bool) {
	needs := s.needs
	for _, k := range s.kinds() {
		needs |= k.needs
	}
	for _, f := range facilities {
		if needs&f.need == 0 {
			continue
		}
		if why := f.missing(); why != "" {
			r.Skip(f.serves, why)
			continue
		}
		has |= f.need
	}
	all = slices.DeleteFunc(s.kinds(), func(k strike) bool { return k.needs&^has != 0 })
	return has, all, s.run != nil || len(all) > 0
}

// pauses is how long it is between two events, on average: see driver.strike.
const pauses = 1400 * time.Millisecond

// Expected returns how long a run of that many events takes, roughly.
func (s *scenario) expected(events int) time.Duration {
	each := s.takes
	for _, k := range s.kinds() {
		each += (k.takes + pauses) / time.Duration(len(s.strikes))
	}
	return time.Minute + time.Duration(events)*each
}

// About describes each scenario in a line.
func About() string {
	var text strings.Builder
	for _, s := range scenarios {
		fmt.Fprintf(&text, "  %-10s %s; %d, about %v\n", s.name, s.about, s.events, s.expected(s.events).Round(time.Minute))
	}
	return text.String()
}
