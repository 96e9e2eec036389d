package horizon

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Host is land and the node that leads its region, as far as this node knows. The query that says which tiles have
// changed says this, too.
type Host struct {
	X     int32  `json:"x"` // of its first block
	Z     int32  `json:"z"`
	Width int32  `json:"width"` // in blocks, along X
	Depth int32  `json:"depth"` // along Z
	Node  string `json:"node,omitempty"`
	// Lost means that no node that leads it answers. Land that is not founded is left out. Whether a region is open is
	// not told: that says where players are.
	Lost bool `json:"lost,omitempty"`
}

// hostsIn returns the hosts of what a range query has found.
func hostsIn(found region.RangeResult) []Host {
	all := make([]Host, 0, len(found.Regions)+len(found.Missing))
	for _, g := range found.Regions {
		h := hostOf(g.Region.Cell)
		h.Node, h.Lost = g.Region.Leader, g.State == nodemsg.StateQuarantined || g.Region.Leader == ""
		all = append(all, h)
	}
	for _, m := range found.Missing {
		h := hostOf(m.Cell)
		h.Lost = true
		all = append(all, h)
	}
	return all
}

func hostOf(c grid.Cell) Host {
	a := c.Area()
	return Host{
		X: a.MinX * grid.ChunkSize, Z: a.MinZ * grid.ChunkSize,
		Width: (a.MaxX - a.MinX) * grid.ChunkSize, Depth: (a.MaxZ - a.MinZ) * grid.ChunkSize,
	}
}
