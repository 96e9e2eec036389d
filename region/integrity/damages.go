package integrity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Damages is the damage that is known and not repaired. Any goroutine may use it.
type Damages struct {
	gauge prometheus.Gauge

	mu struct {
		sync.Mutex
		found   map[uint64][]Damage // left by the newest scrub of a region, by id; no empty lists
		counted int                 // in the metric
	}
}

// NewDamages returns an empty list.
func NewDamages(m *Metrics) *Damages {
	d := &Damages{gauge: m.damagedNow}
	d.mu.found = make(map[uint64][]Damage)
	return d
}

// All lists the damage that this node knows of and that is not repaired, in regions that it led when they were scrubbed
// last.
func (d *Damages) All() []Damage {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []Damage
	for _, list := range d.mu.found {
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b Damage) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.What, b.What))
	})
	return all
}

// PartDiffers is the reason of damage in a part of a copy, which goes on to be used.
const PartDiffers = "different"

// note records the damage that the newest scrub of a region has left.
func (d *Damages) note(info nodemsg.Region, v comparison) {
	now := time.Now()
	var list []Damage
	add := func(peer, what, do string) {
		list = append(list, Damage{
			Region: info.ID, Cell: info.Cell, Peer: peer, What: what, Since: now, Reason: PartDiffers, Do: do,
		})
	}
	for _, m := range v.repairs {
		for _, peer := range m.Damaged {
			add(peer, m.Part.String()+" is damaged", "nothing while most other members run: the part is repaired. Look for disk and memory errors")
		}
	}
	for _, o := range v.open {
		add("", fmt.Sprintf("%v differs, and no majority says which is right: %s", o.part, strings.Join(o.peers, ", ")),
			"see Damaged data in docs/runbook.md; a disk that does this should go")
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
	n := 0
	for _, list := range d.mu.found {
		n += len(list)
	}
	d.gauge.Add(float64(n - d.mu.counted))
	d.mu.counted = n
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
