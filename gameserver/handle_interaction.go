package gameserver

import (
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/checks"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file implements interactions between players: hits and gifts. The gateway of the acting player checks them
// against the other player's place as known here. From then on they travel as chat does, and are shown in causal order
// with it.

// interactionLeeway is added to the reach for blocks, in blocks: the other player moves, and their place arrives late.
const interactionLeeway = 1

func (s *session) handleHit(m sessionmsg.Hit) {
	s.interact(m.Player, nodemsg.Interaction{Kind: nodemsg.InteractionHit}, s.limits.hit)
}

func (s *session) handleGift(m sessionmsg.Gift) {
	s.interact(m.Player, nodemsg.Interaction{Kind: nodemsg.InteractionGift, Block: chunk.Block(m.Block), Count: m.Count}, s.limits.gift)
}

// interact does something to another player, or sends the reason why it was refused.
func (s *session) interact(to string, d nodemsg.Interaction, limit *rate.Limiter) {
	denied := s.checkInteraction(to, &d, limit)
	if denied == "" && !s.sendEvent(d.ChatText(), &d) {
		denied = sessionmsg.DeniedUnavailable
	}
	if denied != "" {
		s.g.metrics.denials.WithLabelValues(denied).Inc()
		s.out.Send(sessionmsg.Denied{Interaction: d.Kind.String(), Player: to, Error: denied})
	}
}

// sendEvent sends an event of the player to everybody who sees them, after all that was shown to them. It reports false
// if that is not possible now.
func (s *session) sendEvent(text string, interaction *nodemsg.Interaction) bool {
	if !s.place.setEvents(s.clock.Done() + 1) {
		return false
	}
	stamp, err := s.clock.NextStamp(s.g.now(), s.hasInView).Append(nil)
	if err != nil {
		panic(err) // no Owner's clock is too large
	}
	return s.bodySub.SendChat(nodemsg.ChatEvent{
		Player: s.body.Player, Name: s.body.Name, Chunk: s.place.pose().Chunk(), Text: text, Wall: s.g.wall().UnixMilli(), Stamp: stamp,
		Interaction: interaction,
	})
}

// hasInView reports whether the player is in a chunk that the session has in view.
func (s *session) hasInView(id vclock.ID) bool {
	_, _, at, there := s.g.interest.find(playerOf(id))
	return there && s.subs[at] != nil
}

// checkInteraction returns why the player may not do it, or sets its target.
func (s *session) checkInteraction(to string, d *nodemsg.Interaction, limit *rate.Limiter) (denied string) {
	id, err := player.ParseID(to)
	switch {
	case !limit.Allow():
		return sessionmsg.DeniedRate
	case err != nil:
		return sessionmsg.DeniedUnknownPlayer
	case id == s.body.Player:
		return sessionmsg.DeniedSelf
	case d.Kind == nodemsg.InteractionGift && !d.Block.Known():
		return sessionmsg.DeniedUnknownBlock
	case d.Kind == nodemsg.InteractionGift && (d.Block == chunk.Air || !d.Block.Placeable()):
		return sessionmsg.DeniedNotPlaceable
	}
	name, pose, at, there := s.g.interest.find(id)
	eyePose := s.place.pose()
	eyePose.Y += player.EyeHeight
	switch {
	case !there || s.subs[at] == nil:
		return sessionmsg.DeniedUnknownPlayer
	case checks.DistanceToBody(eyePose, pose) > s.g.rules.Reach+interactionLeeway:
		return sessionmsg.DeniedOutOfReach
	case !s.land().Visible(eyePose, pose):
		return sessionmsg.DeniedBehindBlock
	}
	d.To, d.ToName = id, name
	return ""
}
