package history

import (
	"bytes"
	"fmt"

	"github.com/voxelpopuli/voxeld/player"
)

// segmentBytes is the size from which on a segment is full. The last segment of each changed chunk is written anew
// whenever the region is stored: it should be small. Each is a row, whose key and page take some 40 bytes: it should
// not be too small.
const segmentBytes = 1 << 10

// Log has the records of one chunk. The zero value is empty.
type Log struct {
	first    uint32 // number of the first segment
	segments []segment
	size     int   // bytes of all segments
	tail     coder // at the end of the last segment
}

type segment struct {
	data []byte
	last int64 // time of the last record
}

// Next returns the number of the segment that the next record is added to, and its bytes, which are nil if it is a new
// one.
func (l *Log) Next() (number uint32, data []byte) {
	n := len(l.segments)
	if n == 0 || len(l.segments[n-1].data) >= segmentBytes {
		return l.first + uint32(n), nil
	}
	return l.first + uint32(n-1), l.segments[n-1].data
}

// Add adds a record to the segment that Next returns. A time before that of the last record, or out of bounds, is
// corrected.
func (l *Log) Add(r Record) {
	r.Time = min(max(r.Time, 0), maxTime)
	r.Guest = r.Guest[:min(len(r.Guest), player.MaxName)]
	if n := len(l.segments); n > 0 {
		r.Time = max(r.Time, l.segments[n-1].last)
	}
	if _, data := l.Next(); data == nil {
		l.segments = append(l.segments, segment{})
		l.tail = coder{}
	}
	s := &l.segments[len(l.segments)-1]
	before := len(s.data)
	s.data = l.tail.append(s.data, r)
	s.last = l.tail.time * Resolution
	l.size += len(s.data) - before
}

// Mark adds the mark of a number: what is recorded later is after it. Its time is that of the last record.
func (l *Log) Mark(number int64) {
	l.Add(Record{Player: Author(number), At: l.tail.at, Old: Natural, New: Natural})
}

// Last returns the time of the last record; 0 if there is none.
func (l *Log) Last() int64 {
	if l.Empty() {
		return 0
	}
	return l.segments[len(l.segments)-1].last
}

// Load adds a stored segment. They must come in the order of their numbers.
func (l *Log) Load(number uint32, data []byte) error {
	n := uint32(len(l.segments))
	if n > 0 && number != l.first+n {
		return fmt.Errorf("%w: number %d is not %d", errSegment, number, l.first+n)
	}
	var tail coder
	ordered := len(data) > 1
	if err := tail.decode(data, func(r Record) { ordered = ordered && (n == 0 || r.Time >= l.segments[n-1].last) }); err != nil {
		return err
	}
	if !ordered {
		return errSegment
	}
	if n == 0 {
		l.first = number
	}
	l.tail = tail
	l.segments = append(l.segments, segment{data: bytes.Clone(data), last: tail.time * Resolution})
	l.size += len(data)
	return nil
}

// Oldest returns the first segment's number, its bytes, and the time of its last record. The log must not be empty.
func (l *Log) Oldest() (number uint32, data []byte, last int64) {
	return l.first, l.segments[0].data, l.segments[0].last
}

// DropOldest removes the first segment. An empty Log must not be used again: a new one has other numbers.
func (l *Log) DropOldest() {
	l.size -= len(l.segments[0].data)
	l.segments[0] = segment{}
	l.segments = l.segments[1:]
	l.first++
}

// Empty reports whether there are no records.
func (l *Log) Empty() bool { return len(l.segments) == 0 }

// Size returns the number of bytes of all segments.
func (l *Log) Size() int { return l.size }

// Segment returns the bytes of a segment, or nil if there is no such one.
func (l *Log) Segment(number uint32) []byte {
	if i := number - l.first; i < uint32(len(l.segments)) {
		return l.segments[i].data
	}
	return nil
}

// All visits the segments, oldest first, with their numbers and the times of their last records.
func (l *Log) All(visit func(number uint32, data []byte, last int64)) {
	for i, s := range l.segments {
		visit(l.first+uint32(i), s.data, s.last)
	}
}

// Segments returns the segments that end at a time or later, oldest first. They can be decoded while records are added
// to the Log.
func (l *Log) Segments(since int64) [][]byte {
	var all [][]byte
	for _, s := range l.segments {
		if s.last >= since {
			all = append(all, s.data[:len(s.data):len(s.data)])
		}
	}
	return all
}
