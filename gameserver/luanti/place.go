package luanti

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

const (
	// unit is a block in the client's places.
	unit = 10
	// middle is where a block's middle is in ours: in the client it is at a whole number.
	middle = .5
	// originStep is what the client's origin is a multiple of, in blocks: near the middle of the world it is there.
	originStep = 1 << 14
	// farthest is how far from its origin a client's player may go. Its map ends at 31,000.
	farthest = 30000
)

// origin is where the client has its origin in the world. Y is always 0.
type origin struct{ x, z int32 }

// originNear returns the origin for a player who joins at a pose.
func originNear(p motion.Pose) origin {
	return origin{roundTo(p.X), roundTo(p.Z)}
}

func roundTo(v float64) int32 { return int32(math.Round(v/originStep)) * originStep }

// bears reports whether a client with this origin can show the place.
func (o origin) bears(p motion.Pose) bool {
	return math.Abs(p.X-float64(o.x)) < farthest && math.Abs(p.Z-float64(o.z)) < farthest
}

// node is the position of a block in the client.
type node struct{ x, y, z int }

func (o origin) node(at grid.Pos) node {
	return node{int(at.X - o.x), int(at.Y), int(o.z - at.Z - 1)}
}

// pos returns the block of a node, which has numbers of 16 bits.
func (o origin) pos(n node) grid.Pos {
	return grid.Pos{X: o.x + int32(n.x), Y: int32(n.y), Z: o.z - int32(n.z) - 1} //nolint:gosec // of 16 bits
}

// place is the place of a player's feet in the client, with where they look, in degrees.
type place struct{ x, y, z, yaw, pitch float64 }

// place returns a pose as a place. Yaw 0 looks along +Z there, which is -Z here; pitch grows downwards there.
func (o origin) place(p motion.Pose) place {
	return place{
		x: (p.X - float64(o.x) - middle) * unit, y: (p.Y - middle) * unit, z: (float64(o.z) - p.Z - middle) * unit,
		yaw: turned(180 - degrees(float64(p.Yaw))), pitch: -degrees(float64(p.Pitch)),
	}
}

// pose returns the pose that a client sends as a place. Its pitch is within that of players.
func (o origin) pose(at place) motion.Pose {
	return motion.Pose{
		X: float64(o.x) + at.x/unit + middle, Y: at.y/unit + middle, Z: float64(o.z) - at.z/unit - middle,
		Yaw:   float32(math.Remainder(math.Pi-at.yaw*math.Pi/180, 2*math.Pi)),
		Pitch: float32(max(-math.Pi/2, min(math.Pi/2, -at.pitch*math.Pi/180))),
	}
}

func degrees(radians float64) float64 { return radians * 180 / math.Pi }

// turned returns an angle between 0 and 360 degrees.
func turned(degrees float64) float64 {
	return math.Mod(math.Mod(degrees, 360)+360, 360)
}
