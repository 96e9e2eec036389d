package placement

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/balance"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Balance is what a Supervisor needs to balance the load of nodes. With the zero value no load is known, and members follow their keys alone.
type Balance struct {
	Shed     bool                         // regions may be moved because of load
	Capacity float64                      // cores that this node gives to the world
	CPU      func() (time.Duration, bool) // CPU time that the process has used, and whether it is known
	Players  func() int                   // sessions of this node's gateway; any goroutine
	Stored   func() int64                 // bytes of the database; any goroutine
	Sent     func() uint64                // bytes sent to other nodes; any goroutine
}

// Use is how much an open region uses of this node.
type Use struct {
	ID     uint64
	Cell   grid.Cell
	Leader string        // "" if unknown
	Busy   time.Duration // how long it has been at work so far
}

// meter measures the load of this node and of its open regions, and remembers the moves that are not in the loads of nodes yet.
type meter struct {
	Balance
	self     string
	reported func(peer string) (*nodemsg.Load, time.Time) // what another node said of itself, and when

	mu struct {
		sync.Mutex
		at       time.Time // of the last sample
		since    time.Time // of the first
		cpu      time.Duration
		sent     uint64
		sentRate float64          // bytes/s
		cores    float64          // that the process uses
		regions  map[uint64]*used // open here
		all      float64          // sum of their shares
		recent   balance.Recent
		shifts   map[uint64]string // members that are being replaced because they are busy, by group
		load     *nodemsg.Load
	}
}

// used is what is known of an open region's use.
type used struct {
	busy  time.Duration // at the last sample
	share float64       // of the time
	seen  time.Time
}

func newMeter(b Balance, self string, reported func(string) (*nodemsg.Load, time.Time)) *meter {
	m := &meter{Balance: b, self: self, reported: reported}
	m.mu.regions = make(map[uint64]*used)
	m.mu.shifts = make(map[uint64]string)
	return m
}

// sample measures since the last call.
func (m *meter) sample(open []Use, led int, now time.Time) {
	if m.CPU == nil || m.Capacity == 0 {
		return
	}
	cpu, known := m.CPU()
	if !known {
		return
	}
	sent, players, stored := m.Sent(), m.Players(), m.Stored()
	m.mu.Lock()
	defer m.mu.Unlock()
	took := now.Sub(m.mu.at)
	first := m.mu.at.IsZero()
	if !first && took <= 0 {
		return
	}
	weight := 1 - math.Exp(-took.Seconds()/balance.Smoothing.Seconds())
	average := func(old *float64, now float64) { *old += weight * (now - *old) }
	if first {
		m.mu.since = now
	} else {
		average(&m.mu.cores, (cpu-m.mu.cpu).Seconds()/took.Seconds())
		average(&m.mu.sentRate, float64(sent-m.mu.sent)/took.Seconds())
	}
	m.mu.at, m.mu.cpu, m.mu.sent, m.mu.all = now, cpu, sent, 0
	for _, u := range open {
		r := m.mu.regions[u.ID]
		if r == nil {
			r = &used{busy: u.Busy}
			m.mu.regions[u.ID] = r
		} else if u.Busy >= r.busy { // else it was opened again
			average(&r.share, (u.Busy-r.busy).Seconds()/took.Seconds())
		}
		r.busy, r.seen = u.Busy, now
		m.mu.all += r.share
	}
	for id, r := range m.mu.regions {
		if r.seen != now {
			delete(m.mu.regions, id)
		}
	}
	m.mu.load = &nodemsg.Load{
		Capacity: max(1, uint32(m.Capacity*1000)), Busy: uint32(m.mu.cores * 1000), Led: uint32(led), Players: uint32(players),
		Stored: uint64(stored), Sent: uint64(m.mu.sentRate),
	}
}

// Load returns the load of this node, as it is sent to others; nil if it is not known.
func (m *meter) Load() *nodemsg.Load {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.load
}

// ready reports whether the load has been measured for long enough to act upon it.
func (m *meter) ready(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.load != nil && now.Sub(m.mu.since) > balance.Settled
}

// region returns the load of an open region in cores: its share of the time that all regions here are at work, of what the process
// uses. That is too much where sessions cost most. It errs on the side of not moving the region, and a region that is moved on the
// strength of it never makes its new leader busier than expected.
func (m *meter) region(id uint64) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.mu.regions[id]
	if r == nil || m.mu.all == 0 {
		return 0
	}
	return m.mu.cores * r.share / m.mu.all
}

// node returns the load of a node, with the moves that are not in it yet, and whether it is known.
func (m *meter) node(peer string, now time.Time) (n balance.Node, known bool) {
	load, at := m.Load(), now
	if peer != m.self {
		load, at = m.reported(peer)
	}
	if load == nil {
		return n, false
	}
	n = balance.Node{Capacity: float64(load.Capacity) / 1000, Busy: float64(load.Busy) / 1000}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.recent.Adjust(n, peer, at), true
}

// hasRoom reports whether a node can be given a region of this load.
func (m *meter) hasRoom(peer string, load float64) bool {
	n, known := m.node(peer, time.Now())
	return !m.Shed || !known || n.HasRoom(load)
}

// remember counts a region's load for its new leader from now on.
func (m *meter) remember(from, to string, load float64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.recent.Add(from, to, load, now)
}

// shift records which member of the group is being replaced; "": none.
func (m *meter) shift(id uint64, out string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.mu.shifts, id); out != "" {
		m.mu.shifts[id] = out
	}
}

// preferred puts the nodes first that should be the members of a group with this load: members, and others that have room, nearest
// first (docs/adr/0035).
func (m *meter) preferred(id uint64, nearest []string, copies int, load float64, isMember func(peer string) bool) []string {
	if id == world.CatalogID {
		return nearest
	}
	m.mu.Lock()
	out := m.mu.shifts[id]
	m.mu.Unlock()
	return membership.Preferred(nearest, copies, balance.Spare, func(peer string) bool {
		return peer != out && (isMember(peer) || m.hasRoom(peer, load))
	})
}

// beside returns how many of the open regions of the same size around a cell each node leads; "" is this node.
func (m *meter) beside(cell grid.Cell, leaders map[grid.Cell]string) map[string]int {
	count := make(map[string]int)
	for _, around := range cell.Adjacent() {
		if leader, open := leaders[around]; open && leader == m.self {
			count[""]++
		} else if open && leader != "" {
			count[leader]++
		}
	}
	return count
}

// leadersOf returns the leaders of the open regions by cell. A split region and the one half that has its cell's corner differ in their cells.
func leadersOf(open []Use) map[grid.Cell]string {
	leaders := make(map[grid.Cell]string, len(open))
	for _, u := range open {
		if u.ID != world.CatalogID {
			leaders[u.Cell] = cmp.Or(u.Leader, leaders[u.Cell])
		}
	}
	return leaders
}
