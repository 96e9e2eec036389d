package crowd

import (
	"time"

	"golang.org/x/sys/unix"
)

// Silences is how long players at a spot received nothing, since the last call of TakeSilences. Players elsewhere do not count: a client
// is sent a frame only if something that it sees moves otherwise than it extrapolates, and away from the spot hardly anything does.
type Silences struct {
	There   int           // players who are at the spot, and walk
	Longest time.Duration // in which one of them received nothing
	Over    int           // silences of more than 250 ms
}

// longSilence is the length above which silences are counted.
const longSilence = 250 * time.Millisecond

// poll notices when something arrives at sockets, without reading it.
type poll struct {
	fd     int // of epoll; 0: not open
	events [1024]unix.EpollEvent
	ready  []int
}

// add adds a player's socket.
func (e *poll) add(number, socket int) error {
	if e.fd == 0 {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return err
		}
		e.fd = fd
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(number)}
	return unix.EpollCtl(e.fd, unix.EPOLL_CTL_ADD, socket, &event)
}

// wait returns the players at whose sockets something has arrived since the last call.
func (e *poll) wait() []int {
	e.ready = e.ready[:0]
	if e.fd == 0 {
		return nil
	}
	n, err := unix.EpollWait(e.fd, e.events[:], 0)
	if err != nil {
		return nil // interrupted: the next call has them
	}
	for _, event := range e.events[:n] {
		e.ready = append(e.ready, int(event.Fd))
	}
	return e.ready
}

func (e *poll) close() {
	if e.fd != 0 {
		unix.Close(e.fd) //nolint:errcheck // nothing is lost with it
	}
}
