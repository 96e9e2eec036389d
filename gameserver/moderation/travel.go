package moderation

import (
	"context"
	"strconv"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// travel brings the player to where a command leads. It returns why it does not; empty if it does.
func (s *Permissions) travel(command string, args []string, g Gateway) error {
	to, err := s.destination(command, args, g)
	switch {
	case err != nil:
		return err
	case command != "spawn" && !s.MayGo(g.Pose(), to):
		return policy.ErrOutside
	case command != "spawn" && s.Keeps(g.Pose().Block(), to.Block()):
		return notice.New("members_only_there", "only members may enter the claim there")
	case command == "visit" && s.visited:
		return notice.New("one_visit", "you may visit one place after joining")
	case !s.travels.Allow():
		return notice.New("travels_often", "you travel too often: wait a moment")
	}
	s.visited = s.visited || command == "visit"
	g.Teleport(to)
	return nil
}

// destination returns where a command leads, or why it leads nowhere.
func (s *Permissions) destination(command string, args []string, g Gateway) (to motion.Pose, err error) {
	switch {
	case command == "spawn":
		return g.Spawn(), nil
	case command == "home":
		home, set := g.Home()
		if !set {
			return to, notice.New("no_home", "you have no home yet: /sethome makes the place where you stand your home")
		}
		return home, nil
	case command == "warp" && len(args) == 1:
		var at grid.Pos
		var known bool
		s.enforcer.Read(func(p *policy.State) { at, known = p.Warps().At(args[0]) })
		if !known {
			return to, policy.NoWarp(args[0])
		}
		return poseOn(at), nil
	case command == "tp" && len(args) == 1:
		return findPlayer(args[0], g)
	case (command == "tp" || command == "visit") && len(args) == 3:
		return parsePlace(args)
	}
	return to, policy.ErrUsage
}

// findPlayer returns where a player is, here or on another node. It waits for the answers of other gateways, a second
// at most.
func findPlayer(name string, g Gateway) (motion.Pose, error) {
	if it, here := g.FindPlayer(name); here {
		return it.Pose, nil
	}
	it, err := g.Elsewhere.Find(context.Background(), name)
	if err != nil {
		return motion.Pose{}, err
	}
	return it.Pose, nil
}

// parsePlace returns the middle of the block that three numbers name.
func parsePlace(args []string) (motion.Pose, error) {
	var at [3]int32
	for i, arg := range args {
		v, err := strconv.ParseInt(arg, 10, 32)
		if err != nil {
			return motion.Pose{}, notice.New("not_whole", "\"{text}\" is not a whole number", arg)
		}
		at[i] = int32(v)
	}
	return poseOn(grid.Pos{X: at[0], Y: at[1], Z: at[2]}), nil
}

// poseOn returns the pose of somebody who stands in the middle of a block's floor.
func poseOn(pos grid.Pos) motion.Pose {
	return motion.Pose{X: float64(pos.X) + .5, Y: float64(pos.Y), Z: float64(pos.Z) + .5}
}

// setHome makes the place where the player stands their home, or returns why not.
func (s *Permissions) setHome(g Gateway) error {
	at := g.Pose()
	if err := g.SetHome(at); err != nil {
		return err
	}
	s.notice(notice.New("home_set", "This is your home now: /home brings you back."))
	return nil
}
