package wire

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of a value that a client may send in JSON; no message nests deeper than two.
const maxDepth = 8

// ParseJSON parses data as exactly one JSON object with distinct keys, surrounded by nothing but white space. It does
// not compare the keys of nested objects: no message has any.
func (o *Object) ParseJSON(data []byte) *Error {
	if !utf8.Valid(data) {
		return Refuse(FailBadJSON, "the message is not valid UTF-8")
	}
	d := newDecoder(data)
	if d.PeekKind() != '{' {
		return Refuse(FailBadJSON, "the message is not a JSON object")
	}
	if _, err := d.ReadToken(); err != nil {
		return syntaxError(err)
	}
	for d.PeekKind() != '}' {
		quoted, err := readValue(d, data)
		if err != nil {
			return err
		}
		name, ok := unquote(quoted)
		if !ok {
			return Refuse(FailBadJSON, "a key contains an unpaired surrogate")
		}
		f, err := o.add(name, FailBadJSON)
		if err != nil {
			return err
		}
		if f.text, err = readValue(d, data); err != nil {
			return err
		}
		switch c := f.text[0]; {
		case c == '"':
			if f.text, ok = unquote(f.text); ok {
				f.kind = kindText
			} else {
				f.kind = kindBroken
			}
		case c == 't':
			f.kind, f.n = kindBool, 1
		case c == 'f':
			f.kind = kindBool
		case c == '-' || c >= '0' && c <= '9':
			f.kind = kindLiteral
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return syntaxError(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return Refuse(FailBadJSON, "more than one JSON value in a message")
	}
	return nil
}

// readValue reads a key or a value of the outermost object, and returns its bytes.
func readValue(d *jsontext.Decoder, data []byte) ([]byte, *Error) {
	start := d.InputOffset()
	for {
		if _, err := d.ReadToken(); err != nil {
			return nil, syntaxError(err)
		}
		switch depth := d.StackDepth(); {
		case depth == 1:
			return bytes.TrimLeft(data[start:d.InputOffset()], " \t\r\n,:"), nil
		case depth > 1+maxDepth:
			return nil, Refuse(FailBadJSON, "bad JSON at byte %d: nested more than %d deep", d.InputOffset(), maxDepth)
		}
	}
}

// unquote returns the text of a string in JSON. It fails on an unpaired surrogate, which UTF-8 cannot represent.
func unquote(quoted []byte) (text []byte, ok bool) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], true // without a copy
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	return text, err == nil
}
