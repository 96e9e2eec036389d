package mod

import (
	"crypto/sha256"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// Kind is a kind of event.
type Kind string

// The kinds of events.
const (
	Use   Kind = "use"   // a player has used a block
	Place Kind = "place" // a player has put a block
	Break Kind = "break" // a player has taken a block away
	Timer Kind = "timer" // a time has come that the mod has set
)

// Kinds are all kinds of events. They are stored by their places here: new ones are appended.
var Kinds = []Kind{Use, Place, Break, Timer}

// Known reports whether there is such a kind.
func (k Kind) Known() bool { return slices.Contains(Kinds, k) }

// Event is something that a mod is to handle. The region where it happened keeps it until it is answered.
type Event struct {
	Mod    string // its name
	Kind   Kind
	Time   int64 // when it happened; of a timer when it is due; Unix milliseconds
	Pos    grid.Pos
	Block  chunk.Block // that was used, put or taken away; of a timer air
	Player player.ID   // who did it; of a timer who did what it was set for
	Data   string      // what the mod has given a timer
}

// Bounds of what a mod returns for one event.
const (
	MaxAnswer   = 64 << 10 // bytes of JSON
	MaxEffects  = 256
	MaxMessages = 16
	MaxMessage  = 256 // bytes
	MaxData     = 256 // bytes that a timer is given
	// MaxDelay is how far ahead a timer may be set, in milliseconds: a year.
	MaxDelay = 366 * 24 * 3600 * 1000
)

// Bounds of what a region keeps for a mod.
const (
	// MaxEvents is the most events, without timers, that wait for a mod: it is suspended there if there are more.
	MaxEvents = 1024
	MaxTimers = 4096
)

const (
	// MaxMods is the most mods that are granted something.
	MaxMods = 32
	// MaxKnownMods is the most mods of which something is known: those that were removed, too.
	MaxKnownMods = 256
)

// Effect is one thing that a mod does about an event. Exactly one field is set.
type Effect struct {
	Set     *Set
	Timer   *SetTimer
	Message *Message
}

// Set changes a block. If something else than From is there, none of the event's effects takes place.
type Set struct {
	Pos      grid.Pos
	From, To chunk.Block
}

// SetTimer sets the timer of a block, of which a mod has one for each: it replaces one that is set.
type SetTimer struct {
	Pos   grid.Pos
	After int64 // milliseconds from when the effect takes place; 0: none is set
	Data  string
}

// Message is a line that a player reads.
type Message struct {
	Player player.ID
	Text   string
}

// Author returns the id under which the changes of a mod are recorded.
func Author(name string) player.ID {
	sum := sha256.Sum256([]byte("mod\x00" + name))
	return player.ID(sum[:len(player.ID{})])
}

// Place returns the block that an effect changes, or whose timer it sets. It reports false if that is none.
func (e Effect) Place() (grid.Pos, bool) {
	switch {
	case e.Set != nil:
		return e.Set.Pos, true
	case e.Timer != nil:
		return e.Timer.Pos, true
	}
	return grid.Pos{}, false
}
