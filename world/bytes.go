package world

import (
	"encoding/binary"
	"math"
)

// reader reads values from the front of data. After the first missing value, bad stays set and every further value is
// zero, so that decoders check once, at the end.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) int32() int32 {
	v := r.varint()
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.fail()
		return 0
	}
	return int32(v)
}

// count reads the length of a list whose elements take at least size bytes each, so that a count cannot request more
// memory than its message has bytes.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.data)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

// bytes reads n bytes; they alias the input.
func (r *reader) bytes(n int) []byte {
	if n > len(r.data) {
		r.fail()
		return make([]byte, n)
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) text(limit int) string {
	n := r.uvarint()
	if n > uint64(limit) || n > uint64(len(r.data)) {
		r.fail()
		return ""
	}
	return string(r.bytes(int(n)))
}

func (r *reader) fail() {
	r.bad = true
	r.data = nil
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}
