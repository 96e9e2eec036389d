package wire

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// Valid returns an error if the hello is invalid.
func (h Hello) Valid() error {
	if h.Region == 0 {
		return Refuse(FailBadValue, "the region id must not be 0")
	}
	return checkCell(h.Cell)
}

// Valid returns an error if the message is invalid: its lists must be bounded and their elements valid.
func (m ToRegion) Valid() error {
	return firstError(
		checkList(m.Unwatch, MaxWatch, checkChunk),
		checkList(m.Watch, MaxWatch, checkChunk),
		checkList(m.Enter, MaxBodies, Body.Valid),
		checkList(m.Moves, MaxBodies, BodyMove.Valid),
		checkList(m.Leave, MaxBodies, anyID),
		checkList(m.Edits, MaxBodies, Intent.Valid),
		checkList(m.Chat, MaxBodies, ChatEvent.Valid),
	)
}

// Valid returns an error if the message is invalid: its lists must be bounded and their elements valid.
func (m FromRegion) Valid() error {
	return firstError(
		checkList(m.Chunks, MaxWatch, ChunkDelta.Valid),
		checkList(m.Results, MaxBodies, EditResult.Valid),
		checkText(m.Closed),
		checkKnownPeer(m.Leader),
	)
}

// checkKnownPeer returns an error unless id is empty or a peer id.
func checkKnownPeer(id string) error {
	if id == "" {
		return nil
	}
	return checkPeer(id)
}

// Valid returns an error if the delta is invalid.
func (n ChunkDelta) Valid() error {
	if len(n.Base) != 0 && len(n.Base) != 32 {
		return Refuse(FailBadValue, "a base hash of %d bytes", len(n.Base))
	}
	if n.State != nil {
		if err := n.State.Valid(); err != nil {
			return err
		}
	}
	return firstError(
		checkChunk(n.Chunk),
		checkList(n.Enter, MaxBodies, Body.Valid),
		checkList(n.Leave, MaxBodies, anyID),
		checkList(n.Moves, MaxBodies, BodyMove.Valid),
		checkList(n.Blocks, MaxBlocks, BlockAt.Valid),
		checkList(n.Chat, MaxBodies, ChatEvent.Valid),
	)
}

// Valid returns an error if the state is invalid. Base must be empty or a SHA-256.
func (s ChunkState) Valid() error {
	if len(s.Base) != 0 && len(s.Base) != 32 {
		return Refuse(FailBadValue, "a base hash of %d bytes", len(s.Base))
	}
	return firstError(
		checkList(s.Edits, MaxBlocks, BlockAt.Valid),
		checkList(s.Bodies, MaxBodies, Body.Valid),
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
	return CheckPose(b.Pose)
}

// Valid returns an error if the move is invalid.
func (m BodyMove) Valid() error { return CheckPose(m.Pose) }

// Valid returns an error if the position is invalid. The block id may belong to a later version.
func (b BlockAt) Valid() error {
	if b.At >= ColumnBlocks {
		return Refuse(FailBadValue, "block %d of a column of at most %d blocks", b.At, ColumnBlocks)
	}
	return nil
}

// Valid returns an error if the intent is invalid. The region checks the world's own height.
func (i Intent) Valid() error {
	if i.Pos.Y < 0 || i.Pos.Y >= MaxSections*grid.ChunkSize {
		return Refuse(FailBadValue, "an edit at height %d", i.Pos.Y)
	}
	return nil
}

// Valid returns an error if the result is invalid.
func (r EditResult) Valid() error { return checkText(r.Refused) }

// Valid returns an error if the chat line is invalid.
func (u ChatEvent) Valid() error {
	if err := player.CheckName(u.Name); err != nil {
		return Refuse(FailBadName, "%v", err)
	}
	if _, ok := u.Clock(); !ok && len(u.Stamp) > 0 {
		return Refuse(FailBadValue, "the chat line's clock is too long or not its author's")
	}
	if u.Interaction != nil {
		if err := u.Interaction.Valid(); err != nil {
			return err
		}
	}
	return firstError(checkChunk(u.Chunk), CheckChat(u.Text))
}

func anyID(player.ID) error { return nil }

func checkList[E any](list []E, most int, check func(E) error) error {
	if len(list) > most {
		return Refuse(FailTooLong, "a list of %d elements; at most %d are allowed", len(list), most)
	}
	for _, e := range list {
		if err := check(e); err != nil {
			return err
		}
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
