// Package motion holds the pose and the velocity of avatars, and their dead reckoning.
//
// Its types are plain values: the package has no state, goroutine or lock. It is floor 1: it imports chunk and grid.
package motion
