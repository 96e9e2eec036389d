// Package terrain generates the land: a pure function from a world's parameters and a position to blocks.
//
// # Contract
//
// New reads Params and nothing else; a Generator is immutable after it, so any number of goroutines may
// share one. Two generators of equal Params produce equal chunks, whatever was asked of them before and in
// whatever order. Nothing is cached between calls: a Room is only memory. The land of a
// released Version never changes: a change that moves a block of an existing world needs a new Version beside the
// old one (golden_test.go checks it).
//
// # How the land is made
//
// Files, from the bottom up; each uses only those before it:
//
//   - hash.go, noise.go, fields.go: chance, and the noises of a world.
//   - lattice.go: noise is sampled on lattices that are aligned to the world, and interpolated between. How fine they are is what
//     versions differ in (grains in terrain.go).
//   - relief.go: climate and height of one block column out of two-dimensional noise.
//   - skin.go: which blocks cover the ground: grass, sand, snow, bare rock, sea beds.
//   - volume.go, columns.go: the blocks of a rectangle of columns, and its cached columns.
//   - cave.go: tunnels and halls out of three-dimensional noise, on a lattice too; never into water.
//   - ore.go: veins of ore and pockets of soil in the rock.
//   - growth.go, tree.go, details.go, feature.go: trees, cacti, boulders and the like. Whether one stands at a place is
//     decided by that place alone, so chunks on both sides of a border agree without asking one another.
//   - plants.go: grass, flowers, ferns and reeds on the ground that is left.
//   - slab.go: puts these together for any rectangle of columns. A chunk is a slab of 32×32 columns, the
//     answer of Surface is a slab of 1×1: that is why they agree.
//   - spawn.go: where newcomers start.
//   - original.go: the world of the dissertation (VoxelPopuli §2.6), one section high.
//
// # Floating point
//
// A Go compiler may fuse x*y+z into one rounding on some architectures (arm64, ppc64, s390x) and not on
// others (amd64). Here every product that is added to something passes through mul, whose explicit conversion
// forbids that. The noise library itself does not do so; its results are therefore rounded to
// 2⁻²⁰ at once (see quantum), which hides a different last bit except about once in 10⁹ samples, and
// then shifts a height by a millionth of a block. Decisions of chance are integer hashes. What little
// may still differ is detected by the pinned base hashes (docs/adr/0003).
//
// It imports chunk and grid, and holds no state that anybody could own.
package terrain
