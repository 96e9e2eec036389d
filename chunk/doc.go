// Package chunk stores voxels: blocks, palette-compressed sections, columns of them, and edits over terrain.
//
// Blocks of a column are counted by Index: y·1024 + z·32 + x. A column of n sections has n·32768 blocks.
//
// # Codec
//
// A column's bytes, in stores and towards browsers (docs/protocol.md); all numbers little-endian:
//
//	u8  version = 1
//	u8  sections n, 1 to 32
//	n times, bottom up:
//	    u8  bits b of an index: 0, 1, 2, 4, 8 or 16
//	    if b < 16:  u16 palette length p, then p × u16 block ids in order of first appearance
//	    32768·b/8 bytes: index i stands in byte i·b/8 at shift (i·b)%8, b bits;
//	                     i = y·1024 + z·32 + x within the section
//
// With b = 0 the palette has one id and no index follows; with b = 16 the indices are the ids.
// b is the smallest with p ≤ 2^b, so each column has exactly one encoding: its SHA-256 names it.
//
// # Adding a block
//
// 1. Append it to blockTable (table.go), after the call of addFittings, and its constant to block.go; a new shape to
// shape.go. A block's id never changes. 2. Its equivalents in other games: original in table.go, package blocktable for
// ClassiCube, and for Minecraft test/e2e/minecraft/blocktable.mjs with `npm --prefix test/e2e/minecraft ci` and `go
// generate ./blocktable`. 3. `go test ./chunk -run TestBlock -update` appends it to testdata/blocks.txt, and writes the
// client's table. TestBlockTraits names what is a plant, solid or clear. 4. A texture in web/src/render/tiles.ts;
// `TILES=write npm --prefix web run test` writes it for Luanti. A new shape is placed by web/src/world/blocks.ts. 5.
// Its name in web/src/text (`npm --prefix web run check` lists missing ones). A new shape in docs/protocol.md; the
// number of blocks in the README and in docs/client.md.
//
// Older gateways pass it on, and show it as unknown; an older leader refuses the edit (docs/adr/0059).
//
// A value belongs to its holder; nothing here is safe for concurrent writing. The package is floor 0:
// any package may import it, and it imports only grid.
package chunk
