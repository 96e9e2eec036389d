package crowd

import "golang.org/x/sys/unix"

// poll notices when something arrives at sockets, without reading it.
type poll struct {
	fd     int // of epoll; 0: not open
	events [1024]unix.EpollEvent
}

// add adds a player's socket.
func (e *poll) add(number, socket int, events uint32) (err error) {
	if e.fd == 0 {
		if e.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
			return err
		}
	}
	return unix.EpollCtl(e.fd, unix.EPOLL_CTL_ADD, socket, &unix.EpollEvent{Events: events, Fd: int32(number)})
}

// wait returns what has happened; Fd of an event is the number of a player.
func (e *poll) wait() []unix.EpollEvent {
	if e.fd == 0 {
		return nil
	}
	n, err := unix.EpollWait(e.fd, e.events[:], 0)
	if err != nil {
		return nil // interrupted: the next call has it
	}
	return e.events[:n]
}

func (e *poll) close() {
	if e.fd != 0 {
		unix.Close(e.fd) //nolint:errcheck // nothing is lost with it
	}
}
