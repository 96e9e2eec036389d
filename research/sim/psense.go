package sim

import (
	"cmp"
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/overlay/psense"
)

// PSenseCase is one run of the pSense paper's world or of a variant, with pSense or relay machines.
type PSenseCase struct {
	Name       string
	Players    int     // of the field; 0: 100
	Side       float64 // of the field, blocks; 0: 1000
	Rounds     int     // 0: 500
	Hotspot    bool    // else Random
	Hotspots   HotspotOptions
	Step, Turn float64  // 0: the defaults
	Moves      Movement // replaces all of the above except Rounds; nil: none
	Contacts   int      // contacts of a newcomer; 0: 1, as in the paper

	Calm    bool // everybody starts with their neighbors as contacts; replaces Contacts
	Relay   bool // client/server instead of pSense
	Options psense.Options
}

// Config returns the configuration of the case.
func (c *PSenseCase) Config(seed uint64) Config {
	moves := c.Moves
	if moves == nil {
		moves = gameOf(c.Players, c.Side, c.Step, c.Turn, c.Hotspot, c.Hotspots, seed)
	}
	o := c.Options
	cfg := Config{
		Seed: seed, Rounds: cmp.Or(c.Rounds, 500), Movement: moves, Age: PSenseAge,
		Ranges:   Ranges{Interaction: o.Interaction, Vision: o.Vision},
		Contacts: c.Contacts,
	}
	switch {
	case c.Relay:
		cfg.Servers = []overlay.Machine{NewRelayLeader(overlay.FirstServer, o.Vision, o.Header)}
		cfg.Machine = func(id overlay.ID, _ *rand.Rand) overlay.Machine {
			return NewRelay(id, overlay.FirstServer, o.Header)
		}
		return cfg
	case o.Introductions:
		cfg.Servers = []overlay.Machine{NewIntroducer(overlay.FirstServer, o.Vision, o.Lead, o.Header)}
		cfg.Introduce = func(self overlay.Update, here []overlay.Update) ([]overlay.Update, int) {
			return Welcome(self, here, o.Vision, o.Lead, o.Header)
		}
	}
	if c.Calm {
		cfg.Introduce = func(self overlay.Update, here []overlay.Update) ([]overlay.Update, int) {
			known, _ := Welcome(self, here, o.Vision*1.25, 0, 0) // sensor nodes too
			return known, 0
		}
	}
	cfg.Machine = func(id overlay.ID, rng *rand.Rand) overlay.Machine { return psense.New(o, id, rng) }
	return cfg
}
