package dht

import (
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// redial decides which peers to dial again, and when. It is a step machine: Run passes in the time and the outcomes.
//
// kad-dht dials its bootstrap peers only while its routing table is empty. An island of nodes that are connected to each
// other would never find the rest again. So every known peer that is not connected is retried forever.
type redial struct {
	every   time.Duration // between two rounds, and the shortest wait of one entry
	entries map[string]*redialEntry
	known   map[peer.ID]knownPeer
}

// redialEntry is a bootstrap address, or a known peer with all its addresses.
type redialEntry struct {
	name      string
	targets   []target // of one peer
	bootstrap bool
	id        peer.ID // of a bootstrap address: empty until it was reached for the first time
	wait      time.Duration
	due       time.Time
	dialing   bool // an attempt is under way
	self      bool // the address is this node's own: never dialled again
	lost      bool // the last attempt failed
}

// The longest wait between two attempts, in rounds, is a quarter of the number of lost entries, within these bounds. So
// dead peers cost few dials, whatever their number, and among many that were cut off a dial is nearly always in progress.
// As soon as one of them answers, all others are dialled at once.
const (
	redialPatient = 4 // two islands of a few nodes find each other that fast
	redialSlowest = 64
	// A bootstrap address is tried more often: it is where nodes are configured to meet.
	maxBootstrapWait = 16
)

func newRedial(every time.Duration, bootstrap []target, known map[peer.ID]knownPeer) redial {
	r := redial{every: every, entries: make(map[string]*redialEntry), known: known}
	for _, t := range bootstrap {
		r.entries[t.text] = &redialEntry{name: t.text, targets: []target{t}, bootstrap: true, id: t.id, wait: every}
	}
	r.refresh()
	return r
}

// refresh updates the entries from the known peers.
func (r *redial) refresh() {
	for name, e := range r.entries {
		if _, still := r.known[e.id]; !e.bootstrap && !still {
			delete(r.entries, name)
		}
	}
	for id, k := range r.known {
		name := id.String()
		e := r.entries[name]
		if e == nil {
			e = &redialEntry{name: name, id: id, wait: r.every}
			r.entries[name] = e
		}
		e.targets = e.targets[:0]
		for _, text := range k.Addrs {
			if addr, err := ma.NewMultiaddr(text); err == nil {
				e.targets = append(e.targets, target{text: text, addr: addr, id: id})
			}
		}
	}
}

// next returns the entries to dial now, by name.
func (r *redial) next(now time.Time, connected func(peer.ID) bool) []*redialEntry {
	for _, e := range r.entries {
		if e.lost && e.id != "" && connected(e.id) { // the peer has dialled this node
			r.markBack(e, now)
		}
	}
	var due []*redialEntry
	for _, e := range r.entries {
		if e.self || e.dialing || len(e.targets) == 0 || e.due.After(now) || e.id != "" && connected(e.id) {
			continue
		}
		due = append(due, e)
	}
	slices.SortFunc(due, func(a, b *redialEntry) int { return strings.Compare(a.name, b.name) })
	return due
}

// markDialing records that an entry is being dialled. One of markReached, markFailed and markSelf must follow.
func (r *redial) markDialing(e *redialEntry) { e.dialing = true }

// markSelf records that an entry leads back to this node.
func (r *redial) markSelf(e *redialEntry) { e.dialing, e.self = false, true }

// markReached records that an entry answered. The next attempt follows when its connection is lost, but not before a while:
// this node may have closed it, having too many.
func (r *redial) markReached(e *redialEntry, id peer.ID, now time.Time) {
	e.dialing = false
	e.id = id
	if e.lost {
		r.markBack(e, now)
	}
	e.wait = r.every
	e.due = now.Add(4 * r.every)
}

// markBack records that a lost entry is reachable again. The cause may have affected other peers too, so all lost ones are
// tried now.
func (r *redial) markBack(e *redialEntry, now time.Time) {
	e.lost = false
	e.wait = r.every
	for _, other := range r.entries {
		if other.lost {
			other.wait, other.due = r.every, now
		}
	}
}

// markFailed records that an entry did not answer; its wait doubles.
func (r *redial) markFailed(e *redialEntry, now time.Time) {
	e.dialing, e.lost = false, true
	slowest := r.longestWait()
	if e.bootstrap {
		slowest = min(slowest, maxBootstrapWait*r.every)
		if e.targets[0].id == "" {
			e.id = "" // another node may use the address now
		}
	}
	e.wait = min(e.wait, slowest)
	e.due = now.Add(e.wait)
	e.wait = min(2*e.wait, slowest)
}

// longestWait returns the longest wait for the given number of lost entries.
func (r *redial) longestWait() time.Duration {
	lost := 0
	for _, e := range r.entries {
		if e.lost {
			lost++
		}
	}
	return time.Duration(min(max(lost/4, redialPatient), redialSlowest)) * r.every
}
