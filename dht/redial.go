package dht

import (
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// redial decides whom to dial again and when. It is a step machine: Run feeds it the time and the outcomes.
//
// kad-dht dials its bootstrap peers only while its routing table is empty. An island of nodes that know each other
// would so never find the others again; therefore everybody who is known and not connected is tried for ever.
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
	id        peer.ID // empty until a bootstrap address was reached for the first time
	wait      time.Duration
	due       time.Time
	dialing   bool // an attempt is under way
	self      bool // leads back here: never dialled again
	lost      bool // the last attempt failed
}

// The longest wait between two attempts, in rounds, is a quarter of the entries that are lost, and within these
// bounds: so dead peers cost few dials however many they are, and among many that were cut off somebody is always
// just being dialled. Any one of them that answers has all others dialled at once.
const (
	redialPatient = 4 // two islands of a few nodes find each other that fast
	redialSlowest = 64
	// A bootstrap address is tried more often than that: it is what others are told to meet at.
	redialSlowestBootstrap = 16
)

func newRedial(every time.Duration, bootstrap []target, known map[peer.ID]knownPeer) redial {
	r := redial{every: every, entries: make(map[string]*redialEntry), known: known}
	for _, t := range bootstrap {
		r.entries[t.text] = &redialEntry{name: t.text, targets: []target{t}, bootstrap: true, id: t.id, wait: every}
	}
	r.refresh()
	return r
}

// refresh makes the entries follow the known peers.
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
		if e.lost && e.id != "" && connected(e.id) { // it has dialled us
			r.back(e, now)
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

// began notes that an entry is being dialled; one of reached, failed and ourselves follows.
func (r *redial) began(e *redialEntry) { e.dialing = true }

// ourselves notes that an entry leads back to this node.
func (r *redial) ourselves(e *redialEntry) { e.dialing, e.self = false, true }

// reached notes that an entry answered. The next attempt is made when its connection is lost, but not before a
// while: it may be we who close it, having too many.
func (r *redial) reached(e *redialEntry, id peer.ID, now time.Time) {
	e.dialing = false
	e.id = id
	if e.lost {
		r.back(e, now)
	}
	e.wait = r.every
	e.due = now.Add(4 * r.every)
}

// back notes that a lost entry is there again. What kept it away may have kept others away: they are all tried now.
func (r *redial) back(e *redialEntry, now time.Time) {
	e.lost = false
	e.wait = r.every
	for _, other := range r.entries {
		if other.lost {
			other.wait, other.due = r.every, now
		}
	}
}

// failed notes that an entry did not answer; it waits twice as long as before.
func (r *redial) failed(e *redialEntry, now time.Time) {
	e.dialing, e.lost = false, true
	slowest := r.slowest()
	if e.bootstrap {
		slowest = min(slowest, redialSlowestBootstrap*r.every)
		if e.targets[0].id == "" {
			e.id = "" // another node may live at the address now
		}
	}
	e.wait = min(e.wait, slowest)
	e.due = now.Add(e.wait)
	e.wait = min(2*e.wait, slowest)
}

// slowest is the longest wait, with so many entries that are lost.
func (r *redial) slowest() time.Duration {
	lost := 0
	for _, e := range r.entries {
		if e.lost {
			lost++
		}
	}
	return time.Duration(min(max(lost/4, redialPatient), redialSlowest)) * r.every
}
