package rollback

import (
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/transport"
)

// This file answers what is in a rectangle of the world: the regions, who leads them, their players, and how edits have
// changed the surface. A query walks from leader to leader (Walkad §IV-B): each answers with its regions in the
// rectangle, and with the routes that it knows to the others there. The asking node goes on with those, some at a time.
// It asks the catalog only for cells to which no leader knew a route. A query founds no region and wakes none. It is
// bounded in cells, regions, questions and time, and its result says what is missing.

const (
	// askTime bounds one question.
	askTime = 1500 * time.Millisecond
	// rangeRate and rangeBurst are how many questions one node may ask another in a second, and at once.
	rangeRate, rangeBurst = 40, 120
	// maxRegions bounds a query's result, maxQuestions what it costs.
	maxRegions, maxQuestions = 4096, 1024
	// maxTries is how many members of a region are asked for it.
	maxTries = 4
	// defaultTime bounds a query.
	defaultTime = 4 * time.Second
	// parallelAsked is how many nodes are asked at once (docs/adr/0034).
	parallelAsked = 8
)

// RangesOptions are what a Ranges needs.
type RangesOptions struct {
	integrity.Node
	// Lands lists the loaded regions.
	Lands func() []*actor.Land
	// Quarantined reports whether a region is quarantined here.
	Quarantined func(id uint64) bool
	// Ground generates a chunk. If nil, this node answers no questions about surfaces. Any goroutine.
	Ground func(grid.ChunkPos) *chunk.Chunk
}

// Ranges asks range queries, and answers those of other nodes.
type Ranges struct {
	RangesOptions
	surfaces *surfaces
	askers   *transport.PeerLimits
}

// NewRanges returns a Ranges.
func NewRanges(o RangesOptions) *Ranges {
	return &Ranges{RangesOptions: o, surfaces: newSurfaces(o.Ground), askers: transport.NewPeerLimits(rangeRate, rangeBurst)}
}
