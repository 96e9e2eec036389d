package gameserver

import (
	"io"
	"net"
	"testing"

	"github.com/voxelpopuli/voxeld/gameserver/outbox"
)

// BenchmarkSessionWrite measures the last part of a frame's way: from a session's outbox through its writer into a real TCP
// socket, the system call included. The frame is that of 100 avatars that move.
func BenchmarkSessionWrite(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		c, err := l.Accept()
		if err != nil {
			return
		}
		io.Copy(io.Discard, c) //nolint:errcheck // until the other side closes
		c.Close()
	}()
	socket, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		socket.Close()
		<-drained
		l.Close()
	}()
	c := &streamConn{Conn: socket, framing: lines{}}
	out, piece := outbox.New(func() {}), make([]byte, 100*120)
	var d outbox.Writer
	b.ReportAllocs()
	for tick := uint64(1); b.Loop(); tick++ {
		out.Piece(tick, piece)
		if err := d.WriteNext(out, c); err != nil {
			b.Fatal(err)
		}
	}
}
