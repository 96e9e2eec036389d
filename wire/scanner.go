package wire

import (
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON that a client may send; no message nests deeper than two.
const maxDepth = 8

// scanner walks over JSON text (RFC 8259) and checks its syntax. Each method moves past the element that it names and
// reports whether it was there. encoding/json is not used for untrusted input: it accepts duplicate keys, keys in
// another case and broken UTF-8.
type scanner struct {
	data []byte
	at   int
}

func (s *scanner) syntax() *Error {
	if s.at >= len(s.data) {
		return refuse(FailBadJSON, "the JSON text ends too early")
	}
	return refuse(FailBadJSON, "bad JSON at byte %d", s.at)
}

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) accept(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) word(w string) bool {
	if len(s.data)-s.at >= len(w) && string(s.data[s.at:s.at+len(w)]) == w {
		s.at += len(w)
		return true
	}
	return false
}

func (s *scanner) value(depth int) bool {
	if s.at >= len(s.data) || depth > maxDepth {
		return false
	}
	switch s.data[s.at] {
	case '"':
		return s.string()
	case '{':
		return s.nested('}', depth, true)
	case '[':
		return s.nested(']', depth, false)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

// nested walks over an array or an object, from its opening bracket.
func (s *scanner) nested(end byte, depth int, keyed bool) bool {
	s.at++
	s.space()
	if s.accept(end) {
		return true
	}
	for {
		if keyed {
			if !s.string() {
				return false
			}
			s.space()
			if !s.accept(':') {
				return false
			}
			s.space()
		}
		if !s.value(depth + 1) {
			return false
		}
		s.space()
		if s.accept(end) {
			return true
		}
		if !s.accept(',') {
			return false
		}
		s.space()
	}
}

func (s *scanner) string() bool {
	if !s.accept('"') {
		return false
	}
	for s.at < len(s.data) {
		c := s.data[s.at]
		s.at++
		switch {
		case c == '"':
			return true
		case c < 0x20:
			s.at--
			return false
		case c == '\\':
			if s.at >= len(s.data) {
				return false
			}
			e := s.data[s.at]
			s.at++
			switch e {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if _, ok := hex4(s.data[s.at:]); !ok {
					return false
				}
				s.at += 4
			default:
				return false
			}
		}
	}
	return false
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}

func (s *scanner) number() bool {
	s.accept('-')
	if !s.accept('0') && !s.digits() {
		return false
	}
	if s.accept('.') && !s.digits() {
		return false
	}
	if s.accept('e') || s.accept('E') {
		if !s.accept('+') {
			s.accept('-')
		}
		return s.digits()
	}
	return true
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unquote returns the text of a scanned string; quoted includes the quotes. It fails on an unpaired surrogate, which
// UTF-8 cannot represent. Without escapes the result shares memory with quoted.
func unquote(quoted []byte) ([]byte, bool) {
	body := quoted[1 : len(quoted)-1]
	plain := !slices.Contains(body, '\\')
	if plain {
		return body, true
	}
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		if body[i] != '\\' {
			out = append(out, body[i])
			i++
			continue
		}
		e := body[i+1]
		i += 2
		switch e {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(body[i:])
			i += 4
			if utf16.IsSurrogate(r) {
				if len(body)-i < 6 || body[i] != '\\' || body[i+1] != 'u' {
					return nil, false
				}
				low, _ := hex4(body[i+2:])
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					return nil, false
				}
				i += 6
			}
			out = utf8.AppendRune(out, r)
		default: // '"', '\\' and '/' stand for themselves
			out = append(out, e)
		}
	}
	return out, true
}
