package wire

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// maxFields is one more than the number of fields of the largest client message.
const maxFields = 12

// Object is a flat message whose syntax was checked in full (ParseJSON, ParseCBOR) and whose fields were found, but not
// yet checked. Its methods decode one field each and keep the first error in Err, so that a decoder reads all fields
// and then checks once, with Done. It shares the memory of the message.
//
// Unmarshalling into structs would not do for clients: neither version of encoding/json can require a field, refuse
// null, or accept 3.0 as a whole number.
type Object struct {
	fields [maxFields]field
	n      int
	Err    *Error
}

type field struct {
	name []byte
	text []byte // of kindText; of other kinds the value in JSON
	n    uint64 // a number in CBOR
	kind kind
	read bool
}

// kind is the kind of a field's value.
type kind uint8

const (
	kindOther    kind = iota // null, an array or an object
	kindBool                 // n is 0 or 1
	kindText                 // a string
	kindBroken               // a string with an unpaired surrogate, which UTF-8 cannot represent
	kindLiteral              // a number in JSON
	kindUnsigned             // n
	kindNegative             // −1−n
	kindFloat                // math.Float64frombits(n)
)

// add adds a field. code is that of a duplicate.
func (o *Object) add(name []byte, code string) (*field, *Error) {
	for i := range o.n {
		if bytes.Equal(o.fields[i].name, name) {
			return nil, Refuse(code, "the key %q occurs twice", Clip(name))
		}
	}
	if o.n == maxFields {
		return nil, Refuse(FailUnknownField, "a message has at most %d fields", maxFields)
	}
	f := &o.fields[o.n]
	f.name = name
	o.n++
	return f, nil
}

// Fail keeps the error, unless there is one already.
func (o *Object) Fail(err error) {
	var refused *Error
	if !errors.As(err, &refused) {
		refused = Refuse(FailBadValue, "%v", err)
	}
	if o.Err == nil {
		o.Err = refused
	}
}

// find returns a field, or nil if it is missing.
func (o *Object) find(name string) *field {
	for i := range o.n {
		if string(o.fields[i].name) == name {
			return &o.fields[i]
		}
	}
	return nil
}

// need returns a field and marks it as read. If it is missing, it records an error and returns nil.
func (o *Object) need(name string) *field {
	f := o.find(name)
	if f == nil {
		o.Fail(Refuse(FailMissingField, "the field %q is missing", name))
		return nil
	}
	f.read = true
	return f
}

// Has reports whether the field is present.
func (o *Object) Has(name string) bool { return o.find(name) != nil }

// Text decodes a string of at most most bytes.
func (o *Object) Text(name string, most int) string {
	f := o.need(name)
	switch {
	case f == nil:
	case f.kind == kindBroken:
		o.Fail(Refuse(FailBadJSON, "%q contains an unpaired surrogate", name))
	case f.kind != kindText:
		o.Fail(Refuse(FailBadType, "%q must be a string", name))
	case len(f.text) > most:
		o.Fail(Refuse(FailBadValue, "%q is longer than %d bytes", name, most))
	default:
		return string(f.text)
	}
	return ""
}

// LenientText returns the string in the field, and "" for any other value and for none. The field is not read for Done.
func (o *Object) LenientText(name string) string {
	if f := o.find(name); f != nil && f.kind == kindText {
		return string(f.text)
	}
	return ""
}

// Bool decodes a boolean.
func (o *Object) Bool(name string) bool {
	f := o.need(name)
	if f != nil && f.kind != kindBool {
		o.Fail(Refuse(FailBadType, "%q must be true or false", name))
	}
	return o.Err == nil && f.n == 1
}

// number returns a field that is a number. If there is none, it records an error and returns nil.
func (o *Object) number(name string) *field {
	f := o.need(name)
	if f != nil && f.kind < kindLiteral {
		o.Fail(Refuse(FailBadType, "%q must be a number", name))
		return nil
	}
	return f
}

// float returns a number as a float of the given size; if it is too large, an infinity.
func (f *field) float(bits int) (v float64) {
	switch f.kind {
	case kindUnsigned:
		v = float64(f.n)
	case kindNegative:
		v = -1 - float64(f.n)
	case kindFloat:
		v = math.Float64frombits(f.n)
	default:
		v, _ = strconv.ParseFloat(string(f.text), bits) // the syntax is checked, and an overflow is an infinity
	}
	if bits == 32 {
		return float64(float32(v))
	}
	return v
}

// whole returns a whole number: n, or −1−n if it is negative. It accepts 3.0 and 3e0, because Python and C# print
// floats so.
func (f *field) whole() (n uint64, negative, ok bool) {
	if f.kind == kindUnsigned || f.kind == kindNegative {
		return f.n, f.kind == kindNegative, true
	}
	if n, err := strconv.ParseUint(string(f.text), 10, 64); err == nil {
		return n, false, true
	}
	const exact = 1 << 53 // above it, a float does not represent every integer exactly
	v := f.float(64)
	if v != math.Trunc(v) || math.Abs(v) > exact {
		return 0, false, false
	}
	if v < 0 {
		return uint64(-1 - v), true, true
	}
	return uint64(v), false, true
}

// Integer decodes a whole number from low to high, both inclusive.
func (o *Object) Integer(name string, low, high int64) int64 {
	f := o.number(name)
	if f == nil {
		return 0
	}
	n, negative, ok := f.whole()
	v := int64(n)
	if negative {
		v = -1 - v
	}
	if !ok || n > math.MaxInt64 || v < low || v > high {
		o.Fail(Refuse(FailBadValue, "%q must be a whole number from %d to %d", name, low, high))
		return 0
	}
	return v
}

// Unsigned decodes a whole number from 0 to 2⁶⁴−1.
func (o *Object) Unsigned(name string) uint64 {
	f := o.number(name)
	if f == nil {
		return 0
	}
	n, negative, ok := f.whole()
	if !ok || negative {
		o.Fail(Refuse(FailBadValue, "%q must be a whole number from 0 to %d", name, uint64(math.MaxUint64)))
		return 0
	}
	return n
}

// Float decodes a finite number.
func (o *Object) Float(name string) float64 { return o.finite(name, 64) }

// Float32 decodes a number that is finite as a float32.
func (o *Object) Float32(name string) float32 { return float32(o.finite(name, 32)) }

func (o *Object) finite(name string, bits int) float64 {
	f := o.number(name)
	if f == nil {
		return 0
	}
	v := f.float(bits)
	if !Finite(v) {
		o.Fail(Refuse(FailBadValue, "%q is too large: %s", name, Clip(f.text)))
		return 0
	}
	return v
}

// Numbers decodes an array of at most len(dst) finite numbers and returns their count. Even with an error, it counts
// the numbers before it.
func (o *Object) Numbers(name string, dst []float64) int {
	f := o.array(name)
	if f == nil {
		return 0
	}
	n, err := parseNumbers(f.text, name, dst)
	if err != nil {
		o.Fail(err)
	}
	return n
}

// array returns a field that may be an array, or nil after an error.
func (o *Object) array(name string) *field {
	f := o.need(name)
	if f != nil && f.kind != kindOther {
		o.Fail(Refuse(FailBadType, "%s must be an array of numbers", name))
		return nil
	}
	return f
}

// Chunk decodes [X, Z].
func (o *Object) Chunk(name string) grid.ChunkPos {
	f := o.array(name)
	if f == nil {
		return grid.ChunkPos{}
	}
	at, err := ParseChunkPos(f.text, name)
	if err != nil {
		o.Fail(err)
	}
	return at
}

// Pose decodes the five fields of a Pose.
func (o *Object) Pose() motion.Pose {
	p := motion.Pose{X: o.Float("x"), Y: o.Float("y"), Z: o.Float("z"), Yaw: o.Float32("yaw"), Pitch: o.Float32("pitch")}
	if err := CheckPose(p); err != nil {
		o.Fail(err)
	}
	return p
}

// PlayerName decodes a player's name.
func (o *Object) PlayerName(field string) string {
	name := o.Text(field, MaxLine)
	if err := player.CheckName(name); err != nil {
		o.Fail(Refuse(FailBadName, "%v", err))
	}
	return name
}

// Done returns the first error, or an error that names a field that was not decoded.
func (o *Object) Done() error {
	if o.Err != nil {
		return o.Err
	}
	for i := range o.n {
		if !o.fields[i].read {
			return Refuse(FailUnknownField, "the message has no field %q", Clip(o.fields[i].name))
		}
	}
	return nil
}
