package wire

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// maxFields is one more than the number of fields of the largest client message.
const maxFields = 12

// Object is a JSON object whose syntax was checked in full and whose fields were found, but not yet decoded. The
// methods below keep the first error, so that a decoder reads all fields and then checks once, with done.
type Object struct {
	fields [maxFields]field
	n      int
	Err    *Error
}

type field struct {
	name []byte // unescaped
	raw  []byte // the value's bytes, without surrounding space
	read bool
}

// Parse parses data as exactly one JSON object with distinct keys, surrounded by nothing but white space. It does not
// compare the keys of nested objects: no client message has any, so they are refused anyway.
func (o *Object) Parse(data []byte) *Error {
	if !utf8.Valid(data) {
		return Refuse(FailBadJSON, "the message is not valid UTF-8")
	}
	s := Scanner{Data: data}
	s.SkipSpace()
	if !s.Accept('{') {
		return Refuse(FailBadJSON, "the message is not a JSON object")
	}
	s.SkipSpace()
	if !s.Accept('}') {
		for {
			if err := o.member(&s); err != nil {
				return err
			}
			if s.Accept(',') {
				s.SkipSpace()
				continue
			}
			if s.Accept('}') {
				break
			}
			return s.SyntaxError()
		}
	}
	s.SkipSpace()
	if s.At != len(s.Data) {
		return Refuse(FailBadJSON, "more than one JSON value in a message")
	}
	return nil
}

// member parses `"name": value` and the space after it.
func (o *Object) member(s *Scanner) *Error {
	start := s.At
	if !s.string() {
		return s.SyntaxError()
	}
	name, ok := Unquote(s.Data[start:s.At])
	if !ok {
		return Refuse(FailBadJSON, "a key contains an unpaired surrogate")
	}
	s.SkipSpace()
	if !s.Accept(':') {
		return s.SyntaxError()
	}
	s.SkipSpace()
	start = s.At
	if !s.SkipValue(0) {
		return s.SyntaxError()
	}
	raw := s.Data[start:s.At]
	s.SkipSpace()
	for i := range o.n {
		if bytes.Equal(o.fields[i].name, name) {
			return Refuse(FailBadJSON, "the key %q occurs twice", Clip(name))
		}
	}
	if o.n == maxFields {
		return Refuse(FailUnknownField, "a message has at most %d fields", maxFields)
	}
	o.fields[o.n] = field{name: name, raw: raw}
	o.n++
	return nil
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

// Has reports whether the field is present.
func (o *Object) Has(name string) bool {
	for i := range o.n {
		if string(o.fields[i].name) == name {
			return true
		}
	}
	return false
}

// Raw returns the value of a field. If the field is missing, it records an error and returns nil.
func (o *Object) Raw(name string) []byte {
	for i := range o.n {
		if string(o.fields[i].name) == name {
			o.fields[i].read = true
			return o.fields[i].raw
		}
	}
	o.Fail(Refuse(FailMissingField, "the field %q is missing", name))
	return nil
}

// Text decodes a string of at most most bytes.
func (o *Object) Text(name string, most int) string {
	raw := o.Raw(name)
	if raw == nil {
		return ""
	}
	if raw[0] != '"' {
		o.Fail(Refuse(FailBadType, "%q must be a string", name))
		return ""
	}
	// An escape takes at most six bytes for each byte of text.
	if len(raw) > 6*most+2 {
		o.Fail(Refuse(FailBadValue, "%q is longer than %d bytes", name, most))
		return ""
	}
	text, ok := Unquote(raw)
	if !ok {
		o.Fail(Refuse(FailBadJSON, "%q contains an unpaired surrogate", name))
		return ""
	}
	if len(text) > most {
		o.Fail(Refuse(FailBadValue, "%q is longer than %d bytes", name, most))
		return ""
	}
	return string(text)
}

// Integer decodes a whole number from low to high, both inclusive. It accepts 3.0 and 3e0 as whole numbers, because
// Python and C# print floats so.
func (o *Object) Integer(name string, low, high int64) int64 {
	raw := o.Raw(name)
	if raw == nil {
		return 0
	}
	v, err := wholeNumber(raw, name, low, high)
	if err != nil {
		o.Fail(err)
	}
	return v
}

// Unsigned decodes a whole number from 0 to 2⁶⁴−1.
func (o *Object) Unsigned(name string) uint64 {
	raw := o.Raw(name)
	if raw == nil {
		return 0
	}
	if v, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
		return v
	}
	v, err := wholeNumber(raw, name, 0, math.MaxInt64)
	if err != nil {
		o.Fail(err)
	}
	return uint64(v)
}

// Float decodes a finite number.
func (o *Object) Float(name string) float64 {
	raw := o.Raw(name)
	if raw == nil {
		return 0
	}
	v, err := ParseFinite(raw, name, 64)
	if err != nil {
		o.Fail(err)
	}
	return v
}

// Float32 decodes a number that is finite as a float32.
func (o *Object) Float32(name string) float32 {
	raw := o.Raw(name)
	if raw == nil {
		return 0
	}
	v, err := ParseFinite(raw, name, 32)
	if err != nil {
		o.Fail(err)
	}
	return float32(v)
}

// Chunk decodes [X, Z].
func (o *Object) Chunk(name string) grid.ChunkPos {
	raw := o.Raw(name)
	if raw == nil {
		return grid.ChunkPos{}
	}
	at, err := ParseChunkPos(raw, name)
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
	raw := o.Text(field, MaxLine)
	if o.Err != nil {
		return ""
	}
	if err := player.CheckName(raw); err != nil {
		o.Fail(Refuse(FailBadName, "%v", err))
		return ""
	}
	return raw
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

// ParseChunkPos parses [X, Z] within the world.
func ParseChunkPos(raw []byte, name string) (grid.ChunkPos, *Error) {
	var xz [2]float64
	n, err := ParseNumbers(raw, name, xz[:])
	if err != nil {
		return grid.ChunkPos{}, err
	}
	if n != 2 {
		return grid.ChunkPos{}, Refuse(FailBadValue, "%s must be two numbers, [X, Z]", name)
	}
	return ChunkPosOf(xz[0], xz[1], name)
}

// ChunkPosOf returns the chunk at whole numbers within the world, or an error.
func ChunkPosOf(x, z float64, name string) (grid.ChunkPos, *Error) {
	const most = float64(grid.Limit)
	if x != math.Trunc(x) || z != math.Trunc(z) || x < -most || x >= most || z < -most || z >= most {
		return grid.ChunkPos{}, Refuse(FailBadValue, "%s must be whole numbers from %d to %d", name, -int64(grid.Limit), int64(grid.Limit)-1)
	}
	return grid.ChunkPos{X: int32(x), Z: int32(z)}, nil
}

// ParseNumbers parses an array of finite numbers into dst and returns their count. raw must have been scanned before,
// so that its syntax is valid.
func ParseNumbers(raw []byte, name string, dst []float64) (int, *Error) {
	if raw[0] != '[' {
		return 0, Refuse(FailBadType, "%s must be an array of numbers", name)
	}
	s := Scanner{Data: raw, At: 1}
	n := 0
	for s.SkipSpace(); !s.Accept(']'); s.SkipSpace() {
		if n > 0 {
			s.Accept(',')
			s.SkipSpace()
		}
		start := s.At
		if !s.SkipNumber() {
			return 0, Refuse(FailBadType, "%s must be an array of numbers", name)
		}
		if n == len(dst) {
			return 0, Refuse(FailBadValue, "%s has more than %d numbers", name, len(dst))
		}
		v, err := ParseFinite(raw[start:s.At], name, 64)
		if err != nil {
			return 0, err
		}
		dst[n] = v
		n++
	}
	return n, nil
}

// ParseFinite parses a number that fits a float of the given size.
func ParseFinite(raw []byte, name string, bits int) (float64, *Error) {
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, Refuse(FailBadType, "%q must be a number", name)
	}
	v, err := strconv.ParseFloat(string(raw), bits)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, Refuse(FailBadValue, "%q is too large: %s", name, Clip(raw))
	}
	return v, nil
}

// wholeNumber parses an integer, written as one or as a float without a fraction.
func wholeNumber(raw []byte, name string, low, high int64) (int64, *Error) {
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, ferr := ParseFinite(raw, name, 64)
		if ferr != nil {
			return 0, ferr
		}
		const exact = 1 << 53 // above it, a float does not represent every integer exactly
		if f != math.Trunc(f) || f < -exact || f > exact {
			return 0, Refuse(FailBadValue, "%q must be a whole number from %d to %d", name, low, high)
		}
		v = int64(f)
	}
	if v < low || v > high {
		return 0, Refuse(FailBadValue, "%q must be a whole number from %d to %d", name, low, high)
	}
	return v, nil
}
