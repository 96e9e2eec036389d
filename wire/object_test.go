package wire

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzScanner compares the scanner with encoding/json.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,-0.5e+3,{"b":null}],"c":"\u00e9\\"}`, `{"a":"\ud800"}`, `{"a":01}`, `{"a":1,}`, "{\"a\":\"\x1f\"}", `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var o Object
		if err := o.Parse(data); err != nil {
			return // an *Error, by its type
		}
		var theirs map[string]json.RawMessage
		if err := json.Unmarshal(data, &theirs); err != nil {
			t.Fatalf("%q is taken; encoding/json: %v", data, err)
		}
		if len(theirs) != o.n {
			t.Fatalf("%q has %d fields, encoding/json sees %d", data, o.n, len(theirs))
		}
		for _, field := range o.fields[:o.n] {
			if raw, ok := theirs[string(field.name)]; !ok || !bytes.Equal(raw, field.raw) {
				t.Fatalf("field %q of %q is %q, encoding/json sees %q", field.name, data, field.raw, raw)
			}
			if field.raw[0] == '"' {
				text, ok := Unquote(field.raw)
				var want string
				if err := json.Unmarshal(field.raw, &want); err != nil || ok && string(text) != want {
					t.Fatalf("%s is %q, encoding/json says %q, %v", field.raw, text, want, err)
				}
			}
		}
	})
}
