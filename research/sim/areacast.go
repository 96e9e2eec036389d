package sim

import (
	"cmp"
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/overlay/areacast"
)

// AreacastCase is one run of the areacast paper's world or of a variant.
type AreacastCase struct {
	Name       string
	Players    int     // 0: 100
	Side       float64 // of the field, blocks; 0: 1000
	Rounds     int     // 0: 500
	Hotspot    bool    // else Random
	Hotspots   HotspotOptions
	Step, Turn float64  // 0: the defaults
	Moves      Movement // replaces all of the above except Rounds; nil: none
	Contacts   int      // contacts of a newcomer; 0: AreacastContacts

	// DirectIsOne counts an update directly from its origin as of age 1, as in the pSense paper, rather than 2.
	DirectIsOne bool

	Options areacast.Options
}

// AreacastContacts is the number of a newcomer's contacts. The paper says "a limited number"; with one or two, runs
// with a narrow fanout start in components that never meet.
const AreacastContacts = 5

// introduceLead is how many rounds before two players could see each other the leader introduces them.
const introduceLead = 4

// Length returns the number of rounds of the case.
func (c *AreacastCase) Length() int { return cmp.Or(c.Rounds, 500) }

// Config returns the configuration of the case. With ReportEvery there is one leader for introductions;
// its traffic counts as the servers'.
func (c *AreacastCase) Config(seed uint64) Config {
	moves := c.Moves
	if moves == nil {
		moves = gameOf(c.Players, c.Side, c.Step, c.Turn, c.Hotspot, c.Hotspots, seed)
	}
	opt := c.Options
	cfg := Config{
		Seed: seed, Rounds: c.Length(), Movement: moves, Age: AreacastAge,
		Ranges:   Ranges{Interaction: opt.Interaction, Vision: opt.Vision},
		Contacts: cmp.Or(c.Contacts, AreacastContacts),
	}
	if c.DirectIsOne {
		cfg.Age.Offset = 0
	}
	if opt.Improved.ReportEvery > 0 {
		opt.Improved.Leader = overlay.FirstServer
		cfg.Servers = []overlay.Machine{NewIntroducer(overlay.FirstServer, opt.Vision, introduceLead, opt.Header)}
	}
	cfg.Machine = func(id overlay.ID, rng *rand.Rand) overlay.Machine { return areacast.New(id, opt, rng) }
	return cfg
}
