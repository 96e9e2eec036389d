package gameserver

import (
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/chat"
	"github.com/voxelpopuli/voxeld/gameserver/checks"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/moderation"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// session is one player's connection. Its reader owns it, except where a field says otherwise.
type session struct {
	g             *Gateway
	conn          conn
	out           *outbox.Outbox
	body          nodemsg.Body   // never changes, except its stance, which is the reader's; without its pose: see place
	stance        nodemsg.Stance // that the client has sent last; the reader's
	proof         nodemsg.Proof  // of the player, without a signature; never changes
	codec         codec.Codec    // set before its first subscription
	client        clientState
	view          viewDistance
	motion        *player.Motion
	subs          subscriptions
	bodySub       *mirror.Subscription                // of the region that the body is in; nil before it entered
	bodySubShared atomic.Pointer[mirror.Subscription] // the same, for the frame loop
	interestView  interest.View                       // the index's
	alone         atomic.Bool                         // nobody else is in sight; as of the last frame
	limits        actionLimits
	clock         *chat.Clock   // nil before the player is known
	worldClock    *chat.Clock   // likewise, of the world's chat
	readsWorld    bool          // is shown the world's chat; guarded by worldChat
	silenceTimer  *time.Timer   // ends the session of a silent client
	edits         pendingEdits  // any goroutine's
	numbered      uint64        // of the last edit of a guest whose own number was ahead of the clock
	done          chan struct{} // closed when the place is free
	walk          walkState
	mayBeRecalled bool                    // see recall
	toldAlone     bool                    // see nobodyNear
	surveying     atomic.Bool             // a survey is under way
	login         *player.Login           // nil: a guest
	verifier      *player.Verifier        // of the guest's password; nil: none. Set before the player has a place
	permissions   *moderation.Permissions // of the player, once they are admitted
	place         place                   // any goroutine's
	notice        lastNotice              // likewise
}

// setCodec sets the encoding of messages from now on. It is called before the session has a place.
func (s *session) setCodec(c codec.Codec) {
	s.codec = c
	s.out.SetCodec(c)
	s.conn.setCodec(c)
	if stream, ok := s.conn.(*streamConn); ok && c.HasTickFrames() && stream.detached() != nil {
		s.out.Direct = stream
	}
}

// presence returns what is saved of the player.
func (s *session) presence() players.Presence {
	pose, home, events := s.place.saved()
	return players.Presence{Player: s.body.Player, Name: s.body.Name, Guest: s.body.Guest, Pose: pose, Home: home, Done: events, Login: s.login, Verifier: s.verifier}
}

// land returns the land around the player, as they are to find it. It belongs to the session's reader. Mostly the land is in the body's
// subscription, which many sessions share: at each move that is in the processor's caches, and the session's own map is not.
func (s *session) land() checks.Land {
	return func(low, high grid.Pos) []checks.Obstacle {
		found := s.walk.obstacles[:0]
		low.Y, high.Y = max(low.Y, 0), min(high.Y, s.g.World.Height()-1)
		if low.Y > high.Y {
			return nil
		}
		first, last := low.Chunk(), high.Chunk()
		for x := first.X; x <= last.X; x++ {
			for z := first.Z; z <= last.Z; z++ {
				at, sub := grid.ChunkPos{X: x, Z: z}, s.bodySub
				if sub == nil || !sub.Covers(at) {
					sub = s.subs[at]
				}
				if sub != nil {
					sub.VisitSolid(at, low, high, s.body.Player, func(pos grid.Pos, b chunk.Block) {
						found = append(found, checks.Obstacle{At: pos, Boxes: b.Boxes()})
					})
				}
			}
		}
		s.walk.obstacles = found
		return found
	}
}

// subscriptions are a session's, by chunk in view.
type subscriptions map[grid.ChunkPos]*mirror.Subscription

// occupied reports whether a body reaches into what the block would fill. The player's own body is at pose, not where the
// region saw it last: otherwise they could not jump and place a block beneath themselves.
func (in subscriptions) occupied(pos grid.Pos, block chunk.Block, pose motion.Pose, by player.ID) bool {
	if checks.BodyReaches(pose, pos, block) {
		return true
	}
	for _, at := range checks.ChunksAround(pos) {
		if sub := in[at]; sub != nil && checks.Occupied(sub, at, pos, block, by) {
			return true
		}
	}
	return false
}

// avatar is the p2p.Avatar of a session.
type avatar struct{ s *session }

// Player returns the session's player.
func (a avatar) Player() player.ID { return a.s.body.Player }

// Pose returns where the player is, and reports whether they are in a region.
func (a avatar) Pose() (pose motion.Pose, inRegion bool) {
	inRegion = a.s.place.taken() && a.s.bodySubShared.Load() != nil
	return a.s.place.pose(), inRegion
}

// UpdateRegion sends the player's pose to their region.
func (a avatar) UpdateRegion() {
	s := a.s
	if home := s.bodySubShared.Load(); home.Move(s.body.Player, s.place.pose(), s, false) {
		home.Wake()
	}
}
