package luanti

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file makes edits of what the client digs and places. The reader runs it.

// What a client does with its pointer.
const (
	interactDug    = 2
	interactPlaced = 3
	pointedNode    = 1
)

// readInteract returns the first edit that the client has made. Mostly it shows it already. The others are the next.
func (cl *Client) readInteract(f *fields, now time.Time) (sessionmsg.FromClient, error) {
	action, slot := f.u8(), int(f.u16())
	f.u32() // the length of what is pointed at
	version, kind := f.u8(), f.u8()
	under, above := cl.mu.origin.pos(f.node()), cl.mu.origin.pos(f.node())
	pose := cl.mu.origin.pose(readPlace(f))
	if f.short || version != 0 || kind != pointedNode || action != interactDug && action != interactPlaced || !cl.looks.AllowN(now, 1) {
		return nil, nil
	}
	var changes []games.Change
	blocks := cl.mu.edits.Predict(cl.mu.lands.blocks())
	switch action {
	case interactDug:
		changes = blocks.Break(under)
	case interactPlaced:
		click := games.Click{At: under, Normal: [3]int32{above.X - under.X, above.Y - under.Y, above.Z - under.Z}, Yaw: float64(pose.Yaw)}
		click.Height = pointsAt(pose, under, click.Normal)
		if slot < len(cl.mu.slots) {
			click.Block = cl.mu.slots[slot]
		}
		changes = blocks.Click(click)
	}
	if cl.mu.player.Unconfirmed() { // they were made from another place
		for _, c := range changes {
			b, _ := blocks(c.Pos)
			if err := cl.putBack(c.Pos, b); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	return cl.mu.edits.AddAll(changes, now)
}

// pointsAt returns how high above the bottom of a block a player points at the side with a normal.
func pointsAt(p motion.Pose, at grid.Pos, normal [3]int32) float64 {
	away := float64(at.X) + middle + middle*float64(normal[0]) - p.X
	ahead := -math.Sin(float64(p.Yaw))
	if normal[2] != 0 {
		away = float64(at.Z) + middle + middle*float64(normal[2]) - p.Z
		ahead = math.Cos(float64(p.Yaw))
	}
	return p.Y + eyeHeight + math.Tan(float64(p.Pitch))*away/ahead - float64(at.Y)
}
