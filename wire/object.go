package wire

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/voxelpopuli/voxeld/grid"
)

// maxFields is one more than the number of fields of the largest client message.
const maxFields = 12

// object is a JSON object whose syntax was checked in full and whose fields were found, but not yet decoded. The
// methods below keep the first error, so that a decoder reads all fields and then checks once, with done.
type object struct {
	fields [maxFields]field
	n      int
	err    *Error
}

type field struct {
	name []byte // unescaped
	raw  []byte // the value's bytes, without surrounding space
	read bool
}

// parse parses data as exactly one JSON object with distinct keys, surrounded by nothing but white space. It does not
// compare the keys of nested objects: no client message has any, so they are refused anyway.
func (o *object) parse(data []byte) *Error {
	if !utf8.Valid(data) {
		return refuse(FailBadJSON, "the message is not valid UTF-8")
	}
	s := scanner{data: data}
	s.space()
	if !s.accept('{') {
		return refuse(FailBadJSON, "the message is not a JSON object")
	}
	s.space()
	if !s.accept('}') {
		for {
			if err := o.member(&s); err != nil {
				return err
			}
			if s.accept(',') {
				s.space()
				continue
			}
			if s.accept('}') {
				break
			}
			return s.syntax()
		}
	}
	s.space()
	if s.at != len(s.data) {
		return refuse(FailBadJSON, "more than one JSON value in a message")
	}
	return nil
}

// member parses `"name": value` and the space after it.
func (o *object) member(s *scanner) *Error {
	start := s.at
	if !s.string() {
		return s.syntax()
	}
	name, ok := unquote(s.data[start:s.at])
	if !ok {
		return refuse(FailBadJSON, "a key contains an unpaired surrogate")
	}
	s.space()
	if !s.accept(':') {
		return s.syntax()
	}
	s.space()
	start = s.at
	if !s.value(0) {
		return s.syntax()
	}
	raw := s.data[start:s.at]
	s.space()
	for i := range o.n {
		if bytes.Equal(o.fields[i].name, name) {
			return refuse(FailBadJSON, "the key %q occurs twice", clip(name))
		}
	}
	if o.n == maxFields {
		return refuse(FailUnknownField, "a message has at most %d fields", maxFields)
	}
	o.fields[o.n] = field{name: name, raw: raw}
	o.n++
	return nil
}

func (o *object) fail(e *Error) {
	if o.err == nil {
		o.err = e
	}
}

// has reports whether the field is present.
func (o *object) has(name string) bool {
	for i := range o.n {
		if string(o.fields[i].name) == name {
			return true
		}
	}
	return false
}

// raw returns the value of a field. If the field is missing, it records an error and returns nil.
func (o *object) raw(name string) []byte {
	for i := range o.n {
		if string(o.fields[i].name) == name {
			o.fields[i].read = true
			return o.fields[i].raw
		}
	}
	o.fail(refuse(FailMissingField, "the field %q is missing", name))
	return nil
}

// text decodes a string of at most most bytes.
func (o *object) text(name string, most int) string {
	raw := o.raw(name)
	if raw == nil {
		return ""
	}
	if raw[0] != '"' {
		o.fail(refuse(FailBadType, "%q must be a string", name))
		return ""
	}
	// An escape takes at most six bytes for each byte of text.
	if len(raw) > 6*most+2 {
		o.fail(refuse(FailBadValue, "%q is longer than %d bytes", name, most))
		return ""
	}
	text, ok := unquote(raw)
	if !ok {
		o.fail(refuse(FailBadJSON, "%q contains an unpaired surrogate", name))
		return ""
	}
	if len(text) > most {
		o.fail(refuse(FailBadValue, "%q is longer than %d bytes", name, most))
		return ""
	}
	return string(text)
}

// integer decodes a whole number from low to high, both inclusive. It accepts 3.0 and 3e0 as whole numbers, because
// Python and C# print floats so.
func (o *object) integer(name string, low, high int64) int64 {
	raw := o.raw(name)
	if raw == nil {
		return 0
	}
	v, err := wholeNumber(raw, name, low, high)
	if err != nil {
		o.fail(err)
	}
	return v
}

// unsigned decodes a whole number from 0 to 2⁶⁴−1.
func (o *object) unsigned(name string) uint64 {
	raw := o.raw(name)
	if raw == nil {
		return 0
	}
	if v, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
		return v
	}
	v, err := wholeNumber(raw, name, 0, math.MaxInt64)
	if err != nil {
		o.fail(err)
	}
	return uint64(v)
}

// float decodes a finite number.
func (o *object) float(name string) float64 {
	raw := o.raw(name)
	if raw == nil {
		return 0
	}
	v, err := finiteNumber(raw, name, 64)
	if err != nil {
		o.fail(err)
	}
	return v
}

// float32 decodes a number that is finite as a float32.
func (o *object) float32(name string) float32 {
	raw := o.raw(name)
	if raw == nil {
		return 0
	}
	v, err := finiteNumber(raw, name, 32)
	if err != nil {
		o.fail(err)
	}
	return float32(v)
}

// chunk decodes [X, Z].
func (o *object) chunk(name string) grid.ChunkPos {
	raw := o.raw(name)
	if raw == nil {
		return grid.ChunkPos{}
	}
	at, err := parseChunkPos(raw, name)
	if err != nil {
		o.fail(err)
	}
	return at
}

// pose decodes the five fields of a Pose.
func (o *object) pose() Pose {
	p := Pose{X: o.float("x"), Y: o.float("y"), Z: o.float("z"), Yaw: o.float32("yaw"), Pitch: o.float32("pitch")}
	if err := p.check(); err != nil {
		o.fail(err)
	}
	return p
}

// done returns the first error, or an error that names a field that was not decoded.
func (o *object) done() error {
	if o.err != nil {
		return o.err
	}
	for i := range o.n {
		if !o.fields[i].read {
			return refuse(FailUnknownField, "the message has no field %q", clip(o.fields[i].name))
		}
	}
	return nil
}

// parseChunkPos parses [X, Z] within the world.
func parseChunkPos(raw []byte, name string) (grid.ChunkPos, *Error) {
	var xz [2]float64
	n, err := parseNumbers(raw, name, xz[:])
	if err != nil {
		return grid.ChunkPos{}, err
	}
	if n != 2 {
		return grid.ChunkPos{}, refuse(FailBadValue, "%s must be two numbers, [X, Z]", name)
	}
	return chunkPosOf(xz[0], xz[1], name)
}

// chunkPosOf returns the chunk at whole numbers within the world, or an error.
func chunkPosOf(x, z float64, name string) (grid.ChunkPos, *Error) {
	const most = float64(grid.Limit)
	if x != math.Trunc(x) || z != math.Trunc(z) || x < -most || x >= most || z < -most || z >= most {
		return grid.ChunkPos{}, refuse(FailBadValue, "%s must be whole numbers from %d to %d", name, -int64(grid.Limit), int64(grid.Limit)-1)
	}
	return grid.ChunkPos{X: int32(x), Z: int32(z)}, nil
}

// parseNumbers parses an array of finite numbers into dst and returns their count. raw must have been scanned before,
// so that its syntax is valid.
func parseNumbers(raw []byte, name string, dst []float64) (int, *Error) {
	if raw[0] != '[' {
		return 0, refuse(FailBadType, "%s must be an array of numbers", name)
	}
	s := scanner{data: raw, at: 1}
	n := 0
	for s.space(); !s.accept(']'); s.space() {
		if n > 0 {
			s.accept(',')
			s.space()
		}
		start := s.at
		if !s.number() {
			return 0, refuse(FailBadType, "%s must be an array of numbers", name)
		}
		if n == len(dst) {
			return 0, refuse(FailBadValue, "%s has more than %d numbers", name, len(dst))
		}
		v, err := finiteNumber(raw[start:s.at], name, 64)
		if err != nil {
			return 0, err
		}
		dst[n] = v
		n++
	}
	return n, nil
}

// finiteNumber parses a number that fits a float of the given size.
func finiteNumber(raw []byte, name string, bits int) (float64, *Error) {
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, refuse(FailBadType, "%q must be a number", name)
	}
	v, err := strconv.ParseFloat(string(raw), bits)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, refuse(FailBadValue, "%q is too large: %s", name, clip(raw))
	}
	return v, nil
}

// wholeNumber parses an integer, written as one or as a float without a fraction.
func wholeNumber(raw []byte, name string, low, high int64) (int64, *Error) {
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, ferr := finiteNumber(raw, name, 64)
		if ferr != nil {
			return 0, ferr
		}
		const exact = 1 << 53 // above it, a float does not represent every integer exactly
		if f != math.Trunc(f) || f < -exact || f > exact {
			return 0, refuse(FailBadValue, "%q must be a whole number from %d to %d", name, low, high)
		}
		v = int64(f)
	}
	if v < low || v > high {
		return 0, refuse(FailBadValue, "%q must be a whole number from %d to %d", name, low, high)
	}
	return v, nil
}
