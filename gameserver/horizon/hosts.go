package horizon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// maxSectorsNamed is the most sectors in one request for hosts.
const maxSectorsNamed = 36

// Host is land and the node that leads its region, as far as this node knows. The query that says which tiles have changed says this, too.
type Host struct {
	X     int32  `json:"x"` // of its first block
	Z     int32  `json:"z"`
	Width int32  `json:"width"` // in blocks, along X
	Depth int32  `json:"depth"` // along Z
	Node  string `json:"node,omitempty"`
	// Closed means that nobody is near, so that the node only keeps it; Lost, that no node answers for it. Land that is not founded is left out.
	Closed bool `json:"closed,omitempty"`
	Lost   bool `json:"lost,omitempty"`
}

// hostsIn returns the hosts of what a range query has found.
func hostsIn(found region.RangeResult) []Host {
	all := make([]Host, 0, len(found.Regions)+len(found.Missing))
	for _, g := range found.Regions {
		h := hostOf(g.Region.Cell)
		h.Node, h.Closed, h.Lost = g.Region.Leader, g.State == nodemsg.StateClosed, g.State == nodemsg.StateQuarantined || g.Region.Leader == ""
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

// hosts returns the hosts of a sector, and false if nothing is known of it.
func (e *edits) hosts(ctx context.Context, at sector) ([]Host, bool) {
	e.look(ctx, at)
	e.mu.Lock()
	defer e.mu.Unlock()
	known, ok := e.mu.sectors.Get(at)
	return known.hosts, ok && known.hosts != nil
}

func parseSector(name string) (at sector, err error) {
	const limit = maxTile / (sectorSide * BaseSide)
	if _, err := fmt.Sscanf(name, "%d.%d", &at.x, &at.z); err != nil || at.String() != name || min(at.x, at.z) < -limit || max(at.x, at.z) >= limit {
		return sector{}, fmt.Errorf("no sector is called %q", wire.Clip([]byte(name)))
	}
	return at, nil
}

// String returns the name of the sector in addresses.
func (s sector) String() string { return fmt.Sprintf("%d.%d", s.x, s.z) }

// hostsAnswer is the answer to a request for hosts, by the names of the sectors. Those of which nothing is known yet are left out.
type hostsAnswer struct {
	Sectors map[string][]Host `json:"sectors"`
}

func (h *Horizon) serveHosts(w http.ResponseWriter, r *http.Request) {
	names := strings.SplitN(r.URL.Query().Get("sectors"), ",", maxSectorsNamed+1)
	if len(names) > maxSectorsNamed {
		http.Error(w, "too many sectors in one request", http.StatusBadRequest)
		return
	}
	sectors := make([]sector, len(names))
	for i, name := range names {
		var err error
		if sectors[i], err = parseSector(name); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	address := addressOf(r)
	if !h.begin(address) {
		h.refuse(w)
		return
	}
	defer h.end(address)
	ctx, cancel := context.WithTimeout(r.Context(), hashTime)
	defer cancel()
	answer := hostsAnswer{Sectors: make(map[string][]Host, len(sectors))}
	for _, at := range sectors {
		if hosts, ok := h.edits.hosts(ctx, at); ok {
			answer.Sectors[at.String()] = hosts
		}
	}
	w.Header().Set("Cache-Control", "public, max-age=2")
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer) //nolint:errcheck,errchkjson // the client left
}
