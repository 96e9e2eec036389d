package games

import (
	"net"
	"time"
)

// writeTimeout bounds one write to a client.
const writeTimeout = 10 * time.Second

// Deadlined is a connection each of whose writes is bounded.
type Deadlined struct{ net.Conn }

// Write writes with a deadline.
func (d Deadlined) Write(b []byte) (int, error) {
	if err := d.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return d.Conn.Write(b)
}

// CloseInOrder ends what is sent, and makes reads return. The gateway closes the connection when the client has read the rest.
func CloseInOrder(c net.Conn) error {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return c.Close()
	}
	if err := half.CloseWrite(); err != nil {
		return err
	}
	return c.SetReadDeadline(time.Now())
}
