package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// ErrDamaged is returned if a backup is truncated or was changed.
var ErrDamaged = errors.New("the backup is damaged")

// ErrNoBackup is returned if the input is no backup of a known version.
var ErrNoBackup = errors.New("not a backup of voxeld")

// Reader reads a backup, and checks what it reads: the order of records, the checksum of each group, and the whole.
type Reader struct {
	Header Header

	zip   *zstd.Decoder
	in    *bufio.Reader
	sum   hash.Hash
	group groupReader
	seen  map[uint64]struct{} // groups
	rows  uint64
	last  []kv.Write // of the last record
	ended bool
}

// windowBytes bounds the memory that the compressed stream may claim.
const windowBytes = 32 << 20

// NewReader returns a reader that has read the header. The caller closes it.
func NewReader(in io.Reader) (*Reader, error) {
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(in, head); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%w: it has less than %d bytes", ErrNoBackup, len(magic))
		}
		return nil, fmt.Errorf("read backup: %w", err)
	}
	last := len(magic) - 1
	if !bytes.Equal(head[:last], magic[:last]) {
		return nil, ErrNoBackup
	}
	if head[last] != magic[last] {
		return nil, fmt.Errorf("%w: it has version %d of the format, this voxeld reads version %d: upgrade voxeld", ErrNoBackup, head[last], magic[last])
	}
	zip, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(windowBytes))
	if err != nil {
		return nil, fmt.Errorf("read backup: %w", err)
	}
	r, err := readRecords(zip)
	if err != nil {
		zip.Close()
		return nil, err
	}
	r.zip = zip
	return r, nil
}

// readRecords returns a reader of records that are not compressed.
func readRecords(in io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, 64<<10), sum: sha256.New(), seen: make(map[uint64]struct{})}
	first, err := r.next()
	if err == nil && first.Header == nil {
		err = damaged("it does not begin with a header")
	}
	if err != nil {
		return nil, err
	}
	r.Header = *first.Header
	return r, nil
}

// Close frees the memory of the decompressor. It does not close the input.
func (r *Reader) Close() { r.zip.Close() }

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// Next returns the next record after the header; io.EOF after the summary, when the whole backup has been checked.
func (r *Reader) Next() (Record, error) {
	if r.ended {
		return Record{}, io.EOF
	}
	next, err := r.next()
	if err != nil {
		return Record{}, err
	}
	if next.Header != nil {
		return Record{}, damaged("it has a second header")
	}
	return next, nil
}

// next reads, checks and counts a record.
func (r *Reader) next() (Record, error) {
	head, body, err := r.frame()
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Record{}, damaged("it is truncated")
		}
		return Record{}, damaged("%v", err)
	}
	next, err := wire.DecodeCBOR[Record](body, MaxRecord)
	if err != nil {
		return Record{}, damaged("%v", err)
	}
	if next.Summary != nil {
		return next, r.end(*next.Summary)
	}
	r.sum.Write(head)
	r.sum.Write(body)
	if g := next.Group; g != nil {
		if _, twice := r.seen[g.ID]; twice {
			return Record{}, damaged("region %s occurs twice", g.Name())
		}
		if r.seen[g.ID] = struct{}{}; len(r.seen) > maxGroups {
			return Record{}, damaged("it has more than %d regions", maxGroups)
		}
	}
	if r.last, err = next.rows(); err != nil {
		return Record{}, err
	}
	r.rows += uint64(len(r.last))
	return next, r.group.check(next, uint64(len(r.last)))
}

// Rows returns the rows of the record that Next returned last. Their Table is not set.
func (r *Reader) Rows() []kv.Write { return r.last }

// rows decodes the rows of a record.
func (r Record) rows() ([]kv.Write, error) {
	packed := r.Rows
	if r.Table != nil {
		packed = r.Table.Rows
	}
	if packed == nil {
		return nil, nil
	}
	rows, err := world.DecodeRows(packed)
	if err != nil {
		return nil, damaged("%v", err)
	}
	return rows, nil
}

// frame reads one frame: its length and its bytes.
func (r *Reader) frame() (head, body []byte, err error) {
	size, err := wire.ReadFrameSize(r.in, MaxRecord)
	if err != nil {
		return nil, nil, err
	}
	body, err = wire.ReadBody(r.in, nil, size)
	return binary.BigEndian.AppendUint32(nil, uint32(size)), body, err
}

// end checks the summary, and that nothing follows it.
func (r *Reader) end(s Summary) error {
	r.ended = true
	switch {
	case r.group.open != nil:
		return damaged("the rows of %s do not end", r.group.open.Name())
	case s.Groups != uint64(len(r.seen)) || s.Rows != r.rows:
		return damaged("it has %d regions and %d rows, and should have %d and %d", len(r.seen), r.rows, s.Groups, s.Rows)
	case s.Sum != ID(r.sum.Sum(nil)):
		return damaged("the checksum is wrong")
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged("something follows its end")
	}
	return nil
}

// groupReader checks the records of one group after the other.
type groupReader struct {
	open  *Group // whose rows are being read
	sum   hash.Hash
	rows  uint64
	bytes int
}

// check checks the next record, which has so many rows.
func (g *groupReader) check(next Record, rows uint64) error {
	switch {
	case next.Rows != nil && g.open != nil:
		g.sum.Write(next.Rows)
		g.rows += rows
		if g.bytes += len(next.Rows); g.bytes > MaxGroup {
			return damaged("%s has more than %d bytes", g.open.Name(), MaxGroup)
		}
	case next.End != nil && g.open != nil:
		if next.End.Rows != g.rows || next.End.Sum != ID(g.sum.Sum(nil)) {
			return damaged("the checksum of %s is wrong", g.open.Name())
		}
		g.open = nil
	case g.open != nil:
		return damaged("the rows of %s do not end", g.open.Name())
	case next.Rows != nil || next.End != nil:
		return damaged("it has rows of no region")
	case next.Group != nil && next.Group.HasRows():
		*g = groupReader{open: next.Group, sum: sha256.New()}
	}
	return nil
}
