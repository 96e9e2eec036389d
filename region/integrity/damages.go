package integrity

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Damage is a copy that is known to be damaged and is not repaired.
type Damage struct {
	Region uint64
	Cell   grid.Cell
	Peer   string // the node that has it; "" if it is unknown which copy is wrong
	What   string // for people
	Since  time.Time
	// Outdated means that it is not damaged, but of an earlier state to which this node's data was put back.
	Outdated bool
}

// corruptCopy is a copy on this node that must not be used any more.
type corruptCopy struct {
	info    nodemsg.Region
	why     error
	since   time.Time
	claimed bool // somebody discards the copy, or uses it after all
}

// reason returns why the copy is not used, as a label of the metrics.
func (c corruptCopy) reason() string {
	if errors.Is(c.why, errPutBack) {
		return rolledBack
	}
	return damaged
}

var (
	errPutBack = errors.New("this node's data was put back to an earlier state")
	// errOutdated is why a copy is not used that has forgotten what it has promised.
	errOutdated = fmt.Errorf("%w, and has forgotten what it has promised to the other members", errPutBack)
	// errLost is why no copy is used under a replica id that is not in the earlier state: it does not exist.
	errLost = fmt.Errorf("%w, from before it became a member", errPutBack)
)

// errCorruptCopy is why such a region is not opened.
var errCorruptCopy = errors.New("this node's copy of the region is not used; the other members replace it")

// Damages is the damage that is known and not repaired. Any goroutine may use it.
type Damages struct {
	self  string
	gauge prometheus.Gauge

	mu struct {
		sync.Mutex
		found   map[uint64][]Damage    // left by the newest scrub of a region, by id; no empty lists
		corrupt map[uint64]corruptCopy // copies on this node that must not be used, by region id
	}
}

// NewDamages returns an empty list for the node self.
func NewDamages(self string, m *Metrics) *Damages {
	d := &Damages{self: self, gauge: m.damagedNow}
	d.mu.found = make(map[uint64][]Damage)
	d.mu.corrupt = make(map[uint64]corruptCopy)
	return d
}

// All lists the damage that this node knows of and that is not repaired: in regions that it led when they were scrubbed last,
// and in its own unusable copies.
func (d *Damages) All() []Damage {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []Damage
	for _, list := range d.mu.found {
		all = append(all, list...)
	}
	for _, c := range d.mu.corrupt {
		all = append(all, Damage{Region: c.info.ID, Cell: c.info.Cell, Peer: d.self, What: wire.ErrorText(c.why), Since: c.since, Outdated: errors.Is(c.why, errPutBack)})
	}
	slices.SortFunc(all, func(a, b Damage) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.What, b.What))
	})
	return all
}

// note records the damage that the newest scrub of a region has left.
func (d *Damages) note(info nodemsg.Region, v decision) {
	now := time.Now()
	var list []Damage
	add := func(peer, what string) {
		list = append(list, Damage{Region: info.ID, Cell: info.Cell, Peer: peer, What: what, Since: now})
	}
	for _, m := range v.repairs {
		for _, peer := range m.Damaged {
			add(peer, m.Part.String()+" is damaged")
		}
	}
	for _, o := range v.open {
		add("", fmt.Sprintf("%v differs, and no majority says which is right: %s", o.part, strings.Join(o.peers, ", ")))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, one := range list {
		for _, before := range d.mu.found[info.ID] {
			if before.Peer == one.Peer && before.What == one.What {
				list[i].Since = before.Since
			}
		}
	}
	if d.mu.found[info.ID] = list; len(list) == 0 {
		delete(d.mu.found, info.ID)
	}
	d.count()
}

// count updates the metric. The caller holds the lock.
func (d *Damages) count() {
	n := len(d.mu.corrupt)
	for _, list := range d.mu.found {
		n += len(list)
	}
	d.gauge.Set(float64(n))
}

// LedElsewhere forgets what scrubs found in a region: the new leader tracks it now.
func (d *Damages) LedElsewhere(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.found[id] != nil {
		delete(d.mu.found, id)
		d.count()
	}
}

// CorruptErr returns why a region must not be opened here, or nil.
func (d *Damages) CorruptErr(id uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, found := d.mu.corrupt[id]; found {
		return fmt.Errorf("%w: %w", errCorruptCopy, c.why)
	}
	return nil
}

// Old reports whether the copy of a region here is sound, but of an earlier state to which this node's data was put back.
func (d *Damages) Old(id uint64) bool { return d.is(id, errOutdated) }

// Lost reports whether this node had a replica of a region that is not in the earlier state to which its data was put back.
func (d *Damages) Lost(id uint64) bool { return d.is(id, errLost) }

func (d *Damages) is(id uint64, why error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Is(d.mu.corrupt[id].why, why)
}

// claim lets one caller decide about a copy that is not used: to discard it, or to use it after all. It reports false if the copy is
// claimed already, or is not there any more.
func (d *Damages) claim(id uint64) (release func(), claimed bool) {
	set := func(to bool) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		c, found := d.mu.corrupt[id]
		if !found || c.claimed && to {
			return false
		}
		c.claimed = to
		d.mu.corrupt[id] = c
		return true
	}
	return func() { set(false) }, set(true)
}
