package classicube

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

const (
	unit = 32 // of a place, in a block
	// eyes is the height of a place above the player's feet. The client's own place is corrected by selfEyes: it adds
	// the rest.
	eyes, selfEyes = 51, 51 - 22
	turn           = 256 // units of an angle
)

// place is a pose in a level. X, Y and Z are in 1/32 block.
type place struct {
	x, y, z    uint16 // two's complement
	yaw, pitch byte
}

// placeOf returns a pose in a level whose corner is at origin, as that of the eyes, so much above the feet.
func placeOf(p motion.Pose, origin grid.Pos, above int) place {
	return place{
		x: fixed((p.X - float64(origin.X)) * unit), y: fixed(p.Y*unit + float64(above)), z: fixed((p.Z - float64(origin.Z)) * unit),
		// Yaw 0 looks along -Z there, and along +Z here; pitch grows downwards there.
		yaw: angle(float64(p.Yaw) + math.Pi), pitch: angle(-float64(p.Pitch)),
	}
}

// fixed returns the nearest number of a place.
func fixed(v float64) uint16 {
	return uint16(int16(max(math.MinInt16, min(math.MaxInt16, math.Round(v))))) //nolint:gosec // two's complement
}

func angle(radians float64) byte {
	return byte(int64(math.Round(radians/(2*math.Pi)*turn)) & (turn - 1))
}

// pose returns the pose that a client sends as a place.
func (p place) pose(origin grid.Pos) motion.Pose {
	pitch := float64(int8(p.pitch)) / turn * 2 * math.Pi //nolint:gosec // angles above half a turn are negative
	return motion.Pose{
		X:   float64(origin.X) + float64(int16(p.x))/unit, //nolint:gosec // two's complement
		Y:   (float64(int16(p.y)) - eyes) / unit,          //nolint:gosec // two's complement
		Z:   float64(origin.Z) + float64(int16(p.z))/unit, //nolint:gosec // two's complement
		Yaw: float32(float64(p.yaw)/turn*2*math.Pi - math.Pi), Pitch: float32(max(-math.Pi/2, min(math.Pi/2, -pitch))),
	}
}
