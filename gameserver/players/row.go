package players

import (
	"cmp"
	"encoding/binary"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file decides whether a record in the network or a row on this node's disk is newer. The base that the record is
// compared with is stored in a separate row, in the same commit: an older version, to which the node may go back, could
// not read a player's row with it.

// basesTable is the table of bases: player id → base.
const basesTable = "player_bases"

// base is the login and number that records in the network are compared with to decide whether they are newer than a
// row: those with a later login are, and those with the same login, or none, and a greater number. It belongs to the
// row's own record. But if that was saved before the network had answered (see doubt), it belongs to the record that
// the session began with.
type base struct {
	login int64 // when the player logged in; 0: they did not
	seq   uint64
}

// compare returns a positive number if a record in the network is newer, a negative one if it is older.
func (b base) compare(remembered nodemsg.PlayerRecord) int {
	if remembered.Login == nil {
		return cmp.Compare(remembered.Seq, b.seq) // of a guest
	}
	return cmp.Or(cmp.Compare(remembered.Login.At, b.login), cmp.Compare(remembered.Seq, b.seq))
}

// row is this node's record of a player, without its login. Its Seq is 0 if there is none.
type row struct {
	nodemsg.PlayerRecord
	base  base
	based bool // the base was stored
}

// isOutdated reports whether a record in the network is newer, whatever the sequence numbers say: this gateway's clock
// may have been ahead, and a session here may have ended after a later one elsewhere.
func (r row) isOutdated(remembered nodemsg.PlayerRecord) bool {
	if r.based {
		return r.base.compare(remembered) > 0
	}
	return remembered.Login != nil && remembered.Gateway != r.Gateway && r.base.compare(remembered) > 0
}

// isNewer reports whether a record in the network is older, whatever the sequence numbers say.
func (r row) isNewer(remembered nodemsg.PlayerRecord) bool {
	return r.based && r.base.compare(remembered) < 0
}

// encode returns the stored base of a record with the given number.
func (b base) encode(seq uint64) []byte {
	value := binary.BigEndian.AppendUint64(nil, seq)
	value = binary.BigEndian.AppendUint64(value, uint64(b.login))
	return binary.BigEndian.AppendUint64(value, b.seq)
}

// setBase decodes the stored base; nil: none. One with another number is that of an earlier record: an older version
// has saved this one.
func (r *row) setBase(value []byte) {
	if len(value) != 24 || binary.BigEndian.Uint64(value) != r.Seq {
		r.base = base{r.SavedAt, r.Seq} // they logged in before
		return
	}
	r.base, r.based = base{int64(binary.BigEndian.Uint64(value[8:])), binary.BigEndian.Uint64(value[16:])}, true
}
