package gameserver

import (
	"fmt"
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// move applies a move if the rules allow it, else corrects the client.
func (s *session) move(pose motion.Pose) error {
	if !s.limits.move.Allow() {
		return &wire.Error{Code: wire.FailRate, Message: fmt.Sprintf("send at most %d moves a second", movesPerSecond)}
	}
	if !s.walk.arrived(pose) {
		if s.walk.reminds(s.g.now()) {
			s.out.Send(sessionmsg.Correction{Pose: *s.walk.teleport, Reason: teleported})
		}
		return nil
	}
	last := s.place.pose()
	if s.bringInside(last) {
		return nil
	}
	before := *s.motion
	ok, reason := s.motion.Check(s.g.now(), pose.X, pose.Y, pose.Z, pose.Yaw, pose.Pitch)
	switch {
	case !ok:
	case s.land().Blocked(last, pose):
		ok, reason = false, insideBlock
		*s.motion = before // a refused move costs nothing
	case s.permissions.Keeps(last.Block(), pose.Block()):
		ok, reason = false, wire.RefusedClaimed
		*s.motion = before
	}
	if ok && !s.permissions.MayGo(last, pose) {
		ok, reason = false, wire.RefusedOutsideBorder
		*s.motion = before
	}
	if !ok {
		s.g.metrics.corrections.WithLabelValues(reason).Inc()
		s.out.Send(sessionmsg.Correction{Pose: last, Reason: reason})
		s.bodySub.EndPrediction(s.body.Player, s)
		return nil
	}
	s.goTo(last, pose)
	return nil
}

// goTo moves the player from one pose to the next.
func (s *session) goTo(last, pose motion.Pose) {
	was := last.Chunk()
	if !s.place.moveTo(pose) {
		return // the player goes on from here at another gateway
	}
	at := pose.Chunk()
	if !s.bodySub.Covers(at) {
		s.bodySub.Leave(s.body.Player, s)
		body := s.body
		body.Pose, body.Said = pose, s.clock.Done()
		body.Gateway = s.g.p2p.GatewayID()
		s.bodySub = s.g.mirror.Enter(body, s)
		s.bodySubShared.Store(s.bodySub)
	} else if at != was || !s.g.p2p.Carries(avatar{s}) {
		if s.bodySub.Move(s.body.Player, pose, s, at == was && s.alone.Load()) {
			s.flush(s.bodySub)
		}
	}
	if at != was {
		s.updateView()
	}
	s.walk.predictBorder(last, pose)
}

// teleported is the reason of a correction by which a player is brought elsewhere.
const teleported = "teleported"

// A client that was brought elsewhere has arrived once it says that it is within arrivedWithin blocks of there. It has
// sent the moves before that one without knowing of the teleport: they are ignored, and the client is told again every
// remindEvery.
const (
	arrivedWithin = 5 // a slow page moves by four in one frame
	remindEvery   = 2 * time.Second
)

// teleport brings a session's player to a place in the world, and leaves them their angles.
func (s *session) teleport(to motion.Pose) {
	last := s.place.pose()
	to.Yaw, to.Pitch = last.Yaw, last.Pitch
	to.Y = min(max(to.Y, 0), float64(s.g.World.Height()))
	s.walk.teleport, s.walk.toldTeleport = &to, s.g.now()
	s.motion = player.NewMotion(s.g.rules, s.g.now(), to.X, to.Y, to.Z)
	s.out.Send(sessionmsg.Correction{Pose: to, Reason: teleported})
	s.bodySub.EndPrediction(s.body.Player, s)
	s.goTo(last, to)
}

// bringInside brings a player back who is outside of the border of the world, and reports whether they were: to the
// lowest free place in the column of blocks that is not below them, or to the top of the world if that land is not
// known here.
func (s *session) bringInside(at motion.Pose) bool {
	to, outside := s.permissions.BringInside(at)
	if !outside {
		return false
	}
	feet := to.Block()
	to.X, to.Z = float64(feet.X)+.5, float64(feet.Z)+.5
	known := false
	if sub := s.subs[feet.Chunk()]; sub != nil {
		_, known = sub.Block(grid.Pos{X: feet.X, Z: feet.Z})
	}
	if to.Y = max(math.Floor(at.Y), 0); !known {
		to.Y = float64(s.g.World.Height())
	}
	for land := s.land(); !land.Free([3]float64{to.X, to.Y, to.Z}); to.Y++ { // above the world it is
	}
	s.teleport(to)
	return true
}

// arrived reports whether the client is where the player was last brought, or has been there since. If so, the teleport
// is over.
func (w *walkState) arrived(pose motion.Pose) bool {
	to := w.teleport
	if to != nil && max(math.Abs(pose.X-to.X), math.Abs(pose.Y-to.Y), math.Abs(pose.Z-to.Z)) > arrivedWithin {
		return false
	}
	w.teleport = nil
	return true
}

// reminds reports whether the client is to be told again where the player was brought: it has had the time to arrive.
func (w *walkState) reminds(now time.Duration) bool {
	if now-w.toldTeleport < remindEvery {
		return false
	}
	w.toldTeleport = now
	return true
}

// insideBlock is the reason of a correction: the path leads into solid blocks. Clients receive it (docs/protocol.md):
// never change it.
const insideBlock = "inside_block"
