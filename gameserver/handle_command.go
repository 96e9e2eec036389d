package gameserver

import (
	"context"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/moderation"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// handleCommand carries out a command of the player.
func (s *session) handleCommand(m sessionmsg.Command) error {
	g := s.g
	if !s.limits.command.Allow() {
		return s.permissions.TooFast()
	}
	return s.permissions.Command(m, moderation.Gateway{
		Here: here{g}, Elsewhere: g.Elsewhere, History: g.History, Terrain: g.Terrain, Pose: s.place.pose, Spawn: g.spawnPose, Home: s.place.home, TimeOfDay: g.timeOfDay,
		SetHome: s.setHome, Teleport: s.teleport, Say: s.say, SayToWorld: s.sayToWorld,
		Charge: func(kind policy.Kind, daily int) bool {
			return s.limits.client.AllowDaily(map[policy.Kind]admission.Action{
				policy.NewName: admission.NewName, policy.NewClaim: admission.NewClaim, policy.AnyCommand: admission.AnyCommand,
			}[kind], daily)
		},
		Background: func(task func(context.Context)) {
			g.run(func(ctx context.Context) {
				defer g.metrics.panics.Recover("query", func() { s.out.End(failureOf(errPanicked)) }, "player", s.body.Name)
				task(ctx)
			})
		},
	})
}

// errOnTheWay is why the home of a player is not set who is moved to another gateway at the moment.
var errOnTheWay = notice.New("on_the_way", "you are being moved to another node: set your home there")

// setHome changes the player's home.
func (s *session) setHome(home motion.Pose) error {
	if !s.place.setHome(home) {
		return errOnTheWay
	}
	return nil
}
