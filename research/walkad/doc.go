// Package walkad simulates the evaluation of "A Walkable Kademlia Network for Virtual Worlds" (Varvello, Diot, Biersack
// 2009): how many hops and how long it takes to find the coordinators of a place, by walking, by the paper's simple
// approach and by a plain Kademlia lookup, and how evenly cells are spread over the peers.
//
// Cells, labels, Gray codes and DHT keys are those of package grid, which the daemon uses. A region of 256 × 256 m is a
// domain, so a chunk stands for 4 × 4 m.
//
// A Network is a pure function of its Config, and answers in it depend only on the questions before. It belongs to one
// goroutine. cmd/sim imports the package, which imports only grid.
package walkad
