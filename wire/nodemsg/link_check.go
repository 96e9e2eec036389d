package nodemsg

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// Valid returns an error if the hello is invalid.
func (h Hello) Valid() error {
	return firstError(checkRegionID(h.Region), checkCell(h.Cell))
}

// Valid returns an error if the message is invalid: its lists must be bounded and their elements valid.
func (m ToRegion) Valid() error {
	return firstError(
		checkList(m.Unwatch, wire.MaxWatch, checkChunk),
		checkList(m.Watch, wire.MaxWatch, checkChunk),
		checkList(m.Enter, wire.MaxBodies, Body.Valid),
		checkList(m.Moves, wire.MaxBodies, BodyMove.Valid),
		checkList(m.Leave, wire.MaxBodies, anyID),
		checkBulkEdits(m.Edits),
		checkList(m.Edits, wire.MaxBodies, Intent.Valid),
		checkList(m.Chat, wire.MaxBodies, ChatEvent.Valid),
	)
}

// maxBulkEdits bounds the bulk edits of a message: each is thousands of blocks to check. A gateway has 64 under way.
const maxBulkEdits = 128

func checkBulkEdits(edits []Intent) error {
	n := 0
	for i := range edits {
		if edits[i].Bulk != "" {
			n++
		}
	}
	if n > maxBulkEdits {
		return wire.Refuse(wire.FailTooLong, "%d bulk edits; at most %d are allowed", n, maxBulkEdits)
	}
	return nil
}

// Valid returns an error if the message is invalid: its lists must be bounded and their elements valid.
func (m FromRegion) Valid() error {
	if m.Parent != nil {
		if err := m.Parent.checkStructure(); err != nil {
			return err
		}
	}
	return firstError(
		checkList(m.Chunks, wire.MaxWatch, ChunkDelta.Valid),
		checkList(m.Results, wire.MaxBodies, EditResult.Valid),
		wire.CheckText(m.Closed),
		checkKnownPeer(m.Leader),
	)
}

// Valid returns an error if the delta is invalid.
func (n ChunkDelta) Valid() error {
	if len(n.Base) != 0 && len(n.Base) != 32 {
		return wire.Refuse(wire.FailBadValue, "a base hash of %d bytes", len(n.Base))
	}
	if n.State != nil {
		if err := n.State.Valid(); err != nil {
			return err
		}
	}
	return firstError(
		checkChunk(n.Chunk),
		checkList(n.Enter, wire.MaxBodies, Body.Valid),
		checkList(n.Leave, wire.MaxBodies, anyID),
		checkList(n.Moves, wire.MaxBodies, BodyMove.Valid),
		checkList(n.Blocks, wire.MaxBlocks, BlockAt.Valid),
		checkList(n.Chat, wire.MaxBodies, ChatEvent.Valid),
		checkList(n.Signs, wire.MaxSigns, SignAt.Valid),
	)
}

// Valid returns an error if the state is invalid. Base must be empty or a SHA-256.
func (s ChunkState) Valid() error {
	if len(s.Base) != 0 && len(s.Base) != 32 {
		return wire.Refuse(wire.FailBadValue, "a base hash of %d bytes", len(s.Base))
	}
	return firstError(
		checkList(s.Edits, wire.MaxBlocks, BlockAt.Valid),
		checkList(s.Bodies, wire.MaxBodies, Body.Valid),
		checkList(s.Signs, wire.MaxSigns, SignAt.Valid),
	)
}

// Valid returns an error if the body is invalid.
func (b Body) Valid() error {
	if err := checkPlayer(b.Player, b.Name, b.Guest); err != nil {
		return err
	}
	if err := checkKnownPeer(b.Gateway); err != nil {
		return err
	}
	return wire.CheckPose(b.Pose)
}

// Valid returns an error if the move is invalid.
func (m BodyMove) Valid() error { return wire.CheckPose(m.Pose) }

// Valid returns an error if the position is invalid. The block id may belong to a later version.
func (b BlockAt) Valid() error {
	if b.At >= wire.ColumnBlocks {
		return wire.Refuse(wire.FailBadValue, "block %d of a column of at most %d blocks", b.At, wire.ColumnBlocks)
	}
	return nil
}

// Valid returns an error if the position, or the text, is invalid.
func (s SignAt) Valid() error {
	return firstError(BlockAt{At: s.At}.Valid(), wire.CheckSignSize(s.Text))
}

// Valid returns an error if the intent is invalid. The region checks the world's own height.
func (i Intent) Valid() error {
	if i.Pos.Y < 0 || i.Pos.Y >= wire.MaxSections*grid.ChunkSize {
		return wire.Refuse(wire.FailBadValue, "an edit at height %d", i.Pos.Y)
	}
	if i.Bulk != "" && (i.Pos != i.Pos.Chunk().Origin() || i.Block != 0 || i.Text != "") {
		return wire.Refuse(wire.FailBadValue, "a bulk edit with a block of its own")
	}
	return firstError(wire.CheckSignSize(i.Text), i.Bulk.Valid(), i.Proof.valid())
}

// valid returns an error unless the proof is empty, a guest's or that of a key.
func (p *Proof) valid() error {
	if p.Name == "" {
		return nil
	}
	if p.Key != [len(p.Key)]byte{} {
		return wire.Refuse(wire.FailBadValue, "an edit of a guest with a key")
	}
	if err := player.CheckName(p.Name); err != nil {
		return wire.Refuse(wire.FailBadName, "%v", err)
	}
	return nil
}

// Valid returns an error if the result is invalid.
func (r EditResult) Valid() error { return wire.CheckText(r.Refused) }

// Valid returns an error if the chat line is invalid.
func (u ChatEvent) Valid() error {
	if err := player.CheckName(u.Name); err != nil {
		return wire.Refuse(wire.FailBadName, "%v", err)
	}
	if _, ok := u.Clock(); !ok && len(u.Stamp) > 0 {
		return wire.Refuse(wire.FailBadValue, "the chat line's clock is too long or not its author's")
	}
	if u.Interaction != nil {
		if err := u.Interaction.Valid(); err != nil {
			return err
		}
	}
	return firstError(checkChunk(u.Chunk), wire.CheckChat(u.Text))
}

func anyID(player.ID) error { return nil }
