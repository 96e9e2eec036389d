package walkad

import (
	"errors"

	"github.com/voxelpopuli/voxeld/grid"
)

// Keys selects where cells lie in the keyspace.
type Keys string

const (
	// DaemonKeys are those of grid.PlacementWalkad: the Gray code XOR the domain's prefix in the first grid.MaxLabel
	// bits, random bits after them.
	DaemonKeys Keys = "daemon"
	// PaperKeys have the same first bits, and after them those of the region-ID (Walkad §IV-A: zeros XOR the
	// region-ID).
	PaperKeys Keys = "paper"
)

// Config describes a network and its world.
type Config struct {
	Nodes      int
	Regions    int
	MaxObjects int // D_max: a cell with more objects is split
	K          int // entries of a k-bucket
	R          int // coordinators of a cell
	Links      int // contacts that a coordinator keeps for a neighbour cell, at most R; the paper keeps R
	Keys       Keys
	Seed       uint64
}

// Paper returns the setup of §V: 1024 peers, five regions, k = 20, R = 10.
func Paper() Config {
	return Config{Nodes: 1024, Regions: 5, MaxObjects: 10, K: 20, R: 10, Links: 10, Keys: DaemonKeys, Seed: 1}
}

// Validate returns an error for a value that cannot be simulated.
func (c Config) Validate() error {
	switch {
	case c.Nodes < 1 || c.Nodes > 100_000:
		return errors.New("the number of nodes must be 1 to 100,000")
	case c.Regions < 1 || c.Regions > 1000:
		return errors.New("the number of regions must be 1 to 1000")
	case c.MaxObjects < 1 || c.K < 1 || c.R < 1:
		return errors.New("the objects of a cell, k and R must be 1 or more")
	case c.Links < 1 || c.Links > c.R:
		return errors.New("the links of a neighbour cell must be 1 to R")
	case c.Keys != DaemonKeys && c.Keys != PaperKeys:
		return errors.New("the keys must be daemon or paper")
	}
	return nil
}

// The width of a region: that of Second Life's, and in chunks.
const (
	RegionMetres = 256.0
	chunkMetres  = RegionMetres / grid.DomainSize
)

// Approach is a way of finding coordinators.
type Approach int

// The approaches that are compared.
const (
	Walking Approach = iota // Walkad
	SimpleApproach
	PlainKademlia
)
