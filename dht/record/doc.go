// Package record seals and opens the signed records of a world's network, and validates them: Regions for those of
// regions and the catalog, Players for those of players.
//
// Its types may be used from many goroutines.
package record
