// Package player defines the identity, the names and the movement rules of players.
//
// Everything is a value or a step machine: time is an argument, and a Motion belongs to the goroutine that owns the
// player's session. The package is floor 1; it imports grid, and wire and everything above may import it.
package player
