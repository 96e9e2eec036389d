package park

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/region"
)

const (
	// pollEvery is the time between two rounds of the poller, and so how long data of parked sessions may wait. Regions get moves
	// no later for it: subscriptions do not hold these back for mirror.SendPause again.
	pollEvery = 15 * time.Millisecond
	// pollCalm replaces pollEvery after a round without a message to any region: all players follow their predictions, or send
	// nothing.
	pollCalm = region.TickEvery
	// pollEvents is the number of sockets reported by one system call.
	pollEvents = 256
	// pollBytes bounds what is read of a session in a round: its moves of some seconds.
	pollBytes = 4 << 10
)

// Poller reads the sessions whose players only walk, all that are ready in one round. So a move costs one read, instead of a
// thread's wake-up, a goroutine's, and a second read that finds nothing. Handlers handle complete moves only. On anything
// else, including the end of the connection, the socket is returned to the session's own reader.
//
// One goroutine, that of Run, makes the rounds. Sockets are parked and unparked by any goroutine.
type Poller struct {
	log       *slog.Logger
	everyMove bool        // each round has something to pass on
	epoll     int         // never changes while open
	came      wake.Signal // the first socket may have come
	events    [pollEvents]unix.EpollEvent
	buffer    [pollBytes]byte
	toFlush   []Flusher // the round's

	mu struct {
		sync.Mutex
		open   bool              // sockets are accepted
		parked map[int32]*Socket // by file descriptor
	}
}

// NewPoller returns a poller that is not running yet. EveryMove means that moves are passed on whether or not they are flushed.
func NewPoller(log *slog.Logger, everyMove bool) *Poller {
	p := &Poller{log: log, everyMove: everyMove, came: wake.NewSignal()}
	p.mu.parked = make(map[int32]*Socket)
	return p
}

// Run makes rounds until ctx ends. Sockets that are parked then must be unparked by others.
func (p *Poller) Run(ctx context.Context) {
	if err := p.open(); err != nil {
		p.log.Warn("poller not available: each session reads its own socket", "error", err)
		return
	}
	defer p.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := pollEvery; ; {
		if p.Parked() == 0 {
			select {
			case <-ctx.Done():
				return
			case <-p.came:
			}
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if pause = pollCalm; p.round() {
			pause = pollEvery
		}
	}
}

func (p *Poller) open() (err error) {
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.open = true
	return nil
}

func (p *Poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.open = false
	unix.Close(p.epoll) //nolint:errcheck // done with
}

// Parked returns the number of parked sockets.
func (p *Poller) Parked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mu.parked)
}

// round reads all sockets that are ready. It reports whether moves are passed on.
func (p *Poller) round() (movesPassed bool) {
	for n := pollEvents; n == pollEvents; {
		// As in transfer, the runtime is not told of the system call.
		ready, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events)), pollEvents, 0, 0, 0)
		if err != 0 {
			break // interrupted: what is ready still is in the next round
		}
		n = int(ready)
		for i := range p.events[:n] {
			p.mu.Lock()
			s := p.mu.parked[p.events[i].Fd]
			p.mu.Unlock()
			if s != nil {
				p.read(s, p.events[i].Events)
			}
		}
	}
	movesPassed = p.everyMove || len(p.toFlush) > 0
	for _, f := range p.toFlush {
		f.Flush()
	}
	clear(p.toFlush)
	p.toFlush = p.toFlush[:0]
	return movesPassed
}

// FlushAfterRound flushes something once when the round ends. Only handlers call it.
func (p *Poller) FlushAfterRound(f Flusher) {
	if !slices.Contains(p.toFlush, f) {
		p.toFlush = append(p.toFlush, f)
	}
}

// read reads a parked socket.
func (p *Poller) read(s *Socket, events uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return // unparked since
	}
	n, err := s.poll(p.buffer[:])
	if errors.Is(err, unix.EAGAIN) && events == unix.EPOLLIN {
		return // its duplicate has read that
	}
	rest := p.buffer[:max(n, 0)]
	stay := n > 0
	for stay && len(rest) > 0 {
		message, size := s.split(rest)
		if size == 0 {
			break
		}
		var taken bool
		if taken, stay = s.handle(message); !taken {
			break
		}
		rest = rest[size:]
	}
	if !stay || len(rest) > 0 || n == len(p.buffer) || s.more() || err != nil || events != unix.EPOLLIN {
		s.unread = append(s.unread, rest...)
		s.unpark()
	}
}

// Park lets the poller read a socket, and waits until data arrives that the caller must read. It reports false at once where that
// is not possible. The goroutine that reads the socket calls it.
func (p *Poller) Park(s *Socket, split Splitter, handle Handler) bool {
	if s == nil || len(s.unread) > 0 {
		return false
	}
	if s.tls != nil && s.readAhead() {
		return true
	}
	if !p.park(s, split, handle) {
		return false
	}
	<-s.unparked
	return true
}

func (p *Poller) park(s *Socket, split Splitter, handle Handler) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.readDeadline.IsZero() || !p.register(s) {
		return false // about to end
	}
	s.mu.dup.Close() //nolint:errcheck // the socket stays
	s.mu.dup = nil
	if s.unparked == nil {
		s.unparked = make(chan struct{}, 1)
	}
	s.split, s.handle, s.unregister = split, handle, func() { p.unregister(s) }
	return true
}

// register adds a socket. It is called with the socket's lock held.
func (p *Poller) register(s *Socket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.open {
		return false
	}
	// Edge-triggered: a read that returns less than the buffer's size has read everything, and later data raises a new event.
	what := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(s.fd)}
	if unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, s.fd, &what) != nil {
		return false
	}
	p.mu.parked[what.Fd] = s
	if len(p.mu.parked) == 1 {
		p.came.Set()
	}
	return true
}

func (p *Poller) unregister(s *Socket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, s.fd, nil) //nolint:errcheck // it was added
	delete(p.mu.parked, int32(s.fd))
}
