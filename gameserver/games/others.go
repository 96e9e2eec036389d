package games

import (
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Others are the other players in view of a client. T is what the adapter keeps of each. The client's lock guards them.
type Others[T any] struct {
	self    player.ID
	tick    time.Duration // of the gateway
	decoder sessionmsg.AvatarDecoder
	reader  deltas
	readAt  time.Time // when the newest frame arrived
	all     []*Other[T]
	indexed []*Other[T] // by the index of their avatar; nil for the client's own player, and for nobody
	updates uint64
}

// Other is another player in view.
type Other[T any] struct {
	ID     player.ID
	Name   string
	Stance nodemsg.Stance
	Pose   motion.Pose // as of the last Update
	As     T
	index  uint32 // of their avatar
	seen   uint64 // the Update that saw them last
}

// NewOthers returns an empty view. It calls changed with the changes of a chunk that a frame has, except motion.
func NewOthers[T any](changed func(*sessionmsg.TickDelta)) *Others[T] {
	o := new(Others[T])
	o.reader = func(n *sessionmsg.TickDelta) {
		o.enter(n)
		changed(n)
	}
	return o
}

// deltas reads those of tick frames: the decoder has the motion.
type deltas func(*sessionmsg.TickDelta)

// Tick is that of sessionmsg.TickReader.
func (deltas) Tick(uint16) {}

// Motion is that of sessionmsg.TickReader.
func (deltas) Motion(grid.ChunkPos, *sessionmsg.Motion) {}

// Delta is that of sessionmsg.TickReader.
func (d deltas) Delta(n *sessionmsg.TickDelta) { d(n) }

// Begin takes the client's own player, whom it returns, from the session's welcome.
func (o *Others[T]) Begin(m sessionmsg.Welcome) (self player.ID, err error) {
	if o.self, err = player.ParseID(m.Player); err != nil {
		return o.self, err
	}
	o.tick = time.Duration(m.TickMS) * time.Millisecond
	o.decoder = sessionmsg.AvatarDecoder{}
	clear(o.indexed) // not shorter: those of a session before are in all until the next Update, at which they leave
	return o.self, nil
}

// Read applies a tick frame.
func (o *Others[T]) Read(frame []byte) error {
	o.readAt = time.Now()
	return o.decoder.Read(frame, o.reader)
}

// enter names the players who come into view with the frame that is being read.
func (o *Others[T]) enter(n *sessionmsg.TickDelta) {
	for _, a := range n.Enter {
		if a.Player == o.self {
			continue
		}
		if missing := int(a.Index) + 1 - len(o.indexed); missing > 0 {
			o.indexed = append(o.indexed, make([]*Other[T], missing)...)
		}
		v := o.indexed[a.Index]
		if v == nil || v.ID != a.Player { // then the former one has left
			v = &Other[T]{ID: a.Player, index: a.Index}
			o.indexed[a.Index] = v
			o.all = append(o.all, v)
		}
		v.Name, v.Stance = a.Name, a.Stance
	}
}

// Gone removes the players in a chunk that has left the view, at the next Update.
func (o *Others[T]) Gone(at grid.ChunkPos) { o.decoder.Gone(at) }

// Update moves everybody to where they are now. It calls left with those who are no longer in view.
func (o *Others[T]) Update(now time.Time, left func(*Other[T])) {
	o.updates++
	after := min(float64(now.Sub(o.readAt))/float64(max(o.tick, 1)), sessionmsg.TickExtrapolation)
	o.decoder.Each(max(0, after), func(index uint32, id player.ID, pose motion.Pose) {
		if id != o.self {
			v := o.indexed[index]
			v.Pose, v.seen = pose, o.updates
		}
	})
	o.all = slices.DeleteFunc(o.all, func(v *Other[T]) bool {
		if v.seen == o.updates {
			return false
		}
		left(v)
		if o.indexed[v.index] == v {
			o.indexed[v.index] = nil
		}
		return true
	})
}

// All returns those who were in view at the last Update, in no order. The caller must not change the list.
func (o *Others[T]) All() []*Other[T] { return o.all }
