package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Config describes one run.
type Config struct {
	Seed   uint64
	Rounds int // the rounds 1 to Rounds are measured; in round 0 machines only send

	Movement Movement
	Ranges   Ranges

	// Machine creates a player's machine. Players have the ids 0 to Movement.Players()-1.
	Machine func(id overlay.ID, rng *rand.Rand) overlay.Machine
	// Servers are machines without avatars, such as a region's leader. Their ids are consecutive from
	// overlay.FirstServer on. Their traffic is counted separately.
	Servers []overlay.Machine

	// Contacts is the number of random players already in the game that are introduced to a joining player. 0 means 1.
	Contacts int
	// Introduce, if set, chooses the contacts instead of Contacts: from all players in the game, including those who
	// join in the same round. bytes is the size of the introduction; it counts as incoming traffic of the player and
	// outgoing traffic of server 0.
	Introduce func(self overlay.Update, here []overlay.Update) (contacts []overlay.Update, bytes int)

	// Age is the rule for counting an update's age.
	Age AgeRule

	Log Log // nil: none
}

// Ranges are the radii of a player, in blocks.
type Ranges struct{ Interaction, Vision float64 }

// PaperRanges are the ranges of both papers.
var PaperRanges = Ranges{Interaction: 50, Vision: 200}

// AgeRule is how a paper counts PositionAge.
type AgeRule struct {
	Offset int // added to the rounds since the update was sent: 0 for pSense (a direct update is 1), 1 for areacast
	Never  int // the age of a player without any update, and the upper bound of ages; 0: the round of the game, without a bound
}

// The papers' rules.
var (
	PSenseAge   = AgeRule{Never: 20}
	AreacastAge = AgeRule{Offset: 1}
)

// Log receives the events of a run, in order.
type Log interface {
	// Delivered is called when an update reaches the receiver's game.
	Delivered(round int, receiver, origin overlay.ID, originRound int)
	// Traffic is called with the bytes that a player, or a server, sent and received in a round.
	Traffic(round int, player overlay.ID, out, in int)
}

// MaxPlayers bounds a run, whose memory grows with the square of the players: 4 bytes for each pair.
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
