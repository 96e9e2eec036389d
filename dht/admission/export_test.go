package admission

import (
	"context"

	"github.com/voxelpopuli/voxeld/trust"
)

// KeepUp does what Run does once a minute.
func (g *Gate) KeepUp(ctx context.Context) { g.keepUp(ctx) }

// AddCharter adds a charter that the holders of the root keys have sealed.
func (g *Gate) AddCharter(raw []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addCharter(raw)
}

// Charter returns the newest charter.
func (g *Gate) Charter() trust.Charter { return Charter(g) }
