package sim

import (
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/overlay"
)

// AreacastCase is one run of the areacast paper's world, or of one beside it.
type AreacastCase struct {
	Name       string
	Players    int     // 0: 100
	Side       float64 // of the field, blocks; 0: 1000
	Rounds     int     // 0: 500
	Hotspot    bool    // else Random
	Spots      HotspotOptions
	Step, Turn float64  // 0: the defaults
	Moves      Movement // in place of all the above but Rounds; nil: none
	Contacts   int      // whom a newcomer knows; 0: AreacastContacts

	// DirectIsOne counts an update that comes straight from its origin as of age 1, as the pSense paper does, not 2.
	DirectIsOne bool

	Options overlay.AreacastOptions
}

// AreacastContacts is how many players a newcomer knows. The paper says "a limited number"; with one or two, runs with
// a narrow fanout begin in pieces that never meet.
const AreacastContacts = 5

// introduceLead is how many rounds before two players can see each other their leader introduces them.
const introduceLead = 4

// Length is how many rounds the case has.
func (c *AreacastCase) Length() int { return or(c.Rounds, 500) }

// Config is the case as a run. With Options.Better.ReportEvery there is one leader who introduces; his traffic is the
// servers'.
func (c *AreacastCase) Config(seed uint64) Config {
	field := Field{Players: or(c.Players, 100), Width: or(c.Side, 1000), Depth: or(c.Side, 1000), Step: c.Step, Turn: c.Turn}
	moves := c.Moves
	switch {
	case moves != nil:
	case c.Hotspot:
		moves = NewHotspot(field, c.Spots, seed)
	default:
		moves = NewRandom(field, seed)
	}
	opt := c.Options
	cfg := Config{
		Seed: seed, Rounds: c.Length(), Movement: moves, Age: AreacastAge,
		Ranges:   Ranges{Interaction: opt.Interaction, Vision: opt.Vision},
		Contacts: or(c.Contacts, AreacastContacts),
	}
	if c.DirectIsOne {
		cfg.Age.Offset = 0
	}
	if opt.Better.ReportEvery > 0 {
		opt.Better.Leader = overlay.FirstServer
		cfg.Servers = []overlay.Machine{overlay.NewIntroducer(overlay.FirstServer, opt.Vision, introduceLead, opt.Header)}
	}
	cfg.Machine = func(id overlay.ID, rng *rand.Rand) overlay.Machine { return overlay.NewAreacast(id, opt, rng) }
	return cfg
}

// or is v, or if that is zero the default.
func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
