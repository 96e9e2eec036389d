package crowd

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// poll notices when something arrives at sockets, without reading it.
type poll struct {
	fd     int // of epoll; 0: not open
	events [1024]unix.EpollEvent
}

// add adds a player's socket.
func (e *poll) add(number, socket int, events uint32) error {
	if e.fd == 0 {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return err
		}
		e.fd = fd
	}
	return unix.EpollCtl(e.fd, unix.EPOLL_CTL_ADD, socket, &unix.EpollEvent{Events: events, Fd: int32(number)})
}

// wait returns what has happened; Fd of an event is the number of a player. If it returns as many events as e.events has,
// there may be more.
func (e *poll) wait() ([]unix.EpollEvent, error) {
	if e.fd == 0 {
		return nil, nil
	}
	n, err := unix.EpollWait(e.fd, e.events[:], 0)
	if err == unix.EINTR {
		return nil, nil // the next call has it
	}
	if err != nil {
		return nil, fmt.Errorf("poll sockets: %w", err)
	}
	return e.events[:n], nil
}

func (e *poll) close() {
	if e.fd != 0 {
		unix.Close(e.fd) //nolint:errcheck // nothing is lost with it
	}
}
