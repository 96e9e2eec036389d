package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
)

// FuzzParseJSON checks that encoding/json finds the same fields.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,-0.5e+3,{"b":null}],"c":"\u00e9\\"}`, `{"a":"\ud800"}`, `{"a":01}`, `{"a":1,}`, "{\"a\":\"\x1f\"}", `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var o Object
		if err := o.ParseJSON(data); err != nil {
			return // an *Error, by its type
		}
		var theirs map[string]json.RawMessage
		if err := json.Unmarshal(data, &theirs); err != nil {
			t.Fatalf("%q is accepted; encoding/json: %v", data, err)
		}
		if len(theirs) != o.n {
			t.Fatalf("%q has %d fields, encoding/json has %d", data, o.n, len(theirs))
		}
		for _, field := range o.fields[:o.n] {
			raw, ok := theirs[string(field.name)]
			var want string
			switch {
			case !ok:
				t.Fatalf("%q has the field %q, encoding/json does not have it", data, field.name)
			case field.kind == kindBroken:
			case field.kind != kindText && !bytes.Equal(raw, field.text):
				t.Fatalf("field %q of %q is %q, encoding/json has %q", field.name, data, field.text, raw)
			case field.kind == kindText && (json.Unmarshal(raw, &want) != nil || want != string(field.text)):
				t.Fatalf("%s is %q, encoding/json has %q", raw, field.text, want)
			}
		}
	})
}

// FuzzParseCBOR checks that the general decoder finds the same fields.
func FuzzParseCBOR(f *testing.F) {
	for _, seed := range []any{
		map[string]any{},
		map[string]any{"a": 1, "b": -1 << 40, "c": "text", "d": 1.5, "e": 1e300, "f": true, "g": nil, "h": uint64(math.MaxUint64)},
		map[string]any{"a": []int{1}},
		map[string]any{"a": []byte{1}},
		map[int]int{1: 2},
		map[string]float64{"a": math.NaN()},
		"text",
	} {
		b, err := CBOREncoding.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("\xa2\x61a\x01\x61a\x01")) // the same key twice
	f.Add([]byte("\xbf\x61a\x01\xff"))
	f.Add([]byte("\xa1\x61a\xc0\x61b")) // a tag
	f.Fuzz(func(t *testing.T, data []byte) {
		var o Object
		if err := o.ParseCBOR(data); err != nil {
			return // an *Error, by its type
		}
		var theirs map[string]any
		if err := CBORDecoding.Unmarshal(data, &theirs); err != nil {
			t.Fatalf("%x is accepted; the general decoder: %v", data, err)
		}
		if len(theirs) != o.n {
			t.Fatalf("%x has %d fields, the general decoder has %d", data, o.n, len(theirs))
		}
		for _, field := range o.fields[:o.n] {
			same := false
			switch v := theirs[string(field.name)].(type) {
			case uint64:
				same = field.kind == kindUnsigned && field.n == v
			case int64:
				same = field.kind == kindNegative && -1-int64(field.n) == v
			case float64:
				same = field.kind == kindFloat && math.Float64frombits(field.n) == v
			case string:
				same = field.kind == kindText && string(field.text) == v
			case bool:
				same = field.kind == kindBool && field.n == 1 == v
			default: // null, and negative numbers of 65 bits
				same = field.kind == kindOther || field.kind == kindNegative && field.n > math.MaxInt64
			}
			if !same {
				t.Fatalf("field %q of %x is %+v, the general decoder has %v", field.name, data, field, theirs[string(field.name)])
			}
		}
	})
}

// Both encodings accept a whole number in any form that holds it exactly.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{{uint64(math.MaxUint64), ""}, {7, ""}, {-7, ""}, {3.0, ""}, {-3.0, ""}, {0.5, FailBadValue}, {1e300, FailBadValue}, {"7", FailBadType}, {nil, FailBadType}, {true, FailBadType}} {
		text, err := json.Marshal(map[string]any{"v": c.v})
		if err != nil {
			t.Fatal(err)
		}
		binary, err := CBOREncoding.Marshal(map[string]any{"v": c.v})
		if err != nil {
			t.Fatal(err)
		}
		var j, b Object
		if err := j.ParseJSON(text); err != nil {
			t.Fatal(err)
		}
		if err := b.ParseCBOR(binary); err != nil {
			t.Fatal(err)
		}
		read := func(o *Object) (whole int64, n uint64) {
			if v, ok := c.v.(uint64); ok && v > math.MaxInt64 {
				return 0, o.Unsigned("v")
			}
			return o.Integer("v", math.MinInt32, math.MaxInt32), 0
		}
		jv, jn := read(&j)
		bv, bn := read(&b)
		if jv != bv || jn != bn {
			t.Errorf("%v is %d %d in JSON, %d %d in CBOR", c.v, jv, jn, bv, bn)
		}
		for _, o := range []*Object{&j, &b} {
			if code := codeOf(o.Err); code != c.want {
				t.Errorf("%v: %q, want %q", c.v, code, c.want)
			}
		}
	}
}

func codeOf(err *Error) string {
	if err == nil {
		return ""
	}
	return err.Code
}
