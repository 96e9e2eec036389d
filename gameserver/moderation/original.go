package moderation

import (
	"net"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file applies the policy to clients of the original protocol, which are guests.

var errNoOriginal = &wire.Error{Code: wire.FailNotAllowed, Message: "VoxelPopuli's own clients may not play here"}

func (e *Enforcer) judgeOriginal(remote net.Addr, name string) policy.Verdict {
	return e.judge(subject(player.GuestID(name), name, true, remote))
}

// AdmitOriginal returns why a client of the original protocol may not play; nil if it may.
func (e *Enforcer) AdmitOriginal(remote net.Addr, name string) error {
	if !e.node.Original() || e.Settings().NoOriginal {
		return errNoOriginal
	}
	if !e.node.Guests() {
		return errNoGuests
	}
	return e.refusal(e.judgeOriginal(remote, name))
}

// RefuseOriginal returns why a client of the original protocol may not change a block, as a code of wire; empty if it
// may.
func (e *Enforcer) RefuseOriginal(remote net.Addr, name string, at grid.Pos) string {
	who := subject(player.GuestID(name), name, true, remote)
	v := e.judge(who)
	if !v.MayJoin() { // but the connection came under another name
		return wire.RefusedNotAllowed
	}
	return e.refuseEdit(who, v, at)
}

// KeepsOriginal reports whether a claim keeps a client of the original protocol from going from one block into another.
func (e *Enforcer) KeepsOriginal(from, to grid.Pos) bool {
	return e.claims.Load().Keeps(player.ID{}, policy.Visitor, from, to) != nil
}

// MayGoOriginal reports whether the border of the world lets a client of the original protocol go from one place to
// another.
func (e *Enforcer) MayGoOriginal(from, to motion.Pose) bool {
	return e.border.Load().Allows(from.X, from.Z, to.X, to.Z)
}

// Inside reports whether a part of a chunk is within the border of the world.
func (e *Enforcer) Inside(at grid.ChunkPos) bool {
	middle := at.Origin()
	x, z, _ := e.border.Load().Nearest(float64(middle.X)+grid.ChunkSize/2, float64(middle.Z)+grid.ChunkSize/2)
	return motion.Pose{X: x, Z: z}.Chunk() == at
}

// EditsOfGuests returns how many blocks a second a guest may change, of whom this node lets each player change so many.
func (e *Enforcer) EditsOfGuests(node rate.Limit) rate.Limit {
	s := e.Settings()
	return editsOf(s.EditsOf(s.Guests), node)
}

// editsOf returns how many blocks a second a player may change: as many as their role says, else as the node grants.
func editsOf(own int, node rate.Limit) rate.Limit {
	if own != 0 {
		return rate.Limit(own)
	}
	return node
}
