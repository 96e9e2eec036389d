package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Config is one run.
type Config struct {
	Seed   uint64
	Rounds int // measured are the rounds 1 to Rounds; round 0 only sends

	Movement Movement
	Ranges   Ranges

	// Machine makes a player's machine. Players have the ids 0 to Movement.Players()-1.
	Machine func(id overlay.ID, rng *rand.Rand) overlay.Machine
	// Servers are machines without avatars, such as a region's leader. Their ids are from overlay.FirstServer on,
	// without a gap. Their traffic is counted apart.
	Servers []overlay.Machine

	// Contacts is how many random players that are in the game already are introduced to one who joins. 0 is 1.
	Contacts int
	// JoinsPerRound is how many players join in a round. 0 is all, in round 0.
	JoinsPerRound int
	// Introduce, if set, chooses the contacts in place of Contacts: from all who are in the game, those who join in the
	// same round included. bytes is what telling them took; it counts as what came in to the player, out of server 0.
	Introduce func(self overlay.Update, here []overlay.Update) (contacts []overlay.Update, bytes int)

	// Age is how the measure counts an update's age.
	Age AgeRule

	// Lose is the share of messages that are lost, Double the share that arrive twice; 0 for the papers.
	Lose, Double float64

	Log Log // nil: none
}

// Ranges are the radii of a player, in blocks.
type Ranges struct{ Interaction, Vision float64 }

// PaperRanges are those of both papers.
var PaperRanges = Ranges{Interaction: 50, Vision: 200}

// AgeRule is how a paper counts PositionAge.
type AgeRule struct {
	Offset int // added to the rounds since the update was sent: 0 for pSense (a direct update is 1), 1 for areacast
	Never  int // the age of a player of whom nothing came yet, and the most any age counts; 0: the game's age, without a most
}

// The papers' rules.
var (
	PSenseAge   = AgeRule{Never: 20}
	AreacastAge = AgeRule{Offset: 1}
)

// Log is told what happens, in order.
type Log interface {
	// Delivered says that an update reached the receiver's game.
	Delivered(round int, receiver, origin overlay.ID, originRound int)
	// Traffic says what a player, or a server, sent in a round and got in it, in bytes.
	Traffic(round int, player overlay.ID, out, in int)
}

// MaxPlayers bounds a run, whose memory grows with their square: 4 bytes for each pair.
const MaxPlayers = 10_000

// Validate returns an error if the config is invalid.
func (c *Config) Validate() error {
	switch {
	case c.Rounds < 1:
		return fmt.Errorf("simulate: %d rounds", c.Rounds)
	case c.Movement == nil || c.Machine == nil:
		return fmt.Errorf("simulate: no movement or no machines")
	case c.Movement.Players() > MaxPlayers:
		return fmt.Errorf("simulate: %d players: want at most %d", c.Movement.Players(), MaxPlayers)
	case c.Ranges.Interaction < 0 || c.Ranges.Vision <= c.Ranges.Interaction:
		return fmt.Errorf("simulate: interaction range %v, vision range %v", c.Ranges.Interaction, c.Ranges.Vision)
	}
	for i, s := range c.Servers {
		if s.ID() != overlay.FirstServer+overlay.ID(i) {
			return fmt.Errorf("simulate: server %d has the id %d", i, s.ID())
		}
	}
	return nil
}
