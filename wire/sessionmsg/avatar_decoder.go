package sessionmsg

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// AvatarDecoder is a client's model of the avatars in view, built from tick frames as docs/protocol.md requires. It belongs to
// one goroutine. The zero value is an empty view.
type AvatarDecoder struct {
	tick   uint64 // the newest
	begun  bool
	actors map[uint32]*decodedAvatar
	to     TickReader // receives the pieces during Read
}

// decodedAvatar is an avatar as of the latest frames. Its X and Z are those at tick since, its height that at tick tall.
type decodedAvatar struct {
	player       player.ID
	at           grid.ChunkPos
	x, y, z      float64
	paceX, paceZ float64 // blocks a tick
	climb        float64 // blocks a tick
	yaw          uint8
	pitch        int8
	since, tall  uint64
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
	if s.actors == nil {
		s.actors = make(map[uint32]*decodedAvatar)
	}
	for _, a := range n.Enter {
		p := a.Pose(n.Chunk)
		s.actors[a.Index] = &decodedAvatar{
			player: a.Player, at: n.Chunk, x: p.X, y: p.Y, z: p.Z, yaw: a.Yaw, pitch: a.Pitch, since: s.tick, tall: s.tick,
		}
	}
	if s.to != nil {
		s.to.Delta(n)
	}
	for _, index := range n.Leave {
		if a := s.actors[index]; a != nil && a.at == n.Chunk {
			delete(s.actors, index)
		}
	}
}

// Motion applies an avatar's motion; for ReadTick.
func (s *AvatarDecoder) Motion(at grid.ChunkPos, m *Motion) {
	if a := s.actors[m.Index]; a != nil {
		a.at = at
		p := m.Pose(at)
		if m.HasAcross {
			a.x, a.z, a.since = p.X, p.Z, s.tick
		}
		if m.HasHeight {
			a.y, a.climb, a.tall = p.Y, float64(m.Climb)/ClimbUnit, s.tick
		}
		if m.HasVelocity {
			a.paceX, a.paceZ = float64(m.VelocityX)/TickVelocityUnit, float64(m.VelocityZ)/TickVelocityUnit
		}
		if m.HasFacing {
			a.yaw, a.pitch = m.Yaw, m.Pitch
		}
	}
	if s.to != nil {
		s.to.Motion(at, m)
	}
}

// Gone removes the avatars of a chunk that has left the view.
func (s *AvatarDecoder) Gone(at grid.ChunkPos) {
	for index, a := range s.actors {
		if a.at == at {
			delete(s.actors, index)
		}
	}
}

// Player returns the player with the index.
func (s *AvatarDecoder) Player(index uint32) (id player.ID, known bool) {
	if a := s.actors[index]; a != nil {
		return a.player, true
	}
	return id, false
}

// Each calls see with every avatar and its extrapolated pose, the given number of ticks after the newest frame, in no
// particular order.
func (s *AvatarDecoder) Each(after float64, see func(id player.ID, pose motion.Pose)) {
	for _, a := range s.actors {
		gone, risen := min(float64(s.tick-a.since)+after, TickExtrapolation), min(float64(s.tick-a.tall)+after, TickExtrapolation)
		facing := Place{Yaw: a.yaw, Pitch: a.pitch}.Pose(a.at)
		see(a.player, motion.Pose{
			X: a.x + a.paceX*gone, Y: a.y + a.climb*risen, Z: a.z + a.paceZ*gone, Yaw: facing.Yaw, Pitch: facing.Pitch,
		})
	}
}
