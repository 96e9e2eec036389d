package sessionmsg

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/voxelpopuli/voxeld/wire"
)

// Over TCP each message of a session in CBOR, binary ones included, is prefixed with its length, a varint of at most
// four bytes. Over WebSocket it is a binary message without a prefix.

// AppendMessage appends a message with its length prefix.
func AppendMessage(dst, message []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(message))), message...)
}

// ReadMessage reads a message that AppendMessage wrote, of 1 to most bytes, into buf, which grows if necessary. A
// length out of bounds is an *Error. Between messages the end of the stream is a bare io.EOF.
func ReadMessage(r *bufio.Reader, buf []byte, most int) ([]byte, error) {
	size, shift := uint64(0), 0
	for {
		b, err := r.ReadByte()
		if err != nil {
			if shift > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		size |= uint64(b&0x7f) << shift
		if shift += 7; b < 0x80 {
			break
		}
		if shift > 21 {
			return nil, wire.Refuse(wire.FailTooLong, "the length of a message has at most four bytes")
		}
	}
	if size == 0 || size > uint64(most) {
		return nil, wire.Refuse(wire.FailTooLong, "a message of %d bytes; want 1 to %d", size, most)
	}
	return wire.ReadBody(r, buf, int(size))
}
