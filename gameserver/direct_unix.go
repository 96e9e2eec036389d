//go:build unix

package gameserver

import (
	"errors"
	"net"
	"syscall"
)

// direct writes to a TCP socket, which Go keeps in non-blocking mode, without ever waiting for it.
type direct struct {
	line *lineConn
	raw  syscall.RawConn
	call func(fd uintptr) // made once: it would be an allocation for each frame
	data []byte
	n    int
	err  error
}

// promptly gives the short way to a connection; nil if it has none.
func promptly(c *lineConn) prompter {
	socket, ok := c.Conn.(*net.TCPConn)
	if !ok || !c.framed {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil // it is closed, which its reader finds
	}
	d := &direct{line: c, raw: raw}
	d.call = d.write
	return d
}

func (d *direct) try(data []byte) (n int, err error) {
	d.data, d.n, d.err = data, 0, nil
	err = d.raw.Control(d.call)
	d.data = nil
	return d.n, errors.Join(err, d.err)
}

func (d *direct) write(fd uintptr) {
	n, err := syscall.Write(int(fd), d.data)
	for err == syscall.EINTR {
		n, err = syscall.Write(int(fd), d.data)
	}
	if d.n = max(n, 0); err != syscall.EAGAIN {
		d.err = err
	}
}

func (d *direct) keep(data []byte) { d.line.out = append(d.line.out[:0], data...) }
