package moderation

import (
	"context"

	"github.com/voxelpopuli/voxeld/gameserver/elsewhere"
	"github.com/voxelpopuli/voxeld/motion"
)

// Gateway is what commands need of a player's session, and of its gateway. Teleport and SetHome are called in the goroutine that handles the
// player's messages.
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

	Background func(task func(context.Context))
}

// wrongUsage is returned for arguments that a command does not have.
const wrongUsage = "?"
