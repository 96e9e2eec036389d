package accept

import (
	"errors"
	"io"
	"net"
	"time"
)

// halfCloser is a connection whose directions close separately; a *net.TCPConn.
type halfCloser interface{ CloseWrite() error }

// CloseInOrder sends the end of the stream, and makes reads return. HangUp does the rest.
func CloseInOrder(c net.Conn) error {
	half, ok := c.(halfCloser)
	if !ok {
		return c.Close()
	}
	return errors.Join(half.CloseWrite(), c.SetReadDeadline(time.Now()))
}

// How long a closed connection is still read: one that no limit counts, and one whose client may be busy before it
// reads its last message.
const (
	RefusedTime  = 500 * time.Millisecond
	AdmittedTime = 3 * time.Second
)

// hangUpBytes bounds how much is still read.
const hangUpBytes = 4 << 20

// HangUp closes a connection so that the last message is delivered: closing a socket while the client still sends
// resets it, and the client may never read the reason. It returns when the client has closed it, too, or after that
// time.
func HangUp(c net.Conn, within time.Duration) {
	defer c.Close() //nolint:errcheck // done with
	half, ok := c.(halfCloser)
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(within)) != nil {
		return
	}
	io.CopyN(io.Discard, c, hangUpBytes) //nolint:errcheck // whatever the error
}
