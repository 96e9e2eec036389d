package overlay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// A payload on the wire, little-endian:
//
//	kind u8, flags u8, then by kind
//	position            update [receivers]      flags' upper 3 bits: hops
//	sensor request      update sector u8
//	sensor suggestion   update sector u8
//	report              update
//	introduction        count, updates
//	crowd               count, updates
//	gossip              see Gossip.Append
//
//	update, long        origin u32, round u32, x f32, z f32
//	update, short       [origin u32] round u16, x u16, z u16    16ths of a block; the low bits of each
//	  if flagged        velocity: 2 × f32, short 2 × i8         see speedByte
//	  if flagged        body, a varint
//	receivers           count, each u32, or short u16; sorted
//	count               u16, short: a varint
//
// A short update is read with the help of a Reference: it was made near the reader, and lately.
const (
	flagCompact     = 1 << iota // updates are short
	flagFrom                    // the origin is the sender, and left out; of short updates
	flagVelocity                // updates have velocities
	flagListed                  // there is a receiver list
	flagShort                   // the list's ids are short
	hopsShift       = 5
	MaxPositionHops = 7
)

// kindBody, the upper bit of the kind, means that updates have data of the game.
const kindBody = 0x80

// Reference is a reader's context for decoding short forms: a position within some 1,000 blocks of the decoded ones
// (its own, or for a leader the middle of its region), and the round, give or take 32,000.
type Reference struct {
	At    Point
	Round uint32
}

// ErrPayload marks all errors about bytes that are not a payload.
var ErrPayload = errors.New("not an overlay payload")

// form is what all updates of a payload have in common.
type form struct{ compact, from, velocity, body bool }

func formOf(compact bool, from ID, updates ...Update) form {
	f := form{compact: compact, from: compact && len(updates) == 1 && updates[0].Origin == from}
	for i := range updates {
		f.velocity = f.velocity || updates[i].Velocity != Point{}
		f.body = f.body || updates[i].GameData != 0
	}
	return f
}

func (f form) flags() (flags byte) {
	if f.compact {
		flags |= flagCompact
	}
	if f.from {
		flags |= flagFrom
	}
	if f.velocity {
		flags |= flagVelocity
	}
	return flags
}

func (f form) kind(k Kind) byte {
	if f.body {
		return byte(k) | kindBody
	}
	return byte(k)
}

// bytes returns the length of an update, without its body.
func (f form) bytes() int {
	n := 16
	if f.compact {
		n = 10
	}
	if f.from {
		n -= 4
	}
	if f.velocity && f.compact {
		n += 2
	} else if f.velocity {
		n += 8
	}
	return n
}

func (f form) updateBytes(u *Update) int {
	if f.body {
		return f.bytes() + uvarintBytes(u.GameData)
	}
	return f.bytes()
}

func uvarintBytes(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func countBytes(n int, compact bool) int {
	if compact {
		return uvarintBytes(uint64(n))
	}
	return 2
}

// PositionBytes returns the length of a Position with n receivers in its list.
func PositionBytes(from ID, u *Update, compact, listed, shortIDs bool, n int) int {
	f := formOf(compact, from, *u)
	size := 2 + f.updateBytes(u)
	if listed {
		size += countBytes(n, compact) + 4*n
		if shortIDs {
			size -= 2 * n
		}
	}
	return size
}

// PayloadBytes returns the length of a payload's encoding by AppendPayload.
func PayloadBytes(from ID, p Payload) int {
	switch p := p.(type) {
	case *Position:
		return PositionBytes(from, &p.Update, p.Compact, p.Listed, p.Short, len(p.Receivers))
	case *SensorRequest:
		return 3 + formOf(p.Compact, from, p.Self).updateBytes(&p.Self)
	case *SensorSuggestion:
		return 3 + formOf(p.Compact, from, p.Node).updateBytes(&p.Node)
	case *Report:
		return 2 + formOf(p.Compact, from, p.Update).updateBytes(&p.Update)
	case *Introduction:
		return listBytes(p.Compact, p.Updates)
	case *Gossip:
		return p.Size()
	}
	panic(fmt.Sprintf("overlay: no encoding of %T", p))
}

func listBytes(compact bool, updates []Update) int {
	f := formOf(compact, 0, updates...)
	f.from = false
	n := 2 + countBytes(len(updates), compact)
	for i := range updates {
		n += f.updateBytes(&updates[i])
	}
	return n
}

// AppendPayload appends the encoding of a payload sent by from.
func AppendPayload(b []byte, from ID, p Payload) []byte {
	switch p := p.(type) {
	case *Position:
		f := formOf(p.Compact, from, p.Update)
		flags := f.flags() | min(p.Hops, MaxPositionHops)<<hopsShift
		if p.Listed {
			flags |= flagListed
		}
		if p.Short {
			flags |= flagShort
		}
		b = f.update(append(b, f.kind(KindPosition), flags), &p.Update)
		if p.Listed {
			b = appendReceivers(b, p)
		}
		return b
	case *SensorRequest:
		f := formOf(p.Compact, from, p.Self)
		return append(f.update(append(b, f.kind(KindSensorRequest), f.flags()), &p.Self), p.Sector)
	case *SensorSuggestion:
		f := formOf(p.Compact, from, p.Node)
		return append(f.update(append(b, f.kind(KindSensorSuggestion), f.flags()), &p.Node), p.Sector)
	case *Report:
		f := formOf(p.Compact, from, p.Update)
		return f.update(append(b, f.kind(KindReport), f.flags()), &p.Update)
	case *Introduction:
		return appendList(b, p.Compact, p.Updates)
	case *Gossip:
		return p.Append(b)
	}
	panic(fmt.Sprintf("overlay: no encoding of %T", p))
}

func appendReceivers(b []byte, p *Position) []byte {
	b = appendCount(b, len(p.Receivers), p.Compact)
	for _, id := range p.Receivers {
		if p.Short {
			b = binary.LittleEndian.AppendUint16(b, uint16(id))
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(id))
		}
	}
	return b
}

func appendList(b []byte, compact bool, updates []Update) []byte {
	f := formOf(compact, 0, updates...)
	f.from = false
	b = appendCount(append(b, f.kind(KindIntroduction), f.flags()), len(updates), compact)
	for i := range updates {
		b = f.update(b, &updates[i])
	}
	return b
}

func appendCount(b []byte, n int, compact bool) []byte {
	if compact {
		return binary.AppendUvarint(b, uint64(n))
	}
	return binary.LittleEndian.AppendUint16(b, uint16(n))
}

func (f form) update(b []byte, u *Update) []byte {
	if !f.from {
		b = binary.LittleEndian.AppendUint32(b, uint32(u.Origin))
	}
	if f.compact {
		b = binary.LittleEndian.AppendUint16(b, uint16(u.Round))
		b = binary.LittleEndian.AppendUint16(b, shortCoordinate(u.At.X))
		b = binary.LittleEndian.AppendUint16(b, shortCoordinate(u.At.Z))
		if f.velocity {
			b = append(b, byte(speedByte(u.Velocity.X)), byte(speedByte(u.Velocity.Z)))
		}
	} else {
		b = binary.LittleEndian.AppendUint32(b, u.Round)
		b = appendPoint(b, u.At)
		if f.velocity {
			b = appendPoint(b, u.Velocity)
		}
	}
	if f.body {
		b = binary.AppendUvarint(b, u.GameData)
	}
	return b
}

func appendPoint(b []byte, p Point) []byte {
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(p.X)))
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(p.Z)))
}

func refusePayload(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPayload, fmt.Sprintf(format, args...))
}
