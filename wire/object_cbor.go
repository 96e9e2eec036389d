package wire

import (
	"math"
	"unicode/utf8"
)

// ParseCBOR parses data as exactly one CBOR map with distinct texts as keys, and with texts, numbers, booleans or null
// as values. It refuses indefinite lengths, tags, NaN, infinities and bad UTF-8. It does without reflection, because a
// builder's session consists of edits.
func (o *Object) ParseCBOR(data []byte) *Error {
	n, b, ok := CutCBORHead(data, CBORMap)
	if !ok {
		return Refuse(FailBadCBOR, "the message is not a CBOR map")
	}
	for range n {
		var name []byte
		if name, b, ok = cutCBORText(b); !ok || len(b) == 0 {
			return Refuse(FailBadCBOR, "bad key at byte %d", len(data)-len(b))
		}
		f, err := o.add(name, FailBadCBOR)
		if err != nil {
			return err
		}
		switch major := b[0] & cborMajor; major {
		case CBORUnsigned:
			f.kind = kindUnsigned
			f.n, b, ok = CutCBORHead(b, major)
		case CBORNegative:
			f.kind = kindNegative
			f.n, b, ok = CutCBORHead(b, major)
		case CBORText:
			f.kind = kindText
			f.text, b, ok = cutCBORText(b)
		case cborSimple:
			b, ok = f.cutSimple(b)
		case CBORBytes, CBORArray, CBORMap:
			return Refuse(FailBadType, "the field %q must be a text, a number or a boolean", Clip(name))
		default:
			ok = false
		}
		if !ok {
			return Refuse(FailBadCBOR, "bad value at byte %d", len(data)-len(b))
		}
	}
	if len(b) != 0 {
		return Refuse(FailBadCBOR, "more than one CBOR value in a message")
	}
	return nil
}

func cutCBORText(b []byte) (text, rest []byte, ok bool) {
	n, rest, ok := CutCBORHead(b, CBORText)
	if !ok || n > uint64(len(rest)) || !utf8.Valid(rest[:n]) {
		return nil, b, false
	}
	return rest[:n], rest[n:], true
}

// cutSimple decodes a finite float, a boolean or null.
func (f *field) cutSimple(b []byte) (rest []byte, ok bool) {
	value, rest, ok := CutCBORHead(b, cborSimple)
	if !ok || len(b)-len(rest) == 1 {
		if value == cborFalse || value == cborTrue {
			f.kind, f.n = kindBool, value-cborFalse
		}
		return rest, ok
	}
	if len(b)-len(rest) == 2 { // another simple value, which the decoder below would take for a number
		return b, false
	}
	var v float64
	if err := CBORDecoding.Unmarshal(b[:len(b)-len(rest)], &v); err != nil {
		return b, false
	}
	f.kind, f.n = kindFloat, math.Float64bits(v)
	return rest, true
}
