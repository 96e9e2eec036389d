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
// A value belongs to its holder; nothing here is safe for concurrent writing. The package is floor 0:
// any package may import it, and it imports only grid.
package chunk
