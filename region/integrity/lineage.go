package integrity

import (
	"encoding/binary"
	"slices"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file decides. It is pure: no clock, no storage, no network.

// lineage is the incarnations of a node that are in its storage, in the order of their starts. The last one runs now.
type lineage []nodemsg.Incarnation

// continues reports whether the storage that holds the lineage is at least as new as what a peer remembers.
func (l lineage) continues(remembered nodemsg.Incarnation) bool {
	i := l.find(remembered.ID)
	return i >= 0 && l[i].Count >= remembered.Count
}

func (l lineage) find(id [16]byte) int {
	return slices.IndexFunc(l, func(own nodemsg.Incarnation) bool { return own.ID == id })
}

// begin adds an incarnation, which runs from now on. The earliest is dropped if there are too many.
func (l lineage) begin(id [16]byte) lineage {
	next := nodemsg.Incarnation{ID: id}
	if len(l) > 0 {
		next.RolledBack = l.running().RolledBack
	}
	all := append(slices.Clone(l), next)
	return all[max(0, len(all)-nodemsg.MaxIncarnations):]
}

func (l lineage) running() nodemsg.Incarnation { return l[len(l)-1] }

// raise raises the count of the incarnation that runs.
func (l lineage) raise() lineage {
	next := slices.Clone(l)
	next[len(next)-1].Count++
	return next
}

// outdates reports whether what is in the storage may be older than the remembered incarnation, which the lineage does
// not continue. It is not if the storage was put back before, and that was noticed: nothing from before is used, and
// the remembered incarnation is one of those that were lost then.
func (l lineage) outdates(remembered nodemsg.Incarnation) bool {
	return remembered.RolledBack >= l.running().RolledBack
}

// adopt adds what a peer remembers, so that the lineage continues it. If that outdates what is in the storage, the
// caller no longer uses it. If the remembered incarnation is the one that runs, its storage was put back beneath it:
// the fresh one runs from now on.
func (l lineage) adopt(remembered nodemsg.Incarnation, fresh [16]byte) lineage {
	next := slices.Clone(l)
	if last := len(next) - 1; l.outdates(remembered) {
		next[last].RolledBack = remembered.RolledBack + 1
	}
	i := next.find(remembered.ID)
	if i < 0 {
		i = len(next) - 1
		next = slices.Insert(next, i, remembered)
	}
	next[i].Count = max(next[i].Count, remembered.Count)
	if i == len(next)-1 {
		return next.begin(fresh)
	}
	return next[max(0, len(next)-nodemsg.MaxIncarnations):]
}

// signedText is what a node signs to announce an incarnation.
func signedText(i nodemsg.Incarnation) []byte {
	text := append([]byte("voxeld incarnation\x00"), i.ID[:]...)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(text, i.Count), i.RolledBack)
}
