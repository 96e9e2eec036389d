package nodemsg

import (
	"encoding/binary"
	"iter"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire"
)

// BulkRun is a run of blocks of a chunk, by ascending chunk.Index, that become another one.
type BulkRun struct {
	At    chunk.Index // the first one
	Count int
	From  chunk.Block // what all of them are
	To    chunk.Block
}

// Bulk is the runs of a bulk edit, which changes blocks of one chunk: all of them, or none if one is not what its run
// says. They do not overlap, and are ordered by their first block. The bytes of a run are uvarints: the distance of its
// first block from the end of the run before it, its count, From and To.
type Bulk string

const (
	// MaxBulkBlocks is the most blocks that a bulk edit changes: what a member applies in a few milliseconds.
	MaxBulkBlocks = 2048
	// MaxBulkBytes is the most bytes of a Bulk. Runs of single blocks have four to six bytes.
	MaxBulkBytes = 12 << 10
)

// AppendRun appends a run that follows those in b, the last of which ends before the index end.
func AppendRun(b []byte, end chunk.Index, r BulkRun) []byte {
	b = binary.AppendUvarint(b, uint64(r.At-end))
	b = binary.AppendUvarint(b, uint64(r.Count)) //nolint:gosec // not negative
	b = binary.AppendUvarint(b, uint64(r.From))
	return binary.AppendUvarint(b, uint64(r.To))
}

// Valid returns an error if the runs are malformed, too many, or outside of the highest column of blocks.
func (b Bulk) Valid() error {
	if len(b) > MaxBulkBytes {
		return wire.Refuse(wire.FailTooLong, "a bulk edit of %d bytes", len(b))
	}
	left, end, blocks := []byte(b), uint64(0), uint64(0)
	for len(left) > 0 {
		gap, count, from, to, rest := nextRun(left)
		if rest == nil || count == 0 || count > MaxBulkBlocks || gap > wire.ColumnBlocks || from > 1<<16-1 || to > 1<<16-1 {
			return wire.Refuse(wire.FailBadValue, "malformed runs of a bulk edit")
		}
		left, end, blocks = rest, end+gap+count, blocks+count
		if end > wire.ColumnBlocks || blocks > MaxBulkBlocks {
			return wire.Refuse(wire.FailBadValue, "a bulk edit of more than %d blocks, or outside of the world", MaxBulkBlocks)
		}
	}
	return nil
}

// nextRun reads a run. Rest is nil if there is none.
func nextRun(b []byte) (gap, count, from, to uint64, rest []byte) {
	var values [4]uint64
	for i := range values {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, 0, 0, 0, nil
		}
		values[i], b = v, b[n:]
	}
	return values[0], values[1], values[2], values[3], b
}

// Runs returns the runs of a valid Bulk.
func (b Bulk) Runs() iter.Seq[BulkRun] {
	return func(yield func(BulkRun) bool) {
		end := chunk.Index(0)
		for left := []byte(b); len(left) > 0; {
			gap, count, from, to, rest := nextRun(left)
			r := BulkRun{At: end + chunk.Index(gap), Count: int(count), From: chunk.Block(from), To: chunk.Block(to)}
			if left, end = rest, r.At+chunk.Index(count); !yield(r) {
				return
			}
		}
	}
}

// All returns the blocks of a valid Bulk, with what they become.
func (b Bulk) All() iter.Seq2[BlockAt, chunk.Block] {
	return func(yield func(to BlockAt, from chunk.Block) bool) {
		for r := range b.Runs() {
			for i := range r.Count {
				if !yield(BlockAt{At: r.At + chunk.Index(i), Block: r.To}, r.From) {
					return
				}
			}
		}
	}
}

// Blocks returns how many blocks a valid Bulk changes.
func (b Bulk) Blocks() (n int) {
	for r := range b.Runs() {
		n += r.Count
	}
	return n
}

// MarshalCBOR writes a byte string.
func (b Bulk) MarshalCBOR() ([]byte, error) { return wire.CBOREncoding.Marshal([]byte(b)) }

// UnmarshalCBOR reads a byte string; the message is then checked by Valid.
func (b *Bulk) UnmarshalCBOR(data []byte) error {
	var bytes []byte
	err := wire.CBORDecoding.Unmarshal(data, &bytes)
	*b = Bulk(bytes)
	return err
}
