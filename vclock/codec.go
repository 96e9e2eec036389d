package vclock

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Bounds of encoded stamps.
const (
	// MaxID is the longest ID, in bytes.
	MaxID = 32
	// MaxEntries is the most entries of an encoded clock; an Owner observes it. With IDs of 16 bytes such a clock takes
	// less than 14 KB, a typical one of 30 entries less than 700 bytes.
	MaxEntries = 512
)

// ErrTooLarge marks a clock with more entries than can be encoded. A clock of an Owner never has that many.
var ErrTooLarge = errors.New("clock has too many entries to be encoded")

// Append appends the stamp's bytes to buf:
//
//	uvarint  count of entries, 1 to MaxEntries
//	uvarint  which of them is the author's, from 0
//	count times, by strictly ascending ID:
//	  byte     length of the ID, 1 to MaxID
//	  bytes    the ID
//	  uvarint  the component, 1 or more
//
// Each uvarint has its shortest form, so a stamp has exactly one encoding. Stamps of an Owner can always be encoded;
// others may be too large (ErrTooLarge). It panics if the clock does not contain its author.
func (s Stamp) Append(buf []byte) ([]byte, error) {
	if n := s.Clock.Len(); n > MaxEntries {
		return buf, fmt.Errorf("encode clock of %d entries, more than %d: %w", n, MaxEntries, ErrTooLarge)
	}
	author, ok := s.Clock.find(s.Author)
	if !ok {
		panic(fmt.Sprintf("vclock: stamp without its author: %v", s))
	}
	buf = binary.AppendUvarint(buf, uint64(s.Clock.Len()))
	buf = binary.AppendUvarint(buf, uint64(author))
	for _, e := range s.Clock.entries {
		buf = append(buf, byte(len(e.ID)))
		buf = append(buf, e.ID...)
		buf = binary.AppendUvarint(buf, e.N)
	}
	return buf, nil
}

// DecodeStamp decodes a stamp at the start of data and returns the remaining bytes. It refuses anything that Append
// would not have written.
func DecodeStamp(data []byte) (s Stamp, rest []byte, err error) {
	r := reader{data: data}
	count, author := r.uvarint(), r.uvarint()
	switch {
	case r.err != nil:
		return Stamp{}, nil, fmt.Errorf("decode clock: %w", r.err)
	case count == 0 || count > MaxEntries:
		return Stamp{}, nil, fmt.Errorf("decode clock: %d entries, want 1 to %d", count, MaxEntries)
	case author >= count:
		return Stamp{}, nil, fmt.Errorf("decode clock: author %d of %d entries", author, count)
	case uint64(len(r.data)) < 3*count: // an entry has at least three bytes; this bounds allocation
		return Stamp{}, nil, fmt.Errorf("decode clock: %w", errShort)
	}
	entries := make([]Entry, count)
	for i := range entries {
		e := Entry{ID: r.id(), N: r.uvarint()}
		switch {
		case r.err != nil:
			return Stamp{}, nil, fmt.Errorf("decode clock entry %d: %w", i, r.err)
		case e.N == 0:
			return Stamp{}, nil, fmt.Errorf("decode clock entry %d: a component of 0", i)
		case i > 0 && e.ID <= entries[i-1].ID:
			return Stamp{}, nil, fmt.Errorf("decode clock entry %d: IDs do not ascend", i)
		}
		entries[i] = e
	}
	return Stamp{Author: entries[author].ID, Clock: Clock{entries: entries}}, r.data, nil
}

var (
	errShort = errors.New("the data ends too early")
	errLong  = errors.New("a number is not written in its shortest form, or over 64 bits")
	errID    = errors.New("an ID is empty or too long")
)

// reader reads values from the front of data until the first error.
type reader struct {
	data []byte
	err  error
}

func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.data)
	switch {
	case n == 0:
		r.err = errShort
		return 0
	case n < 0 || n > 1 && r.data[n-1] == 0:
		r.err = errLong
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) id() ID {
	switch {
	case r.err != nil:
		return ""
	case len(r.data) == 0:
		r.err = errShort
		return ""
	}
	n := int(r.data[0])
	switch {
	case n == 0 || n > MaxID:
		r.err = errID
		return ""
	case len(r.data) < 1+n:
		r.err = errShort
		return ""
	}
	id := ID(r.data[1 : 1+n])
	r.data = r.data[1+n:]
	return id
}
