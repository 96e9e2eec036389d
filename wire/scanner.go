package wire

import (
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON that a client may send; no message nests deeper than two.
const maxDepth = 8

// Scanner walks over JSON text (RFC 8259) and checks its syntax. Each method moves past the element that it names and
// reports whether it was there. encoding/json is not used for untrusted input: it accepts duplicate keys, keys in
// another case and broken UTF-8.
type Scanner struct {
	Data []byte
	At   int
}

// SyntaxError returns the error for invalid JSON at the current position.
func (s *Scanner) SyntaxError() *Error {
	if s.At >= len(s.Data) {
		return Refuse(FailBadJSON, "the JSON text ends too early")
	}
	return Refuse(FailBadJSON, "bad JSON at byte %d", s.At)
}

// SkipSpace skips white space.
func (s *Scanner) SkipSpace() {
	for s.At < len(s.Data) {
		switch s.Data[s.At] {
		case ' ', '\t', '\n', '\r':
			s.At++
		default:
			return
		}
	}
}

// Accept skips the byte c, and reports whether it was next.
func (s *Scanner) Accept(c byte) bool {
	if s.At < len(s.Data) && s.Data[s.At] == c {
		s.At++
		return true
	}
	return false
}

func (s *Scanner) word(w string) bool {
	if len(s.Data)-s.At >= len(w) && string(s.Data[s.At:s.At+len(w)]) == w {
		s.At += len(w)
		return true
	}
	return false
}

// SkipValue skips a value of any kind.
func (s *Scanner) SkipValue(depth int) bool {
	if s.At >= len(s.Data) || depth > maxDepth {
		return false
	}
	switch s.Data[s.At] {
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
		return s.SkipNumber()
	}
}

// nested walks over an array or an object, from its opening bracket.
func (s *Scanner) nested(end byte, depth int, keyed bool) bool {
	s.At++
	s.SkipSpace()
	if s.Accept(end) {
		return true
	}
	for {
		if keyed {
			if !s.string() {
				return false
			}
			s.SkipSpace()
			if !s.Accept(':') {
				return false
			}
			s.SkipSpace()
		}
		if !s.SkipValue(depth + 1) {
			return false
		}
		s.SkipSpace()
		if s.Accept(end) {
			return true
		}
		if !s.Accept(',') {
			return false
		}
		s.SkipSpace()
	}
}

func (s *Scanner) string() bool {
	if !s.Accept('"') {
		return false
	}
	for s.At < len(s.Data) {
		c := s.Data[s.At]
		s.At++
		switch {
		case c == '"':
			return true
		case c < 0x20:
			s.At--
			return false
		case c == '\\':
			if s.At >= len(s.Data) {
				return false
			}
			e := s.Data[s.At]
			s.At++
			switch e {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if _, ok := hex4(s.Data[s.At:]); !ok {
					return false
				}
				s.At += 4
			default:
				return false
			}
		}
	}
	return false
}

func (s *Scanner) digits() bool {
	start := s.At
	for s.At < len(s.Data) && s.Data[s.At] >= '0' && s.Data[s.At] <= '9' {
		s.At++
	}
	return s.At > start
}

// SkipNumber skips a number.
func (s *Scanner) SkipNumber() bool {
	s.Accept('-')
	if !s.Accept('0') && !s.digits() {
		return false
	}
	if s.Accept('.') && !s.digits() {
		return false
	}
	if s.Accept('e') || s.Accept('E') {
		if !s.Accept('+') {
			s.Accept('-')
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

// Unquote returns the text of a scanned string; quoted includes the quotes. It fails on an unpaired surrogate, which
// UTF-8 cannot represent. Without escapes the result shares memory with quoted.
func Unquote(quoted []byte) ([]byte, bool) {
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
