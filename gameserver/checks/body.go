// Package checks is what moves, edits and interactions of players are checked against: walls, bodies and lines of
// sight. It is pure: the blocks and bodies are arguments.
package checks

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A player's body, in blocks. Clients have the same (web/src/player/body.ts).
const bodyWidth, bodyHeight = .6, 1.8

// BodyReaches reports whether a body reaches into what the block would fill at the position. A tiny overlap is tolerated,
// so that a client that rounds may stand flush against a block that it places.
func BodyReaches(p motion.Pose, pos grid.Pos, block chunk.Block) bool {
	const hair = .01
	return block.Solid() && bodyAt([3]float64{p.X, p.Y, p.Z}, hair).reaches(Obstacle{At: pos, Boxes: block.Boxes()})
}

// distanceOf returns the distance of two points.
func distanceOf(a, b [3]float64) float64 {
	return math.Hypot(math.Hypot(a[0]-b[0], a[2]-b[2]), a[1]-b[1])
}

// floor returns the block coordinate; at the world's last edge the one before, so that counting beyond it ends.
func floor(v float64) int32 { return int32(min(math.Floor(v), math.MaxInt32-1)) }

// blockOf returns the block that a point is in.
func blockOf(at [3]float64) grid.Pos {
	return grid.Pos{X: floor(at[0]), Y: floor(at[1]), Z: floor(at[2])}
}

// DistanceToBody returns the distance of eyes from the nearest point of a body with its feet there.
func DistanceToBody(eyes, feet motion.Pose) float64 {
	beyond := func(v, low, high float64) float64 { return max(low-v, 0, v-high) }
	const half = bodyWidth / 2
	return math.Hypot(
		math.Hypot(beyond(eyes.X, feet.X-half, feet.X+half), beyond(eyes.Z, feet.Z-half, feet.Z+half)),
		beyond(eyes.Y, feet.Y, feet.Y+bodyHeight))
}

// ChunksAround returns the chunks in which a body that reaches into the block may stand, each once.
func ChunksAround(pos grid.Pos) []grid.ChunkPos {
	var all []grid.ChunkPos
	for _, corner := range [...]grid.Pos{{X: -1, Z: -1}, {X: -1, Z: 1}, {X: 1, Z: -1}, {X: 1, Z: 1}} {
		at := grid.Pos{X: pos.X + corner.X, Z: pos.Z + corner.Z}.Chunk()
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// Bodies are the bodies known in some chunks; a *mirror.Subscription.
type Bodies interface {
	AnyOccupant(at grid.ChunkPos, is func(*nodemsg.Body) bool) bool
}

// Occupied reports whether the body of another player than self in the chunk reaches into what the block would fill.
func Occupied(in Bodies, at grid.ChunkPos, pos grid.Pos, block chunk.Block, self player.ID) bool {
	return in.AnyOccupant(at, func(b *nodemsg.Body) bool { return b.Player != self && BodyReaches(b.Pose, pos, block) })
}

// BlockChange returns why a block may not replace another; empty if it may. Air is placed by breaking.
func BlockChange(there, block chunk.Block) (refused string) {
	switch {
	case !block.Known():
		return wire.RefusedUnknownBlock
	case block != chunk.Air && !block.Placeable():
		return wire.RefusedNotPlaceable
	case there != chunk.Air && !there.Breakable():
		return wire.RefusedUnbreakable
	}
	return ""
}
