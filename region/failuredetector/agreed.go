package failuredetector

import (
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file decides which versions of the messages may be used that older nodes would not understand.

const (
	// silentFor is how long a node that has not described itself counts as an old one.
	silentFor = time.Minute
	// settleFor is how long all nodes must have understood a version until that is remembered: a node that has just started knows few others.
	settleFor = 15 * time.Second
)

// Agreed returns the version that all nodes of the world understood at some time, as far as this node and those that it knows can tell. It never
// becomes less: a node that comes later and is older, or says that it is, takes nothing away from others.
//
// What other nodes say about it is believed: one that lies could as well use that version itself.
func (d *Detector) Agreed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.agreed
}

// Restore sets what Agreed returned when Remember was called last.
func (d *Detector) Restore(agreed int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.agreed = agreed
}

// Agrees reports whether a version may be used: all nodes understood it at some time, or all that are known do now.
func (d *Detector) Agrees(version int) bool {
	connected := d.connected()
	d.mu.Lock()
	defer d.mu.Unlock()
	return version <= d.mu.agreed || version <= d.lowest(connected)
}

// agree raises what Agreed returns, if it is time.
func (d *Detector) agree() {
	connected := d.connected()
	d.mu.Lock()
	before := d.mu.agreed
	for _, p := range d.mu.nodes {
		d.mu.agreed = max(d.mu.agreed, min(p.about.Agreed, nodemsg.Version))
	}
	switch {
	case d.lowest(connected) < nodemsg.Version:
		d.mu.settled = time.Time{}
	case d.mu.settled.IsZero():
		d.mu.settled = time.Now()
	case time.Since(d.mu.settled) >= settleFor:
		d.mu.agreed = nodemsg.Version
	}
	agreed := d.mu.agreed
	d.mu.Unlock()
	if agreed > before && d.Remember != nil {
		d.Remember(agreed)
	}
}

// lowest returns the least version that this node and those that are alive, connected or not yet known well enough understand. The lock is held.
func (d *Detector) lowest(connected []string) int {
	lowest := nodemsg.Version
	for _, peer := range connected {
		if d.mu.nodes[peer] == nil && !d.excluded(peer) {
			return 0
		}
	}
	for peer, p := range d.mu.nodes {
		alive := p.lives && time.Since(p.lastHeard) <= p.freshFor() || slices.Contains(connected, peer)
		switch {
		case d.excluded(peer):
		case p.described.IsZero() && time.Since(p.lastHeard) < silentFor:
			return 0
		case !p.described.IsZero() && alive:
			lowest = min(lowest, p.about.Version)
		}
	}
	return lowest
}
