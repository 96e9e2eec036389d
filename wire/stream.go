package wire

import (
	"bufio"
	"errors"
	"io"
)

// ReadLine returns a copy of the next line that is not blank, without its end ("\n" or "\r\n"). A line of more than
// most bytes is an *Error, returned without waiting for the line's end; the stream cannot be used any more then. At the
// end of the stream it returns io.EOF, or io.ErrUnexpectedEOF within a line.
func ReadLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		// Up to two bytes more than most may be the line's end.
		if len(line)+len(part) > most+2 {
			return nil, Refuse(FailTooLong, "a line has at most %d bytes", most)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			end := len(line) - 1
			if end > 0 && line[end-1] == '\r' {
				end--
			}
			if end > most {
				return nil, Refuse(FailTooLong, "a line has at most %d bytes", most)
			}
			if end > 0 {
				return line[:end], nil
			}
			line = line[:0]
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// ReadValue reads one JSON object or array up to its closing bracket, and no byte after it. It skips leading white
// space. It balances brackets outside of strings and checks nothing else. At the end of the stream it returns io.EOF,
// or io.ErrUnexpectedEOF within the value.
func ReadValue(r *bufio.Reader, open byte, most int) ([]byte, error) {
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
			return nil, Refuse(FailTooLong, "a JSON value has at most %d bytes here", most)
		}
		if len(value) == 0 {
			switch c {
			case ' ', '\t', '\r', '\n':
				continue
			case open:
			default:
				return nil, Refuse(FailBadJSON, "a JSON value must begin with %q here, not with %q", open, c)
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

// SkipLineEnd consumes a line end that has already arrived, and does not wait for one. A later one is a blank line,
// which the readers of lines and queries ignore.
func SkipLineEnd(r *bufio.Reader) error {
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
