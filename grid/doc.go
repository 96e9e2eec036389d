// Package grid defines positions: blocks, chunks, domains, the cells of a domain's binary trie, and the keys under
// which the DHT stores those cells (docs/ARCHITECTURE.md).
//
// Axes: X and Z are horizontal, Y points up. A chunk is ChunkSize × ChunkSize blocks wide and as high as the world; a
// domain is DomainSize × DomainSize chunks. All divisions round down, so chunk -1 holds the blocks -32 to -1. Chunk
// coordinates lie in [-Limit, Limit); times ChunkSize that is exactly the range of int32.
//
// Everything here is a plain value, except Keys, which belongs to one goroutine. The package is floor 0: any package
// may import it, and it imports only the standard library.
package grid
