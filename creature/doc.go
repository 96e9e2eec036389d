// Package creature has what lives in the world besides players: kinds, and how a creature walks. It is pure: the blocks
// around a creature, and randomness, are arguments. A creature belongs to the region in whose cell it stands
// (docs/adr/0122); package world keeps it, and package region/actor moves it.
package creature
