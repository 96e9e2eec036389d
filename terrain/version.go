package terrain

// Version is the terrain version of new worlds, the newest one.
const Version = len(grains) - 1

// grain is what differs between versions: the distance between noise samples, as log2 of blocks. Values between samples
// are interpolated; with 0 every block is sampled.
type grain struct {
	climate uint // climate
	hills   uint // elevations (Generator.hills)
	bumps   uint // bumps
	meadow  uint // meadow
	cave    uint // caveCorner, along x and z
	storey  uint // caveCorner, along y
}

// grains lists the versions. A released one never changes, because worlds depend on it.
var grains = [...]grain{
	1: {climate: 0, hills: 0, bumps: 0, meadow: 0, cave: 2, storey: 2},
	// The same land except for a block here and there, in a quarter of the time: the shortest wave of a climate field
	// is some 50 blocks long where it is bent most, that of hills and bumps 13.
	2: {climate: 3, hills: 2, bumps: 2, meadow: 2, cave: 3, storey: 3},
}
