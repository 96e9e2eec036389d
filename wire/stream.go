package wire

import (
	"bufio"
	"errors"
	"io"
	"slices"
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

// ReadBody reads size bytes into buf, which grows as bytes arrive, whatever size claims. If the stream ends before, the
// error is io.ErrUnexpectedEOF.
func ReadBody(r io.Reader, buf []byte, size int) ([]byte, error) {
	buf = buf[:0]
	for len(buf) < size {
		start := len(buf)
		if start == cap(buf) {
			buf = slices.Grow(buf, min(size-start, max(4<<10, start)))
		}
		buf = buf[:min(size, cap(buf))]
		if _, err := io.ReadFull(r, buf[start:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return buf, nil
}

// Guard is called with the number of bytes of a frame that have not arrived yet. It returns a function that is called
// when they have arrived, or the stream has ended; or an error, which ends the reading. Nil guards nothing.
type Guard func(missing int) (done func(), err error)

// GuardOf returns the guard of a stream: its method Guard, or nil.
func GuardOf(stream any) Guard {
	if guarded, ok := stream.(interface{ Guard(int) (func(), error) }); ok {
		return guarded.Guard
	}
	return nil
}

// ReadBody is ReadBody with the guard.
func (g Guard) ReadBody(r *bufio.Reader, buf []byte, size int) ([]byte, error) {
	if missing := size - r.Buffered(); missing > 0 && g != nil {
		done, err := g(missing)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	return ReadBody(r, buf, size)
}
