package wire

import "encoding/binary"

// Heads of CBOR values (RFC 8949 §3): the major type in the upper three bits.
const (
	CBORUnsigned = 0 << 5
	CBORNegative = 1 << 5 // -1-n
	CBORBytes    = 2 << 5
	CBORText     = 3 << 5
	CBORArray    = 4 << 5
	CBORMap      = 5 << 5
	cborSimple   = 7 << 5 // booleans, null, floats
	cborFalse    = 20     // a simple value
	cborTrue     = 21
	cborMajor    = 7 << 5 // mask of the major type
)

// AppendCBORHead appends the shortest head, as canonical CBOR requires.
func AppendCBORHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, major|27), n)
	}
}

// CutCBORHead decodes a head of a major type and returns the bytes after it.
func CutCBORHead(b []byte, major byte) (n uint64, rest []byte, ok bool) {
	if len(b) == 0 || b[0]&cborMajor != major {
		return 0, b, false
	}
	short := b[0] & 31
	b = b[1:]
	if short < 24 {
		return uint64(short), b, true
	}
	width := 1 << (short - 24)
	if short > 27 || len(b) < width {
		return 0, b, false
	}
	for _, c := range b[:width] {
		n = n<<8 | uint64(c)
	}
	return n, b[width:], true
}
