package sanction

import (
	"maps"
	"net/netip"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/player"
)

// Max is the most targets of bans and mutes in force at a time.
const Max = 20_000

// List is the sanctions of a world. Create it with NewList.
type List struct {
	of       map[Target]map[Kind]*Sanction
	networks map[int]bool // the lengths of the prefixes of sanctioned networks; those of IPv6 below zero
}

// NewList returns a List without sanctions.
func NewList() *List { return &List{of: make(map[Target]map[Kind]*Sanction)} }

// Full reports whether the list takes no new targets: that of a sanction of another one is allowed.
func (l *List) Full(target Target) bool { return len(l.of) >= Max && l.of[target] == nil }

// Of returns the sanctions of a target, also those that have ended, by kind. The caller must not change them.
func (l *List) Of(target Target) map[Kind]*Sanction { return l.of[target] }

// Bans calls visit with each player who is banned or was kicked.
func (l *List) Bans(visit func(id player.ID, ban *Sanction)) {
	for target, kinds := range l.of {
		if ban := Longer(kinds[Ban], kinds[Kick]); target.Player != (player.ID{}) && ban != nil {
			visit(target.Player, ban)
		}
	}
}

// InForce returns the bans and mutes in force at a time, in Unix milliseconds, in no order.
func (l *List) InForce(at int64, label func(Target) string) []Sanction {
	all := []Sanction{}
	for target, kinds := range l.of {
		for it := range maps.Values(kinds) {
			if it.InForce(at) {
				shown := *it
				shown.Target = label(target)
				all = append(all, shown)
			}
		}
	}
	return all
}

// Put adds a sanction, in the place of an older one of its kind.
func (l *List) Put(target Target, it Sanction) {
	if l.of[target] == nil {
		l.of[target] = make(map[Kind]*Sanction)
	}
	l.of[target][it.Kind] = &it
	l.countNetworks()
}

// Lift removes sanctions.
func (l *List) Lift(target Target, at int64, kinds ...Kind) {
	for _, kind := range kinds {
		delete(l.of[target], kind)
	}
	l.Purge(at)
}

// purgedAfter is how long after their end sanctions are kept: the times of acts are not exact.
const purgedAfter = 48 * time.Hour

// Purge removes what has not been in force for long.
func (l *List) Purge(at int64) {
	at -= purgedAfter.Milliseconds()
	maps.DeleteFunc(l.of, func(_ Target, kinds map[Kind]*Sanction) bool {
		maps.DeleteFunc(kinds, func(_ Kind, it *Sanction) bool { return !it.InForce(at) })
		return len(kinds) == 0
	})
	l.countNetworks()
}

// countNetworks notes the lengths of the prefixes that Targets has to look for.
func (l *List) countNetworks() {
	l.networks = make(map[int]bool)
	for target := range l.of {
		if bits := target.Network.Bits(); bits > 0 && target.Network.Addr().Is4() {
			l.networks[bits] = true
		} else if bits > 0 {
			l.networks[-bits] = true
		}
	}
}

// Targets lists the targets of sanctions that would concern a player.
func (l *List) Targets(id player.ID, name string, address netip.Addr) []Target {
	all := []Target{{Player: id}, {Name: strings.ToLower(name)}}
	address = address.Unmap()
	for size := range l.networks {
		if network, err := address.Prefix(max(size, -size)); err == nil && (size > 0) == address.Is4() {
			all = append(all, Target{Network: network})
		}
	}
	return all
}
