// Package blocktable maps our blocks to those of other games, and back. A game that lacks a block is shown the nearest
// that it has, of the same solidity, so that its client's physics agrees with the checks of moves.
//
// It imports chunk.
package blocktable
