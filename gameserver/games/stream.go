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

// readEvery is the least time between two reads: a little more than that between two moves of a client. So what is read
// is there, and no wait for each move has to be ended. Servers of these games look at what clients have sent about as
// often.
const readEvery = 60 * time.Millisecond

// pacedConn is a connection that is not read more often than readEvery.
type pacedConn struct {
	net.Conn
	last time.Time // when the last read ended
}

// Read waits until it is time.
func (c *pacedConn) Read(b []byte) (n int, err error) {
	time.Sleep(readEvery - time.Since(c.last))
	n, err = c.Conn.Read(b)
	c.last = time.Now()
	return n, err
}

// CloseWrite ends the stream, if the connection can do so in one direction.
func (c *pacedConn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
