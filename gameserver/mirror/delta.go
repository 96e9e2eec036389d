package mirror

import (
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Delta is what has changed in a chunk. It is valid during SendDelta.
type Delta struct {
	nodemsg.ChunkDelta
	Tick    uint64
	ForTick *sessionmsg.TickDelta // for subscribers that get moves from the frame loop; nil for nothing
	Change  interest.Change       // who has entered, left and moved
	Of      *Chunk

	// Of Chat, which then is all there is.
	Interaction sessionmsg.FromServer // nil for chat
	Stamp       vclock.Stamp          // without an author if the event has none

	forms forms
}

// Form returns the delta as a codec has encoded it, and encodes it first if necessary: once for all subscribers. The codec is any
// value that is comparable and unique to the encoding.
func (d *Delta) Form(codec any, encode func() any) any { return d.forms.get(codec, encode) }

// empty reports whether there is nothing to send.
func (d *Delta) empty() bool {
	return len(d.Enter)+len(d.Leave)+len(d.Moves)+len(d.Blocks)+len(d.Chat) == 0
}
