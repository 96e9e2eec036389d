package overlay

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ReadPayload decodes a payload sent by from. An error wraps ErrPayload.
func ReadPayload(data []byte, from ID, near Reference) (Payload, error) {
	if len(data) > 0 && Kind(data[0]) == KindGossip {
		g, err := DecodeGossip(data)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPayload, err)
		}
		return g, nil
	}
	r := reader{data: data, from: from, near: near}
	kind, flags := r.u8(), r.u8()
	f := form{
		compact: flags&flagCompact != 0, from: flags&flagFrom != 0,
		velocity: flags&flagVelocity != 0, body: kind&kindBody != 0,
	}
	if f.from && !f.compact {
		r.fail("a long update without its origin")
	}
	var p Payload
	k := Kind(kind &^ kindBody)
	if extra := flags &^ (flagCompact | flagFrom | flagVelocity); k != KindPosition && extra != 0 {
		r.fail("flags %#x", flags)
	}
	switch k {
	case KindPosition:
		p = r.position(f, flags)
	case KindSensorRequest:
		p = &SensorRequest{Self: r.update(f), Sector: r.sector(), Compact: f.compact}
	case KindSensorSuggestion:
		p = &SensorSuggestion{Node: r.update(f), Sector: r.sector(), Compact: f.compact}
	case KindReport:
		p = &Report{Update: r.update(f), Compact: f.compact}
	case KindIntroduction:
		p = &Introduction{Updates: r.list(f), Compact: f.compact}
	default:
		r.fail("there is no kind %d", k)
	}
	if len(r.data) > 0 {
		r.fail("%d bytes too many", len(r.data))
	}
	if r.err != nil {
		return nil, r.err
	}
	return p, nil
}

// reader reads from the front. After the first error every read returns 0.
type reader struct {
	data []byte
	from ID
	near Reference
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = refusePayload(format, args...)
	}
	r.data = nil
}

// next returns the next n bytes, or nil.
func (r *reader) next(n int) []byte {
	if len(r.data) < n {
		r.fail("it ends in the middle")
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) u8() uint8 {
	if b := r.next(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.next(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.next(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// number reads a varint in its shortest form.
func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || n != uvarintBytes(v) {
		r.fail("a number is too large, too long or cut off")
		return 0
	}
	r.data = r.data[n:]
	return v
}

// count reads the length of a list whose elements take at least each bytes.
func (r *reader) count(compact bool, most, each int) int {
	n := uint64(0)
	if compact {
		n = r.number()
	} else {
		n = uint64(r.u16())
	}
	if n > uint64(most) || n*uint64(each) > uint64(len(r.data)) {
		r.fail("a list of %d elements in %d bytes", n, len(r.data))
		return 0
	}
	return int(n)
}

func (r *reader) sector() uint8 {
	s := r.u8()
	if s >= MaxSectors {
		r.fail("sector %d", s)
	}
	return s
}

func (r *reader) point() Point {
	x := math.Float32frombits(r.u32())
	return Point{float64(x), float64(math.Float32frombits(r.u32()))}
}

func (r *reader) update(f form) Update {
	u := Update{Origin: r.from}
	if !f.from {
		u.Origin = ID(r.u32())
	}
	if f.compact {
		u.Round = r.near.Round + uint32(int32(int16(r.u16()-uint16(r.near.Round))))
		u.At.X = longCoordinate(r.u16(), r.near.At.X)
		u.At.Z = longCoordinate(r.u16(), r.near.At.Z)
		if f.velocity {
			u.Velocity.X = speed(int8(r.u8()))
			u.Velocity.Z = speed(int8(r.u8()))
		}
	} else {
		u.Round = r.u32()
		u.At = r.point()
		if f.velocity {
			u.Velocity = r.point()
		}
	}
	if f.body {
		u.GameData = r.number()
	}
	if r.err == nil && !u.Valid() {
		r.fail("an update out of the world")
	}
	return u
}

func (r *reader) list(f form) []Update {
	if f.from {
		r.fail("a list without origins")
		return nil
	}
	least := f.bytes()
	if f.body {
		least++
	}
	updates := make([]Update, r.count(f.compact, MaxUpdates, least))
	for i := range updates {
		updates[i] = r.update(f)
	}
	return updates
}

func (r *reader) position(f form, flags byte) *Position {
	p := &Position{
		Hops: flags >> hopsShift, Compact: f.compact, Listed: flags&flagListed != 0, Short: flags&flagShort != 0,
	}
	p.Update = r.update(f)
	if !p.Listed {
		return p
	}
	each := 4
	if p.Short {
		each = 2
	}
	p.Receivers = make([]ID, r.count(f.compact, MaxReceivers, each))
	for i := range p.Receivers {
		if p.Short {
			p.Receivers[i] = ID(r.u16())
		} else {
			p.Receivers[i] = ID(r.u32())
		}
		if i > 0 && p.Receivers[i] <= p.Receivers[i-1] {
			r.fail("receivers out of order")
			return p
		}
	}
	return p
}
