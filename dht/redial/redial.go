// Package redial decides which known peers a node dials again, and when. It remembers peers across restarts.
//
// It belongs to the goroutine of dht.DHT.Run, which passes in the time and the outcomes of dials, and commits the
// writes. It starts no goroutine and dials nothing itself.
package redial

import (
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/voxelpopuli/voxeld/dht/address"
	"github.com/voxelpopuli/voxeld/internal/kv"
)

// Schedule holds the bootstrap addresses and the known peers, and when each is due to be dialled.
//
// kad-dht dials its bootstrap peers only while its routing table is empty. An island of nodes that are connected to
// each other would never find the rest again. So every known peer that is not connected is retried forever.
type Schedule struct {
	every   time.Duration // between two rounds, and the shortest wait of one entry
	entries map[string]*Entry
	known   map[peer.ID]knownPeer
}

// Entry is a bootstrap address, or a known peer with all its addresses.
type Entry struct {
	Name      string           // the bootstrap address, or the peer's id
	Targets   []address.Target // of one peer
	Bootstrap bool
	ID        peer.ID // of a bootstrap address: empty until it was reached for the first time
	wait      time.Duration
	Due       time.Time // for the next attempt
	dialing   bool      // an attempt is under way
	self      bool      // the address is this node's own: never dialled again
	lost      bool      // the last attempt failed
}

// The longest wait between two attempts, in rounds, is a quarter of the number of lost entries, within these bounds. So
// dead peers cost few dials, whatever their number, and among many that were cut off a dial is nearly always in
// progress. As soon as one of them answers, all others are dialled at once.
const (
	shortestWait = 4 // two islands of a few nodes find each other that fast
	longestWait  = 64
	// A bootstrap address is tried more often: it is where nodes are configured to meet.
	maxBootstrapWait = 16
)

// Load returns the schedule of the bootstrap addresses and of the known peers in the storage. every is the time between
// two rounds.
func Load(every time.Duration, bootstrap []address.Target, storage Storage) (*Schedule, error) {
	known, err := loadKnown(storage)
	if err != nil {
		return nil, err
	}
	return newSchedule(every, bootstrap, known), nil
}

func newSchedule(every time.Duration, bootstrap []address.Target, known map[peer.ID]knownPeer) *Schedule {
	r := &Schedule{every: every, entries: make(map[string]*Entry), known: known}
	for _, t := range bootstrap {
		r.entries[t.Text] = &Entry{Name: t.Text, Targets: []address.Target{t}, Bootstrap: true, ID: t.ID, wait: every}
	}
	r.refresh()
	return r
}

// Knows reports whether this node knows others, besides bootstrap addresses.
func (r *Schedule) Knows() bool { return len(r.known) > 0 }

// Update updates the known peers from the addresses of the peers in the routing table, and drops the oldest peers when
// there are too many, and those that were not seen for a month if the clock has settled. It returns the writes that
// this requires.
func (r *Schedule) Update(seen map[peer.ID][]string, now time.Time, settled bool) []kv.Write {
	writes := updateKnown(r.known, seen, now, settled)
	if len(writes) > 0 {
		r.refresh()
	}
	return writes
}

// Forget forgets a known peer. It returns the writes that this requires.
func (r *Schedule) Forget(id peer.ID) []kv.Write {
	if _, there := r.known[id]; !there {
		return nil
	}
	delete(r.known, id)
	r.refresh()
	return []kv.Write{{Table: table, Key: []byte(id.String())}}
}

// refresh updates the entries from the known peers.
func (r *Schedule) refresh() {
	for name, e := range r.entries {
		if _, still := r.known[e.ID]; !e.Bootstrap && !still {
			delete(r.entries, name)
		}
	}
	for id, k := range r.known {
		name := id.String()
		e := r.entries[name]
		if e == nil {
			e = &Entry{Name: name, ID: id, wait: r.every}
			r.entries[name] = e
		}
		e.Targets = e.Targets[:0]
		for _, text := range k.Addrs {
			if addr, err := ma.NewMultiaddr(text); err == nil {
				e.Targets = append(e.Targets, address.Target{Text: text, Addr: addr, ID: id})
			}
		}
	}
}

// Next returns the entries to dial now, by name.
func (r *Schedule) Next(now time.Time, connected func(peer.ID) bool) []*Entry {
	for _, e := range r.entries {
		if e.lost && e.ID != "" && connected(e.ID) { // the peer has dialled this node
			r.markBack(e, now)
		}
	}
	var due []*Entry
	for _, e := range r.entries {
		if e.self || e.dialing || len(e.Targets) == 0 || e.Due.After(now) || e.ID != "" && connected(e.ID) {
			continue
		}
		due = append(due, e)
	}
	slices.SortFunc(due, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
	return due
}

// MarkDialing records that an entry is being dialled. One of MarkReached, MarkFailed and MarkSelf must follow.
func (r *Schedule) MarkDialing(e *Entry) { e.dialing = true }

// MarkSelf records that an entry leads back to this node.
func (r *Schedule) MarkSelf(e *Entry) { e.dialing, e.self = false, true }

// MarkReached records that an entry answered. The next attempt follows when its connection is lost, but not before a
// while: this node may have closed it, having too many.
func (r *Schedule) MarkReached(e *Entry, id peer.ID, now time.Time) {
	e.dialing = false
	e.ID = id
	if e.lost {
		r.markBack(e, now)
	}
	e.wait = r.every
	e.Due = now.Add(4 * r.every)
}

// markBack records that a lost entry is reachable again. The cause may have affected other peers too, so all lost ones
// are tried now.
func (r *Schedule) markBack(e *Entry, now time.Time) {
	e.lost = false
	e.wait = r.every
	for _, other := range r.entries {
		if other.lost {
			other.wait, other.Due = r.every, now
		}
	}
}

// MarkFailed records that an entry did not answer; its wait doubles.
func (r *Schedule) MarkFailed(e *Entry, now time.Time) {
	e.dialing, e.lost = false, true
	slowest := r.maxWait()
	if e.Bootstrap {
		slowest = min(slowest, maxBootstrapWait*r.every)
		if e.Targets[0].ID == "" {
			e.ID = "" // another node may use the address now
		}
	}
	e.wait = min(e.wait, slowest)
	e.Due = now.Add(e.wait)
	e.wait = min(2*e.wait, slowest)
}

// maxWait returns the longest wait for the present number of lost entries.
func (r *Schedule) maxWait() time.Duration {
	lost := 0
	for _, e := range r.entries {
		if e.lost {
			lost++
		}
	}
	return time.Duration(min(max(lost/4, shortestWait), longestWait)) * r.every
}
