package gameserver

import (
	"context"
	"encoding/binary"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/voxelpopuli/voxeld/gameserver/mirror"
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

// poller reads the sessions whose players only walk, all that are ready in one round. So a move costs one read, instead of a
// thread's wake-up, a goroutine's, and a second read that finds nothing. The poller handles complete moves only. On anything
// else, including the end of the connection, it returns the socket to the session's own reader.
//
// One goroutine, run, makes the rounds. Sockets are parked and unparked by any goroutine.
type poller struct {
	log       *slog.Logger
	overlayOn bool        // gateways send one another every move
	epoll     int         // never changes while open
	came      wake.Signal // holds a token when the first socket may have come
	events    [pollEvents]unix.EpollEvent
	buffer    [pollBytes]byte
	toFlush   []*mirror.Subscription // the round's: those with a message for their regions

	mu struct {
		sync.Mutex
		open   bool                  // sockets are accepted
		parked map[int32]*descriptor // by file descriptor
	}
}

// parking is the part of a descriptor used by the poller. Its fields are guarded by the descriptor's lock.
type parking struct {
	poller   *poller                              // nil while the socket is not parked
	handle   func(data []byte) (taken, stay bool) // handles a message or leaves it, and reports whether the socket stays
	unparked chan struct{}                        // gets a token when the socket is unparked
}

func newPoller(log *slog.Logger, overlayOn bool) *poller {
	p := &poller{log: log, overlayOn: overlayOn, came: wake.NewSignal()}
	p.mu.parked = make(map[int32]*descriptor)
	return p
}

// run makes rounds until ctx ends. Sockets that are parked then must be unparked by others.
func (p *poller) run(ctx context.Context) {
	if err := p.open(); err != nil {
		p.log.Warn("poller not available: each session reads its own socket", "error", err)
		return
	}
	defer p.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := pollEvery; ; {
		if p.parkedCount() == 0 {
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

func (p *poller) open() (err error) {
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.open = true
	return nil
}

func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.open = false
	unix.Close(p.epoll) //nolint:errcheck // done with
}

// parkedCount returns the number of parked sockets.
func (p *poller) parkedCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mu.parked)
}

// round reads all sockets that are ready. It reports whether moves are passed on.
func (p *poller) round() (movesPassed bool) {
	for n := pollEvents; n == pollEvents; {
		var err error
		if n, err = unix.EpollWait(p.epoll, p.events[:], 0); err != nil {
			break // interrupted: what is ready still is in the next round
		}
		for i := range p.events[:n] {
			p.mu.Lock()
			d := p.mu.parked[p.events[i].Fd]
			p.mu.Unlock()
			if d != nil {
				d.readParked(p, p.events[i].Events)
			}
		}
	}
	movesPassed = p.overlayOn || len(p.toFlush) > 0
	for _, sub := range p.toFlush {
		sub.Flush()
	}
	clear(p.toFlush)
	p.toFlush = p.toFlush[:0]
	return movesPassed
}

// flushAfterRound makes the round flush a subscription when it ends. Callbacks of parked sessions call it.
func (p *poller) flushAfterRound(sub *mirror.Subscription) {
	if !slices.Contains(p.toFlush, sub) {
		p.toFlush = append(p.toFlush, sub)
	}
}

// readParked reads a parked socket.
func (d *descriptor) readParked(p *poller, events uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.poller != p {
		return // unparked since
	}
	n, err := unix.Read(d.fd, p.buffer[:])
	for err == unix.EINTR {
		n, err = unix.Read(d.fd, p.buffer[:])
	}
	if err == unix.EAGAIN && events == unix.EPOLLIN {
		return // its duplicate has read that
	}
	rest := p.buffer[:max(n, 0)]
	stay := n > 0
	for stay && len(rest) > 0 {
		size, head := binary.Uvarint(rest)
		if head <= 0 || size == 0 || size > uint64(len(rest)-head) {
			break
		}
		var taken bool
		if taken, stay = d.handle(rest[head : head+int(size)]); !taken {
			break
		}
		rest = rest[head+int(size):]
	}
	if !stay || len(rest) > 0 || n == len(p.buffer) || events != unix.EPOLLIN {
		d.unread = append(d.unread, rest...)
		d.unpark()
	}
}

// park lets the poller read a connection, and waits until data arrives that the caller must handle. It reports false where that
// is not possible.
func (p *poller) park(c conn, hear func(data []byte) (taken, stay bool)) bool {
	line, ok := c.(*lineConn)
	if !ok || line.in.Buffered() > 0 {
		return false
	}
	d, ok := line.Conn.(*descriptor)
	if !ok || len(d.unread) > 0 || !d.park(p, hear) {
		return false
	}
	<-d.unparked
	return true
}

func (d *descriptor) park(p *poller, hear func(data []byte) (taken, stay bool)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.mu.readDeadline.IsZero() || !p.admit(d) {
		return false // about to end
	}
	d.mu.dup.Close() //nolint:errcheck // the socket stays
	d.mu.dup = nil
	if d.unparked == nil {
		d.unparked = make(chan struct{}, 1)
	}
	d.poller, d.handle = p, hear
	return true
}

// admit is called with the descriptor's lock held.
func (p *poller) admit(d *descriptor) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.open {
		return false
	}
	// Edge-triggered: a read that returns less than the buffer's size has read everything, and later data raises a new event.
	what := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(d.fd)}
	if unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, d.fd, &what) != nil {
		return false
	}
	p.mu.parked[what.Fd] = d
	if len(p.mu.parked) == 1 {
		p.came.Set()
	}
	return true
}

// unpark returns a parked socket to its session. The lock is held.
func (d *descriptor) unpark() {
	p := d.poller
	if p == nil {
		return
	}
	p.mu.Lock()
	unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, d.fd, nil) //nolint:errcheck // it was added
	delete(p.mu.parked, int32(d.fd))
	p.mu.Unlock()
	d.poller, d.handle = nil, nil
	if d.mu.dup, d.mu.err = d.open(); d.mu.err == nil && !d.mu.readDeadline.IsZero() {
		d.mu.err = d.mu.dup.SetReadDeadline(d.mu.readDeadline)
	}
	d.unparked <- struct{}{}
}
