package terrain

const golden = 0x9e3779b97f4a7c15

// mix is the finalizer of splitmix64: a bijection in which each input bit moves half of the output bits.
func mix(v uint64) uint64 {
	v += golden
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// Salts separate the dice of different decisions. Their numbers are part of the terrain version.
const (
	saltSkin uint64 = 1 + iota
	saltLeaf
	saltSpawn
	saltPlant
	saltFamily uint64 = 100 // plus the index of the family
	saltVein   uint64 = 200 // plus the index of the vein
)

// dice is the randomness of one place: a hash from which bits are drawn in a fixed order.
type dice uint64

// at returns the dice of coordinate v.
func (d dice) at(v int) dice { return dice(mix(uint64(d) ^ uint64(int64(v)))) }

// roll returns a number in 0..n-1 and moves on. n is at most 2³².
func (d *dice) roll(n int) int {
	v := uint64(*d) >> 32
	*d = dice(mix(uint64(*d)))
	return int(v * uint64(n) >> 32)
}

// unit returns a number in 0..1, below 1, and moves on.
func (d *dice) unit() float64 { return float64(d.roll(1<<24)) / (1 << 24) }

// tilt returns a number in -1/2..1/2, below 1/2, and moves on.
func (d *dice) tilt() float64 { return float64(d.roll(1<<24)-1<<23) / (1 << 24) }

// floorDiv divides towards minus infinity.
func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func abs(v int) int { return max(v, -v) }
