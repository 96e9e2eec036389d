package legacymsg

import (
	"bufio"
	"errors"
	"io"

	"github.com/voxelpopuli/voxeld/wire"
)

// readValue reads one JSON object or array up to its closing bracket, and no byte after it. It skips leading white
// space. It balances brackets outside of strings and checks nothing else. At the end of the stream it returns io.EOF,
// or io.ErrUnexpectedEOF within the value.
func readValue(r *bufio.Reader, open byte, most int) ([]byte, error) {
	var value []byte
	depth, quoted, escaped := 0, false, false
	for read := 0; ; read++ {
		c, err := r.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) && len(value) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if read == most {
			return nil, wire.Refuse(wire.FailTooLong, "a JSON value has at most %d bytes here", most)
		}
		if len(value) == 0 {
			switch c {
			case ' ', '\t', '\r', '\n':
				continue
			case open:
			default:
				return nil, wire.Refuse(wire.FailBadJSON, "a JSON value must begin with %q here, not with %q", open, c)
			}
		}
		value = append(value, c)
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped = c == '\\'
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return value, nil
			}
		}
	}
}

// skipLineEnd consumes a line end that has already arrived, and does not wait for one. A later one is a blank line,
// which the readers of lines and queries ignore.
func skipLineEnd(r *bufio.Reader) error {
	for r.Buffered() > 0 {
		next, err := r.Peek(1)
		if err != nil {
			return err
		}
		if next[0] != '\r' && next[0] != '\n' {
			return nil
		}
		end := next[0] == '\n'
		if _, err := r.Discard(1); err != nil || end {
			return err
		}
	}
	return nil
}
