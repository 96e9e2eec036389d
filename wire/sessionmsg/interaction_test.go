package sessionmsg

import (
	"reflect"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A node that does not know a kind of interaction shows its text.
func TestInteractionMessages(t *testing.T) {
	bob, anID := player.GuestID("bob").String(), player.GuestID("ada")
	event := func(kind nodemsg.InteractionKind, block chunk.Block, count uint8) nodemsg.ChatEvent {
		d := nodemsg.Interaction{Kind: kind, To: player.GuestID("bob"), ToName: "bob", Block: block, Count: count}
		return nodemsg.ChatEvent{Player: anID, Name: "ada", Text: d.ChatText(), Interaction: &d}
	}
	for _, c := range []struct {
		u    nodemsg.ChatEvent
		want FromServer
		text string
	}{
		{event(nodemsg.InteractionHit, 0, 0), Struck{Player: anID.String(), Name: "ada", To: bob, ToName: "bob"}, "hits bob"},
		{
			event(nodemsg.InteractionGift, chunk.Planks, 3),
			Given{Player: anID.String(), Name: "ada", To: bob, ToName: "bob", Block: uint16(chunk.Planks), Count: 3},
			"gives bob 3 × planks",
		},
		{event(9, 0, 0), nil, "hits bob"},
		{nodemsg.ChatEvent{Player: anID, Name: "ada", Text: "hi"}, nil, "hi"},
	} {
		if got, ok := InteractionMessage(&c.u); ok != (c.want != nil) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v is sent as %+v, %v", c.u, got, ok)
		}
		if c.u.Text != c.text || c.u.Valid() != nil {
			t.Errorf("the words are %q, want %q; %v", c.u.Text, c.text, c.u.Valid())
		}
	}
}
