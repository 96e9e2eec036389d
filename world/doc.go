// Package world is the deterministic heart of voxeld: what a world is made from (Genesis), the
// replicated state of a region (Land) and of the catalog (Catalog), and who walks about in a region
// (Crowd).
//
// Everything here is a step machine: input goes in, effects and durable writes come back as values.
// Nothing blocks, reads a clock or starts a goroutine, so that every replica that applies the same
// log comes to the same state, and simulations run by the thousand.
//
// A value of this package is owned by one goroutine: Land and Crowd by their region's loop, Catalog
// by the catalog's loop (package region). Floors 3 and up may import it.
package world
