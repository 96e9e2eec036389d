package p2p

import (
	"encoding/binary"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// round is the length of a round. Rounds are counted by the wall clock, so that all gateways count alike.
const round = region.TickEvery

// RoundOf returns the number of the round at a time of the wall clock.
func RoundOf(t time.Time) uint32 { return uint32(t.UnixMilli() / round.Milliseconds()) }

// untilRound returns the time until the next round begins.
func untilRound(t time.Time) time.Duration { return round - time.Duration(t.UnixNano())%round }

// numberOf returns a player's number in the overlay: the same at all gateways. If two players nearby have the same
// number, the second one's movement goes through regions.
func numberOf(id player.ID) overlay.ID {
	return overlay.ID(binary.BigEndian.Uint32(id[:])) &^ overlay.FirstServer
}

// UpdateOf returns the update of a player's avatar in a round.
func UpdateOf(id player.ID, pose motion.Pose, round uint32) overlay.Update {
	return overlay.Update{Origin: numberOf(id), Round: round, At: overlay.Point{X: pose.X, Z: pose.Z}, GameData: bodyOf(pose)}
}

// bodyOf and poseOf pack the parts of a pose that the overlay does not handle: height in 1/32 blocks, yaw and pitch as
// in tick frames.
func bodyOf(p motion.Pose) uint64 {
	at := sessionmsg.PlaceOf(p.Chunk(), p)
	return 1 | uint64(at.Yaw)<<1 | uint64(uint8(at.Pitch))<<9 | uint64(at.Y)<<17
}

func poseOf(u overlay.Update) motion.Pose {
	yaw, pitch, y := uint8(u.GameData>>1), int8(uint8(u.GameData>>9)), uint16(u.GameData>>17)
	p := sessionmsg.Place{Y: y, Yaw: yaw, Pitch: pitch}.Pose(grid.ChunkPos{})
	p.X, p.Z = u.At.X, u.At.Z
	return p
}
