package overlay

import "math"

// Short forms of numbers, for compact updates.
const (
	fine         = 16   // short positions are written in 16ths of a block
	span         = 4096 // period of a short coordinate, in blocks
	CompactReach = 1024 // distance up to which an update is sent in the short form, in blocks; well below span/2
	maxSpeed     = 126.0
)

// Quantise rounds an update to the precision of the short form.
func Quantise(u Update) Update {
	u.At = Point{math.Round(u.At.X*fine) / fine, math.Round(u.At.Z*fine) / fine}
	u.Velocity = Point{speed(speedByte(u.Velocity.X)), speed(speedByte(u.Velocity.Z))}
	return u
}

// shortCoordinate returns a coordinate's low 16 bits.
func shortCoordinate(v float64) uint16 { return uint16(int64(math.Round(v * fine))) }

// longCoordinate returns the coordinate with these low bits that is closest to near.
func longCoordinate(low uint16, near float64) float64 {
	base := int64(math.Round(near * fine))
	return float64(base+int64(int16(low-uint16(base)))) / fine
}

// speedByte encodes one axis of a velocity in one byte: its sign and its square root, so that low speeds are precise.
// The range is maxSpeed blocks a round.
func speedByte(v float64) int8 {
	root := math.Round(math.Sqrt(min(math.Abs(v), maxSpeed) * 128))
	return int8(math.Copysign(min(root, 127), v))
}

func speed(b int8) float64 {
	v := float64(b)
	return math.Copysign(v*v/128, v)
}
