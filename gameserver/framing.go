package gameserver

import (
	"bufio"
	"encoding/binary"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// framing is how messages are carried on a stream of bytes.
type framing interface {
	// read reads the next message, into the buffer if there is room.
	read(in *bufio.Reader, buffer []byte) (message []byte, err error)
	// append appends a message in its frame.
	append(dst, message []byte) []byte
}

// binaryFraming is a framing of sessions in CBOR: the frame loop composes messages in it, and the poller reads moves.
// The length of a message precedes it.
type binaryFraming interface {
	framing
	// split copies the first message of what was received to the buffer, and returns it and its size with its frame.
	// The size is 0 if it must be read with read.
	split(received, buffer []byte) (message []byte, size int)
	// appendHead appends what precedes a message of so many bytes.
	appendHead(dst []byte, size int) []byte
}

// lines are messages that end with a newline: JSON over TCP.
type lines struct{}

func (lines) read(in *bufio.Reader, _ []byte) ([]byte, error) { return wire.ReadLine(in, wire.MaxLine) }
func (lines) append(dst, message []byte) []byte               { return append(append(dst, message...), '\n') }

// packets are lines, too, and include their newline: the original protocol.
type packets struct{ lines }

func (packets) append(dst, message []byte) []byte { return append(dst, message...) }

// prefixed are messages after their length: CBOR over TCP.
type prefixed struct{}

func (prefixed) read(in *bufio.Reader, buffer []byte) ([]byte, error) {
	return sessionmsg.ReadMessage(in, buffer, wire.MaxLine)
}

func (prefixed) append(dst, message []byte) []byte { return sessionmsg.AppendMessage(dst, message) }

func (prefixed) split(received, buffer []byte) (message []byte, size int) {
	n, head := binary.Uvarint(received)
	if head <= 0 || n == 0 || n > uint64(len(received)-head) {
		return nil, 0
	}
	size = head + int(n) //nolint:gosec // at most what was received
	return append(buffer[:0], received[head:size]...), size
}

func (prefixed) appendHead(dst []byte, size int) []byte {
	return binary.AppendUvarint(dst, uint64(size)) //nolint:gosec // a length
}
