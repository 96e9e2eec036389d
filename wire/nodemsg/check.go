package nodemsg

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

func checkChunk(at grid.ChunkPos) error {
	if !at.Valid() {
		return wire.Refuse(wire.FailBadValue, "chunk %v is out of the world", at)
	}
	return nil
}

func checkCell(c grid.Cell) error {
	if !c.Domain.Valid() {
		return wire.Refuse(wire.FailBadValue, "cell %v is out of the world", c)
	}
	return nil
}

func checkPlayer(id player.ID, name string, guest bool) error {
	if err := player.CheckName(name); err != nil {
		return wire.Refuse(wire.FailBadName, "%v", err)
	}
	if guest && id != player.GuestID(name) {
		return wire.Refuse(wire.FailBadValue, "the id does not belong to guest %s", name)
	}
	return nil
}

func checkList[E any](list []E, most int, check func(E) error) error {
	if len(list) > most {
		return wire.Refuse(wire.FailTooLong, "a list of %d elements; at most %d are allowed", len(list), most)
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
