package replica_test

import (
	"cmp"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/world"
)

// machine is a daemon: a disk, and while it is up a replica.Host that is driven step by step, and owners above it. It
// does one thing at a time: while it waits for its disk, or is paused, input waits in backlog and due.
type machine struct {
	sim    *sim
	number int
	peer   string
	disk   *disk
	gone   bool // for good, with its disk

	host        *replica.Host // nil while the process is down
	life        int           // counts the processes
	owners      []*owner      // by group
	opening     map[uint64]bool
	tombstones  map[uint64]uint64        // by group: the replica id that was removed last; outlives the process
	noWakeUntil map[uint64]time.Duration // until when raft messages do not wake the group
	trusted     map[uint64]time.Duration
	seen        map[string]time.Duration // when a peer answered last
	machinePast

	clockRate  float64       // the duration of a second of this node's clock
	fsync      time.Duration // the longest time that a commit takes
	full       bool          // the disk refuses commits
	torn       bool          // and stores them all the same
	crashPoint crashPoint
	flaky      float64 // the chance that the process ends after a commit
	dying      bool    // it has crashed, but the functions on the stack have not returned yet
	paused     bool

	busy    time.Duration // until then it waits for its disk
	turning bool
	backlog []func()
	due     [4]bool // by event
}

type crashPoint int

const (
	crashNone crashPoint = iota
	crashBefore
	crashAfter
)

const tickEvery = 100 * time.Millisecond

func (s *sim) addNode() *machine {
	n := &machine{sim: s, number: len(s.nodes), peer: peerName(len(s.nodes)), clockRate: 1, fsync: usualFsync, tombstones: make(map[uint64]uint64)}
	n.disk = &disk{node: n, tables: make(kv.Tables)}
	s.nodes = append(s.nodes, n)
	s.peers[n.peer] = n
	return n
}

// boot starts the process.
func (n *machine) boot() {
	s := n.sim
	if n.host != nil || n.gone {
		return
	}
	host, err := replica.NewHost(replica.Options{Storage: n.disk, Self: n.peer, Send: n.carry, SendSnapshot: n.stream})
	if err != nil {
		s.fail("boot %s: %v", n.peer, err)
		return
	}
	n.life++
	n.host = host
	if !n.guard(n.beginIncarnation) || n.host == nil {
		return
	}
	n.opening, n.noWakeUntil = make(map[uint64]bool), make(map[uint64]time.Duration)
	n.trusted, n.seen = make(map[uint64]time.Duration), make(map[string]time.Duration)
	for _, other := range s.nodes {
		n.seen[other.peer] = s.now
	}
	host.KeepEntries(uint64(1 + s.random.IntN(8)))
	host.SetAlarms(&simAlarm{node: n, life: n.life, what: replica.Flushed}, &simAlarm{node: n, life: n.life, what: replica.Retried})
	s.note(note{who: n.peer, what: "boot"})
	s.count("boots")
	n.tick(s.between(0, tickEvery))
	n.every(2*time.Second, n.supervise)
	groups, err := host.Groups()
	if err != nil {
		s.fail("boot %s: %v", n.peer, err)
	}
	n.enqueue(func() {
		for _, group := range groups {
			if group == world.CatalogID || s.chance(0.6) { // the others wake when they are needed
				n.open(replica.Founding{Group: group}, nil)
			}
		}
	})
}

// crash ends the process: the disk survives, everything else is lost.
func (n *machine) crash(why string) {
	if n.host == nil {
		return
	}
	n.sim.note(note{who: n.peer, what: "crash", text: why})
	n.sim.count("crashes: " + why)
	n.down()
	n.disk.powerCut()
}

func (n *machine) down() {
	n.life++
	n.host, n.owners, n.backlog, n.due = nil, nil, nil, [4]bool{}
	n.busy, n.crashPoint, n.paused, n.turning, n.dying = 0, crashNone, false, false, false
}

// stop ends the process properly.
func (n *machine) stop() {
	if n.host == nil || n.busy > n.sim.now || n.paused {
		return
	}
	n.sim.note(note{who: n.peer, what: "stop"})
	n.sim.count("stops")
	if !n.guard(func() { _ = n.host.ShutDown() }) { // a full disk: what is not stored is delivered again
		return
	}
	n.down()
}

// clock returns when the node's current work is done.
func (n *machine) clock() time.Duration { return max(n.sim.now, n.busy) }

// waitForDisk makes the node wait for its disk.
func (n *machine) waitForDisk(d time.Duration) {
	n.busy = n.clock() + d
	n.resumeAt(n.busy)
}

// resumeAt makes the node process its backlog at a time.
func (n *machine) resumeAt(at time.Duration) {
	life := n.life
	n.sim.at(at, func() {
		if n.life == life {
			n.resume()
		}
	})
}

func (n *machine) tick(in time.Duration) {
	life := n.life
	n.sim.at(n.sim.now+in, func() {
		if n.life == life {
			n.wakeLoop(replica.Ticked)
			n.tick(time.Duration(float64(tickEvery) * n.clockRate))
		}
	})
}

// every calls f repeatedly, until the process ends.
func (n *machine) every(period time.Duration, do func()) {
	life := n.life
	wait := time.Duration(float64(period)*n.clockRate) + n.sim.between(0, period/20)
	n.sim.at(n.sim.now+wait, func() {
		if n.life == life {
			n.enqueue(do)
			n.every(period, do)
		}
	})
}

// later calls f after a while, unless the process ends before.
func (n *machine) later(in time.Duration, do func()) {
	life := n.life
	n.sim.at(n.clock()+in, func() {
		if n.life == life {
			n.enqueue(do)
		}
	})
}

// simAlarm is a timer of a host.
type simAlarm struct {
	node    *machine
	life    int
	what    replica.Event
	setting int
}

func (a *simAlarm) Stop() bool { a.setting++; return true }

func (a *simAlarm) Reset(d time.Duration) bool {
	a.setting++
	setting, n := a.setting, a.node
	n.sim.at(n.clock()+time.Duration(float64(d)*n.clockRate), func() {
		if n.life == a.life && a.setting == setting {
			n.wakeLoop(a.what)
		}
	})
	return true
}

func (n *machine) occupied() bool { return n.paused || n.turning || n.busy > n.sim.now }

// enqueue runs f on the node, as soon as it has time. f is dropped if the process is down.
func (n *machine) enqueue(do func()) {
	switch {
	case n.host == nil:
	case n.occupied():
		n.backlog = append(n.backlog, do)
	case n.guard(do) && n.host != nil:
		n.turn(replica.Woken)
	}
}

// wakeLoop makes the host's loop run once. Like a ticker's, an event that comes twice before the node has time counts
// once.
func (n *machine) wakeLoop(what replica.Event) {
	switch {
	case n.host == nil:
	case n.occupied():
		n.due[what] = true
	default:
		n.turn(what)
	}
}

// resume continues with the work that had to wait.
func (n *machine) resume() {
	for n.host != nil && !n.occupied() {
		if len(n.backlog) > 0 {
			backlog := n.backlog
			n.backlog = nil
			for i, do := range backlog {
				if n.host == nil {
					return
				}
				if n.occupied() {
					n.backlog = append(slices.Clone(backlog[i:]), n.backlog...)
					break
				}
				n.guard(do)
			}
			if n.host == nil {
				return
			}
			n.due[replica.Woken] = true
		}
		what := slices.Index(n.due[:], true)
		if what < 0 {
			return
		}
		n.due[what] = false
		n.turn(replica.Event(what))
	}
}

// turn lets host and owners work until they wait for the disk or for input.
func (n *machine) turn(what replica.Event) {
	n.turning = true
	life := n.life
	for round := 0; n.sim.failure == ""; round++ {
		more := false
		if !n.guard(func() { more = n.host.Step(what) }) || n.life != life {
			return
		}
		if n.dying { // the host mistook the crash for a fault of raft
			n.crashIn()
			return
		}
		what = replica.Woken
		if !n.guard(n.serve) || n.life != life {
			return
		}
		if more = n.host.Signalled() || more; !more {
			break
		}
		if n.busy > n.sim.now {
			n.due[replica.Woken] = true
			break
		}
		if round > 1000 {
			n.sim.fail("%s does not come to rest", n.peer)
		}
	}
	n.turning = false
	n.checkLeaders()
	if len(n.backlog) > 0 && n.busy <= n.sim.now {
		n.resumeAt(n.sim.now)
	}
}

// guard runs f, which may end the process, and returns false if it did.
func (n *machine) guard(do func()) (lives bool) {
	lives = true
	defer func() {
		switch broken := recover(); broken {
		case nil:
		case errCrash:
			n.crashIn()
			lives = false
		default:
			n.sim.fail("%s panics: %v\n%s", n.peer, broken, debug.Stack())
			lives = false
		}
	}()
	do()
	return lives
}

func (n *machine) crashIn() {
	why := "before a commit was stored"
	if n.crashPoint == crashAfter {
		why = "after a commit was stored"
	}
	n.crash(why)
	if n.flaky > 0 {
		n.sim.at(n.sim.now+n.sim.between(0, 20*time.Millisecond), n.boot)
		return
	}
	n.sim.at(n.sim.now+n.sim.away(), n.boot)
}

// away returns how long a node is down: often briefly, so that others remember its messages.
func (s *sim) away() time.Duration {
	if s.chance(0.5) {
		return s.between(5*time.Millisecond, 200*time.Millisecond)
	}
	return s.between(200*time.Millisecond, 12*time.Second)
}

// serve lets the owners process their mailboxes.
func (n *machine) serve() {
	for _, o := range slices.Clone(n.owners) {
		o.takeDeliveries()
	}
}

func (n *machine) owner(group uint64) *owner {
	for _, o := range n.owners {
		if o.id == group {
			return o
		}
	}
	return nil
}

func (n *machine) has(group uint64) bool {
	has, err := n.host.Has(group)
	if err != nil {
		n.sim.fail("%s: %v", n.peer, err)
	}
	return has
}

// open opens a group, founds it if there are members, and then calls then with the owner.
func (n *machine) open(f replica.Founding, then func(*owner)) {
	if n.opening[f.Group] || n.owner(f.Group) != nil || n.outdated(f.Group) {
		return
	}
	n.opening[f.Group] = true
	f.Tables = tablesOf(f.Group)
	life := n.life
	n.host.PostOpen(f, func(g *replica.Group, err error) {
		if n.life != life {
			return
		}
		n.opened(f.Group, g, err, then)
	})
}

func (n *machine) opened(group uint64, g *replica.Group, err error, then func(*owner)) {
	delete(n.opening, group)
	switch {
	case err == nil:
		if n.outdated(group) {
			n.host.PostClose(g)
			return
		}
		if id := n.host.ReplicaID(group); id <= n.tombstones[group] && !n.wentBack {
			n.sim.fail("%s takes part in group %d as replica %d, which was removed from it", n.peer, group, id)
		}
		o := newOwner(n, group, g)
		n.owners = append(n.owners, o)
		slices.SortFunc(n.owners, func(a, b *owner) int { return cmp.Compare(a.id, b.id) })
		if then != nil {
			then(o)
		}
	case errors.Is(err, replica.ErrNotMember): // it was removed, and crashed before it reported that
		n.forget(group, nil)
	case errors.Is(err, replica.ErrTombstone), errors.Is(err, replica.ErrStorage), errors.Is(err, replica.ErrOpen):
	default:
		n.sim.fail("%s opens group %d: %v", n.peer, group, err)
	}
}

// join joins a group under a replica id. An earlier replica is removed first.
func (n *machine) join(group, id uint64, members []replica.Member) {
	if o := n.owner(group); o != nil {
		if n.host.ReplicaID(group) < id {
			n.forget(group, func() { n.join(group, id, members) })
		}
		return
	}
	if n.opening[group] {
		return
	}
	n.opening[group] = true
	life := n.life
	n.host.PostJoin(replica.JoinInfo{Group: group, ID: id, Members: members, Tables: tablesOf(group)}, func(g *replica.Group, err error) {
		switch {
		case n.life != life:
		case errors.Is(err, replica.ErrReplaced):
			delete(n.opening, group)
			n.sim.count("replicas replaced")
			n.forget(group, nil) // the leader invites again
		default:
			if err == nil {
				n.sim.count("joins")
			}
			n.opened(group, g, err, nil)
		}
	})
}

// close closes a group here.
func (n *machine) close(o *owner) {
	o.closed = true
	n.owners = slices.DeleteFunc(n.owners, func(other *owner) bool { return other == o })
	n.host.PostClose(o.group)
}

// forget removes a replica, and leaves its tombstone.
func (n *machine) forget(group uint64, then func()) {
	if o := n.owner(group); o != nil {
		n.close(o)
	}
	life := n.life
	n.opening[group] = true
	id := n.host.ReplicaID(group)
	n.later(200*time.Millisecond, func() { // it is closed with the next commit
		if !n.has(group) {
			delete(n.opening, group)
			return
		}
		n.host.PostRemove(group, n.deletion(group), func(err error) {
			if n.life != life {
				return
			}
			delete(n.opening, group)
			if err == nil {
				n.sim.count("removed")
				n.tombstones[group] = max(n.tombstones[group], id)
			}
			if then != nil && err == nil {
				n.later(0, then)
			}
		})
	})
}

// deletion deletes the owner's rows of a group.
func (n *machine) deletion(group uint64) (rows []kv.Write) {
	for _, t := range tablesOf(group) {
		for _, key := range slices.Sorted(maps.Keys(n.disk.tables[t.Table])) {
			if len(key) >= len(t.Prefix) && key[:len(t.Prefix)] == string(t.Prefix) {
				rows = append(rows, kv.Write{Table: t.Table, Key: []byte(key)})
			}
		}
	}
	return rows
}

// peerName returns a node's name in letters of base58.
func peerName(i int) string {
	const letters = "abcdefghijkmnopqrstuvwxyz"
	return strings.Repeat("n", 1+i/len(letters)) + letters[i%len(letters):][:1]
}
