package sessionmsg

import (
	"math"

	"github.com/voxelpopuli/voxeld/wire"
)

// Edits and their acknowledgements are the bulk of a builder's session in CBOR. They are encoded and decoded without
// reflection. Anything that this version does not write itself falls back to the general codec, so both accept and
// Refuse the same.

const (
	shortMap, shortText = 0xa0, 0x60 // first bytes of a map, and of a text, shorter than 24
	shortest            = 24
)

// cutFields decodes a map of at most 23 fields. Their names are texts of less than 24 bytes; their values are numbers,
// or one such text for the type. It calls field with each number; field reports whether the number is allowed.
func cutFields(data []byte, kind string, field func(name string, n uint64, negative bool) bool) bool {
	if len(data) == 0 || data[0] < shortMap || data[0] >= shortMap+shortest {
		return false
	}
	fields, b := int(data[0]-shortMap), data[1:]
	typed := false
	text := func() (s []byte, ok bool) {
		if len(b) == 0 || b[0] < shortText || b[0] >= shortText+shortest {
			return nil, false
		}
		n := int(b[0] - shortText)
		if len(b) <= n {
			return nil, false
		}
		s, b = b[1:1+n], b[1+n:]
		return s, true
	}
	for range fields {
		name, ok := text()
		if !ok || len(b) == 0 {
			return false
		}
		if string(name) == "type" {
			value, ok := text()
			if !ok || typed || string(value) != kind {
				return false
			}
			typed = true
			continue
		}
		major := b[0] & (7 << 5)
		if major != wire.CBORNumber && major != wire.CBORNegative {
			return false
		}
		n, rest, ok := wire.CutCBORHead(b, major)
		if !ok || !field(string(name), n, major == wire.CBORNegative) {
			return false
		}
		b = rest
	}
	return typed && len(b) == 0
}

// cutEdit decodes a client's edit in the form of EncodeClientCBOR, with its fields in any order.
func cutEdit(data []byte) (e Edit, ok bool) {
	seen := 0
	once := func(bit int) bool {
		fresh := seen&bit == 0
		seen |= bit
		return fresh
	}
	coordinate := func(to *int32, n uint64, negative bool) bool {
		if n > math.MaxInt32 {
			return false
		}
		if *to = int32(n); negative {
			*to = -1 - int32(n)
		}
		return true
	}
	ok = cutFields(data, "edit", func(name string, n uint64, negative bool) bool {
		switch name {
		case "x":
			return once(1) && coordinate(&e.X, n, negative)
		case "y":
			return once(2) && coordinate(&e.Y, n, negative)
		case "z":
			return once(4) && coordinate(&e.Z, n, negative)
		case "seq":
			e.Seq = n
			return once(8) && !negative && n <= mostExact
		case "block":
			e.Block = uint16(n)
			return once(16) && !negative && n <= math.MaxUint16
		default:
			return false
		}
	})
	return e, ok && seen == 31
}

// mostExact is the largest sequence number on the fast path: JSON readers represent it exactly.
const mostExact = 1 << 53

// cutAck decodes an acknowledgement without an error.
func cutAck(data []byte) (a Ack, ok bool) {
	seen := 0
	ok = cutFields(data, "ack", func(name string, n uint64, negative bool) bool {
		switch {
		case negative:
			return false
		case name == "seq" && seen&1 == 0:
			a.Seq = n
			seen |= 1
			return true
		case name == "block" && seen&2 == 0 && n <= math.MaxUint16:
			a.Block = uint16(n)
			seen |= 2
			return true
		default:
			return false
		}
	})
	return a, ok && seen == 3
}

// appendType begins a map of the type and the given number of other fields, and appends the type.
func appendType(b []byte, name string, fields byte) []byte {
	b = append(append(b, shortMap+1+fields, shortText+4), "type"...)
	return appendShort(b, name)
}

func appendShort(b []byte, s string) []byte { return append(append(b, shortText+byte(len(s))), s...) }

func appendCoordinate(b []byte, v int32) []byte {
	if v < 0 {
		return wire.AppendCBORHead(b, wire.CBORNegative, uint64(-1-int64(v)))
	}
	return wire.AppendCBORHead(b, wire.CBORNumber, uint64(v))
}

// encodeEdit writes the same bytes as encodeNamedCBOR.
func encodeEdit(e Edit) []byte {
	b := appendType(make([]byte, 0, 64), "edit", 5)
	b = appendCoordinate(appendShort(b, "x"), e.X)
	b = appendCoordinate(appendShort(b, "y"), e.Y)
	b = appendCoordinate(appendShort(b, "z"), e.Z)
	b = wire.AppendCBORHead(appendShort(b, "seq"), wire.CBORNumber, e.Seq)
	return wire.AppendCBORHead(appendShort(b, "block"), wire.CBORNumber, uint64(e.Block))
}

// encodeAck writes the same bytes as encodeNamedCBOR, for an acknowledgement without an error.
func encodeAck(a Ack) []byte {
	b := appendType(make([]byte, 0, 40), "ack", 2)
	b = wire.AppendCBORHead(appendShort(b, "seq"), wire.CBORNumber, a.Seq)
	return wire.AppendCBORHead(appendShort(b, "block"), wire.CBORNumber, uint64(a.Block))
}
