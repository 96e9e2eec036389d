package codec

import (
	"encoding/json"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// entered is the last avatar that entered in a frame.
type entered struct{ sessionmsg.TickAvatar }

func (*entered) Tick(uint16) {}

func (*entered) Motion(grid.ChunkPos, *sessionmsg.Motion) {}

func (e *entered) Delta(n *sessionmsg.TickDelta) { e.TickAvatar = n.Enter[0] }

// Clients are sent the parts of an avatar that they understand, and no others.
func TestLooks(t *testing.T) {
	ann := sessionmsg.TickAvatar{
		Player: player.GuestID("ann"), Name: "ann", Skin: 0x03fa10cd, Stance: nodemsg.Stance{Held: chunk.Stone, Sneaks: true},
	}
	d := &mirror.Delta{ForTick: &sessionmsg.TickDelta{Enter: []sessionmsg.TickAvatar{ann}}}
	for _, looks := range []Looks{{}, {Skins: true}, {Stances: true}, {Skins: true, Stances: true}} {
		want := ann
		if !looks.Skins {
			want.Skin = 0
		}
		if !looks.Stances {
			want.Stance = nodemsg.Stance{}
		}
		c := Of(sessionmsg.EncodingCBOR, looks)
		var got entered
		if err := sessionmsg.ReadTick(c.AppendFrame(nil, Frame{Pieces: []json.RawMessage{c.Delta(d)}}), &got); err != nil || got.TickAvatar != want {
			t.Errorf("to a client that understands %+v ann is %+v, %v", looks, got.TickAvatar, err)
		}
	}
}
