package history

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/player"
)

// Natural is the Old of a block that no player had changed before: it was what the terrain has there.
const Natural chunk.Block = 0xffff

// BlockName returns the name of a block in a record, or "natural".
func BlockName(b chunk.Block) string {
	if b == Natural {
		return "natural"
	}
	return b.Name()
}

// Resolution is the unit in which times are stored, in milliseconds.
const Resolution = 100

// Record is one change of a block.
type Record struct {
	Time   int64     // Unix milliseconds, by the clock of the region's leader; a multiple of Resolution
	Player player.ID // whose edit it was, or the Author of a rollback
	Guest  string    // the player's name if they are a guest, else empty
	At     chunk.Index
	Old    chunk.Block // or Natural
	New    chunk.Block // Natural only in a mark
}

// isMark reports whether the record changes nothing: it is a mark, and its Player the Author of the mark's number.
func (r Record) isMark() bool { return r.New == Natural }

// segmentVersion is the first byte of a segment.
const segmentVersion = 1

var errSegment = errors.New("malformed segment of a chunk's history")

// coder is the state that records of a segment are encoded against. The zero value is that at the beginning of a
// segment.
type coder struct {
	time    int64 // of the last record, in units of Resolution
	at      chunk.Index
	players []author // in the order of their first records
}

// author is a player as a segment names them.
type author struct {
	id    player.ID
	guest string
}

// append appends a record: the time since the last one in units of Resolution, the number of the player, the distance
// from the last position (varint), and the old and the new block. When a player is first named, their id follows the
// number, 16 bytes, and their name as a guest, after its length. Natural is 0, other blocks 1 more than their id. Of a
// mark both blocks are 0. All numbers but the distance are uvarints. Times must not decrease.
func (c *coder) append(b []byte, r Record) []byte {
	if len(b) == 0 {
		b = append(b, segmentVersion)
	}
	now := r.Time / Resolution
	b = binary.AppendUvarint(b, uint64(now-c.time))
	by := author{r.Player, r.Guest}
	number := slices.Index(c.players, by)
	if number < 0 {
		number = len(c.players)
		c.players = append(c.players, by)
		b = append(binary.AppendUvarint(b, uint64(number)), by.id[:]...)
		b = append(binary.AppendUvarint(b, uint64(len(by.guest))), by.guest...)
	} else {
		b = binary.AppendUvarint(b, uint64(number))
	}
	b = binary.AppendVarint(b, int64(r.At)-int64(c.at))
	b = binary.AppendUvarint(b, uint64(r.Old+1))
	b = binary.AppendUvarint(b, uint64(r.New+1))
	c.time, c.at = now, r.At
	return b
}

// decode visits the records of a segment, in order.
func (c *coder) decode(segment []byte, visit func(Record)) error {
	if len(segment) == 0 || segment[0] != segmentVersion {
		return errSegment
	}
	b, ok := segment[1:], true
	uvarint := func(most uint64) uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > most {
			ok = false
			return 0
		}
		b = b[n:]
		return v
	}
	for len(b) > 0 {
		c.time += int64(uvarint(maxTime / Resolution))
		number := uvarint(uint64(len(c.players)))
		if ok && number == uint64(len(c.players)) {
			if len(b) < len(player.ID{}) {
				return errSegment
			}
			by := author{id: player.ID(b)}
			b = b[len(by.id):]
			n := uvarint(player.MaxName)
			if uint64(len(b)) < n {
				return errSegment
			}
			by.guest, b = string(b[:n]), b[n:]
			c.players = append(c.players, by)
		}
		far, n := binary.Varint(b)
		if !ok || n <= 0 {
			return errSegment
		}
		b = b[n:]
		at := int64(c.at) + far
		oldBlock, newBlock := uvarint(1<<16-1), uvarint(1<<16-1)
		if !ok || at < 0 || at >= chunk.MaxSections*chunk.SectionBlocks || c.time > maxTime/Resolution || newBlock == 0 && oldBlock != 0 {
			return errSegment
		}
		c.at = chunk.Index(at)
		visit(Record{
			Time: c.time * Resolution, Player: c.players[number].id, Guest: c.players[number].guest, At: c.at,
			Old: chunk.Block(oldBlock - 1), New: chunk.Block(newBlock - 1), // Natural is 0 - 1
		})
	}
	return nil
}

// maxTime bounds times: the year 5138.
const maxTime = 1e14

// Decode visits the changes of a segment, oldest first.
func Decode(segment []byte, visit func(Record)) error {
	return new(coder).decode(segment, func(r Record) {
		if !r.isMark() {
			visit(r)
		}
	})
}
