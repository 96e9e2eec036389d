package terrain

// Version is the terrain version of new worlds, the newest one.
const Version = len(grains) - 1

// grain is what versions differ in: how far apart noise is sampled, as log2 of blocks. Between the samples it is interpolated;
// with 0 there is nothing between.
type grain struct {
	climate uint // climate
	hills   uint // elevations (Generator.hills)
	bumps   uint // bumps
	meadow  uint // meadow
	cave    uint // caveCorner, along x and z
	storey  uint // caveCorner, along y
}

// grains lists the versions. A released one never changes: worlds are made with it.
var grains = [...]grain{
	1: {climate: 0, hills: 0, bumps: 0, meadow: 0, cave: 2, storey: 2},
	// The same land but for a block here and there, in a fourth of the time: the shortest wave of a climate field is some 50 blocks
	// long where it is bent most, that of hills and bumps 13.
	2: {climate: 3, hills: 2, bumps: 2, meadow: 2, cave: 3, storey: 3},
}
