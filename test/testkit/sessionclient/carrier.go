package sessionclient

import (
	"bytes"
	"encoding/binary"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Carrier is how messages are framed on a connection. Pages carry them over a WebSocket. Over TCP a session in JSON is
// carried as Lines, and one in CBOR as Prefixed messages after a first line. It has no state: players of a crowd share
// one.
type Carrier interface {
	// Append appends a message in its frame.
	Append(dst, message []byte) []byte
	// Split splits the first message off what was received. Until all of it is there, message is nil and rest is all.
	// If message is nil and rest is less, something else was split off: answer, if not nil, must be sent to the server,
	// and rest is to be split again.
	Split(received []byte) (message, answer, rest []byte, err error)
}

// Lines are messages that end with a newline.
type Lines struct{}

// Append implements Carrier.
func (Lines) Append(dst, message []byte) []byte { return append(append(dst, message...), '\n') }

// Split implements Carrier.
func (Lines) Split(received []byte) (message, answer, rest []byte, err error) {
	end := bytes.IndexByte(received, '\n')
	switch {
	case end > wire.MaxServerLine, end < 0 && len(received) > wire.MaxServerLine:
		return nil, nil, nil, wire.Refuse(wire.FailTooLong, "a line has at most %d bytes", wire.MaxServerLine)
	case end < 0:
		return nil, nil, received, nil
	}
	return received[:end], nil, received[end+1:], nil
}

// Prefixed are messages after their length, seven bits a byte.
type Prefixed struct{}

// Append implements Carrier.
func (Prefixed) Append(dst, message []byte) []byte { return sessionmsg.AppendMessage(dst, message) }

// Split implements Carrier.
func (Prefixed) Split(received []byte) (message, answer, rest []byte, err error) {
	size, n := binary.Uvarint(received)
	switch {
	case n == 0 && len(received) < 4:
		return nil, nil, received, nil
	case n <= 0 || size == 0 || size > wire.MaxServerLine:
		return nil, nil, nil, wire.Refuse(wire.FailTooLong, "a message has 1 to %d bytes", wire.MaxServerLine)
	case len(received) < n+int(size):
		return nil, nil, received, nil
	}
	return received[n : n+int(size)], nil, received[n+int(size):], nil
}
