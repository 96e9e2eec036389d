package luanti

import (
	"encoding/binary"
	"math"
	"unicode/utf16"
)

// packet is a packet to the client, after its command. Numbers are big-endian.
type packet []byte

func begin(command uint16) packet { return packet(nil).u16(command) }

func (p packet) u8(v ...byte) packet   { return append(p, v...) }
func (p packet) u16(v uint16) packet   { return binary.BigEndian.AppendUint16(p, v) }
func (p packet) u32(v uint32) packet   { return binary.BigEndian.AppendUint32(p, v) }
func (p packet) u64(v uint64) packet   { return binary.BigEndian.AppendUint64(p, v) }
func (p packet) s16(v int) packet      { return p.u16(uint16(int16(v))) }             //nolint:gosec // two's complement
func (p packet) text(s string) packet  { return append(p.u16(uint16(len(s))), s...) } //nolint:gosec // never as long
func (p packet) bytes(b []byte) packet { return append(p.u16(uint16(len(b))), b...) } //nolint:gosec // never as long
func (p packet) blob(b []byte) packet  { return append(p.u32(uint32(len(b))), b...) } //nolint:gosec // never as long
func (p packet) node(at node) packet   { return p.s16(at.x).s16(at.y).s16(at.z) }
func (p packet) place(at place) packet { return p.f32(at.x, at.y, at.z) }

func (p packet) f32(v ...float64) packet {
	for _, f := range v {
		p = p.u32(math.Float32bits(float32(f)))
	}
	return p
}

func (p packet) flag(v ...bool) packet {
	for _, b := range v {
		if b {
			p = p.u8(1)
		} else {
			p = p.u8(0)
		}
	}
	return p
}

// wide appends a text in UTF-16.
func (p packet) wide(s string) packet {
	units := utf16.Encode([]rune(s))
	p = p.u16(uint16(len(units))) //nolint:gosec // never as long
	for _, u := range units {
		p = p.u16(u)
	}
	return p
}

// fields reads a packet of the client. What is beyond its end is zero, and is noted.
type fields struct {
	rest  []byte
	short bool
}

func (f *fields) take(n int) []byte {
	if n > len(f.rest) {
		f.rest, f.short = nil, true
		return make([]byte, min(n, 8))
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) u8() byte    { return f.take(1)[0] }
func (f *fields) u16() uint16 { return binary.BigEndian.Uint16(f.take(2)) }
func (f *fields) u32() uint32 { return binary.BigEndian.Uint32(f.take(4)) }
func (f *fields) s16() int    { return int(int16(f.u16())) } //nolint:gosec // two's complement
func (f *fields) s32() int    { return int(int32(f.u32())) } //nolint:gosec // two's complement
func (f *fields) node() node  { return node{f.s16(), f.s16(), f.s16()} }

// text reads a string. One that is cut off is empty.
func (f *fields) text() string {
	n := int(f.u16())
	if n > len(f.rest) {
		f.take(n)
		return ""
	}
	return string(f.take(n))
}

// wide reads a text in UTF-16.
func (f *fields) wide() string {
	n := int(f.u16())
	if 2*n > len(f.rest) {
		f.take(2 * n)
		return ""
	}
	units := make([]uint16, n)
	for i := range units {
		units[i] = f.u16()
	}
	return string(utf16.Decode(units))
}
