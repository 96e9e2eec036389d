package sessionmsg

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// AvatarDecoder is a client's model of the avatars in view, built from tick frames as docs/protocol.md requires. It belongs to
// one goroutine. The zero value is an empty view.
type AvatarDecoder struct {
	tick    uint64 // the newest
	begun   bool
	avatars map[uint32]*decodedAvatar
	to      TickReader // receives the pieces during Read
}

// decodedAvatar is an avatar as of the latest frames.
type decodedAvatar struct {
	player player.ID
	at     grid.ChunkPos
	Prediction
}

// Read applies a frame and passes its pieces to a reader, which may be nil.
func (s *AvatarDecoder) Read(frame []byte, to TickReader) error {
	s.to = to
	return ReadTick(frame, s)
}

// Now returns the newest tick of any frame, extended beyond its 16 bits.
func (s *AvatarDecoder) Now() uint64 { return s.tick }

// Tick sets the current tick; for ReadTick.
func (s *AvatarDecoder) Tick(low uint16) {
	if !s.begun {
		s.tick, s.begun = uint64(low), true
	}
	s.tick += uint64(low - uint16(s.tick)) // ticks come in order
	if s.to != nil {
		s.to.Tick(low)
	}
}

// Delta applies the changes of a chunk; for ReadTick.
func (s *AvatarDecoder) Delta(n *TickDelta) {
	if s.avatars == nil {
		s.avatars = make(map[uint32]*decodedAvatar)
	}
	for _, a := range n.Enter {
		s.avatars[a.Index] = &decodedAvatar{player: a.Player, at: n.Chunk, Prediction: PredictionOf(a.Place, s.tick)}
	}
	if s.to != nil {
		s.to.Delta(n)
	}
	for _, index := range n.Leave {
		if a := s.avatars[index]; a != nil && a.at == n.Chunk {
			delete(s.avatars, index)
		}
	}
}

// Motion applies an avatar's motion; for ReadTick.
func (s *AvatarDecoder) Motion(at grid.ChunkPos, m *Motion) {
	if a := s.avatars[m.Index]; a != nil {
		if at != a.at && !m.HasAcross { // the place stays where it was
			a.X += (a.at.Origin().X - at.Origin().X) * TickVelocityUnit
			a.Z += (a.at.Origin().Z - at.Origin().Z) * TickVelocityUnit
		}
		a.at = at
		a.Apply(m, s.tick)
	}
	if s.to != nil {
		s.to.Motion(at, m)
	}
}

// Gone removes the avatars of a chunk that has left the view.
func (s *AvatarDecoder) Gone(at grid.ChunkPos) {
	for index, a := range s.avatars {
		if a.at == at {
			delete(s.avatars, index)
		}
	}
}

// Player returns the player with the index.
func (s *AvatarDecoder) Player(index uint32) (id player.ID, known bool) {
	if a := s.avatars[index]; a != nil {
		return a.player, true
	}
	return id, false
}

// Each calls see with every avatar and its extrapolated pose, the given number of ticks after the newest frame, in no
// particular order.
func (s *AvatarDecoder) Each(after float64, see func(id player.ID, pose motion.Pose)) {
	for _, a := range s.avatars {
		see(a.player, a.Pose(a.at, s.tick, after))
	}
}
