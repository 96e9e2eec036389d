package sessionmsg

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// AvatarDecoder is a client's model of the avatars in view, built from tick frames as docs/protocol.md requires. It
// belongs to one goroutine. The zero value is an empty view.
type AvatarDecoder struct {
	tick    uint64 // the newest
	started bool
	places  []uint32 // by the avatars' indices, which gateways keep small: one more than where each is in avatars, or 0
	avatars []decodedAvatar
	to      TickReader // receives the pieces during Read
}

// decodedAvatar is an avatar as of the latest frames.
type decodedAvatar struct {
	index  uint32
	player player.ID
	at     grid.ChunkPos // the one that it entered last
	Prediction
}

// Read applies a frame and passes its pieces to a reader, which may be nil.
func (d *AvatarDecoder) Read(frame []byte, to TickReader) error {
	d.to = to
	return ReadTick(frame, d)
}

// Now returns the newest tick of any frame, extended beyond its 16 bits.
func (d *AvatarDecoder) Now() uint64 { return d.tick }

// Tick sets the current tick; for ReadTick.
func (d *AvatarDecoder) Tick(low uint16) {
	if !d.started {
		d.tick, d.started = uint64(low), true
	}
	d.tick += uint64(low - uint16(d.tick)) // ticks come in order
	if d.to != nil {
		d.to.Tick(low)
	}
}

// Delta applies the changes of a chunk; for ReadTick.
func (d *AvatarDecoder) Delta(n *TickDelta) {
	for _, a := range n.Enter {
		d.enter(decodedAvatar{index: a.Index, player: a.Player, at: n.Chunk, Prediction: PredictionOf(a.Place, d.tick)})
	}
	if d.to != nil {
		d.to.Delta(n)
	}
	for _, index := range n.Leave {
		if a := d.avatar(index); a != nil && a.at == n.Chunk {
			d.leave(index)
		}
	}
}

// avatar returns the avatar with an index; nil if it is not in view.
func (d *AvatarDecoder) avatar(index uint32) *decodedAvatar {
	if int(index) >= len(d.places) || d.places[index] == 0 {
		return nil
	}
	return &d.avatars[d.places[index]-1]
}

func (d *AvatarDecoder) enter(a decodedAvatar) {
	if old := d.avatar(a.index); old != nil {
		*old = a
		return
	}
	if missing := int(a.index) + 1 - len(d.places); missing > 0 {
		d.places = append(d.places, make([]uint32, missing)...)
	}
	d.avatars = append(d.avatars, a)
	d.places[a.index] = uint32(len(d.avatars)) //nolint:gosec // at most MaxAvatarIndex+1
}

// leave removes an avatar. The last one gets its place.
func (d *AvatarDecoder) leave(index uint32) {
	end := len(d.avatars) - 1
	last := d.avatars[end]
	*d.avatar(index) = last
	d.places[last.index], d.places[index] = d.places[index], 0
	d.avatars = d.avatars[:end]
}

// Motion applies an avatar's motion, and ignores it in any other chunk than the avatar's: motion from before the avatar
// entered may come after that. For ReadTick.
func (d *AvatarDecoder) Motion(at grid.ChunkPos, m *Motion) {
	if a := d.avatar(m.Index); a != nil && a.at == at {
		a.Apply(m, d.tick)
	}
	if d.to != nil {
		d.to.Motion(at, m)
	}
}

// Gone removes the avatars of a chunk that has left the view.
func (d *AvatarDecoder) Gone(at grid.ChunkPos) {
	for i := len(d.avatars) - 1; i >= 0; i-- {
		if a := &d.avatars[i]; a.at == at {
			d.leave(a.index)
		}
	}
}

// Player returns the player with the index.
func (d *AvatarDecoder) Player(index uint32) (id player.ID, known bool) {
	if a := d.avatar(index); a != nil {
		return a.player, true
	}
	return id, false
}

// Each calls visit with every avatar and its extrapolated pose, the given number of ticks after the newest frame, in no
// particular order.
func (d *AvatarDecoder) Each(after float64, visit func(index uint32, id player.ID, pose motion.Pose)) {
	for i := range d.avatars {
		a := &d.avatars[i]
		visit(a.index, a.player, a.Pose(a.at, d.tick, after))
	}
}
