// Package world is the deterministic core of voxeld: the parameters of a world (Genesis), the replicated state of a
// region (Land) and of the catalog (Catalog), and the avatars in a region (Crowd).
//
// Everything here is a step machine: input goes in, effects and durable writes are return values. Nothing blocks, reads
// a clock or starts a goroutine. So every replica that applies the same log reaches the same state, and simulations can
// run thousands of instances.
//
// A value of this package is owned by one goroutine: Land and Crowd by their region's loop, Catalog by the catalog's
// loop (package region).
package world
