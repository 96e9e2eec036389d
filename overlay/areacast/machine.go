// Package areacast is the machine of the paper "Area-Based Gossip Multicast" (2008). Comments cite its sections.
//
// A Machine belongs to one goroutine (see package overlay). gameserver and research/sim may import the package.
package areacast

import (
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Machine is the areacast machine of one player. Once per round it sends one gossip, its own position
// and updates of other players, to players from three views: those in interaction range (IR), those in vision
// range (VR), and others (Inf).
//
//	§2.2 "whenever a new gossip message is received"       receive   receive.go
//	§2.2 the update id list, delivery of what is newest    contact   contacts.go
//	§2.2 views, "at the end of a round"                    refresh   views.go
//	§2.2 the position update buffer                        buffer    buffer.go
//	§2.2 "sent to random nodes from the three views"       choose    sending.go
//	not in the paper (Improvements)                                  improved.go
//
// Deviations from the paper: an update's sequence number is its origin's round; fanout that a view cannot fill spills
// into the next wider one (the paper is silent, its figures need it); the update id list is bounded by MaxKnown, and
// drops players who were silent longest first; RemindEvery.
type Machine struct {
	id   overlay.ID
	opt  Options
	rng  *rand.Rand
	now  uint32 // the machine's own round
	at   overlay.Point
	step int // number of steps; unlike now it starts at 0

	contacts map[overlay.ID]*contact
	order    []*contact // the same contacts in an order independent of the map's; contact.slot is the index
	views    [viewInf + 1][]*contact
	dormant  []*contact // contacts outside all views; filled only if reminders are on
	buffer   buffer

	met  []overlay.Update // introduced since the last step
	rank []target         // scratch space of ranked
	left int              // bytes that may still be sent in this round, if there is a cap
}

// New returns the machine of a player without contacts. The options must be valid. Nothing else may draw from
// rng.
func New(id overlay.ID, opt Options, rng *rand.Rand) *Machine {
	if err := opt.Validate(); err != nil {
		panic(err) // the caller must validate
	}
	return &Machine{id: id, opt: opt, rng: rng, contacts: map[overlay.ID]*contact{}}
}

// ID implements Machine.
func (m *Machine) ID() overlay.ID { return m.id }

// target is a possible receiver, and the urgency of a gossip to them.
type target struct {
	to      *contact
	urgency float64
}
