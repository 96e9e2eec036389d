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

func checkRegionID(id uint64) error {
	if id == 0 {
		return wire.Refuse(wire.FailBadValue, "the region id must not be 0")
	}
	return nil
}

// checkPeer checks the form of a libp2p peer id in base58.
func checkPeer(id string) error {
	if id == "" || len(id) > wire.MaxPeerID {
		return wire.Refuse(wire.FailBadValue, "a peer id has 1 to %d bytes, not %d", wire.MaxPeerID, len(id))
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= '1' && c <= '9', c >= 'a' && c <= 'z' && c != 'l', c >= 'A' && c <= 'Z' && c != 'I' && c != 'O':
		default:
			return wire.Refuse(wire.FailBadValue, "a peer id is base58, without %q", c)
		}
	}
	return nil
}

// checkKnownPeer returns an error unless id is empty or a peer id.
func checkKnownPeer(id string) error {
	if id == "" {
		return nil
	}
	return checkPeer(id)
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

// alternative is one of the fields of a message that has exactly one field set.
type alternative struct {
	set bool
	err error
}

func alternativeOf[T interface{ Valid() error }](v *T) alternative {
	if v == nil {
		return alternative{}
	}
	return alternative{set: true, err: (*v).Valid()}
}

// exactlyOne returns an error unless exactly one field of the message is set, and is valid.
func exactlyOne(message string, fields ...alternative) error {
	set := 0
	for _, f := range fields {
		if f.err != nil {
			return f.err
		}
		if f.set {
			set++
		}
	}
	if set != 1 {
		return wire.Refuse(wire.FailBadValue, "a %s must have exactly one field set, not %d", message, set)
	}
	return nil
}
