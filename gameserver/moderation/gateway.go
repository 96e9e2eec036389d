package moderation

import (
	"context"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/elsewhere"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Terrain generates the untouched land; a *terrain.Generator. Any goroutine.
type Terrain interface {
	ChunkIn(room *terrain.Room, pos grid.ChunkPos) *chunk.Chunk
}

// Gateway is what commands need of a player's session, and of its gateway. Teleport and SetHome are called in the
// goroutine that handles the player's messages.
type Gateway struct {
	elsewhere.Here
	Elsewhere *elsewhere.Players
	History   History
	Terrain   Terrain

	Pose      func() motion.Pose // of the player
	Spawn     func() motion.Pose // where new players start
	Home      func() (home motion.Pose, set bool)
	SetHome   func(motion.Pose) error
	Teleport  func(motion.Pose)
	TimeOfDay func() float64 // in minutes since midnight

	// Say shows a line to those near the player, and SayToWorld to all players; they return why they do not, and an error
	// that ends the session. They are called in the goroutine that handles the player's messages.
	Say, SayToWorld func(text string) (why, err error)

	Background func(task func(context.Context))
	// Charge counts a command of a kind against the player's address, which may give so many a day, and reports whether
	// it may. Any goroutine.
	Charge func(kind policy.Kind, daily int) bool
}

// sentence returns an error as players are shown it.
func sentence(err error) notice.Notice { return wire.NoticeOf(err).Sentence() }
