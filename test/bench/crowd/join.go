package crowd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
)

const (
	// joinTimeout is the time limit for one player to join.
	joinTimeout = 30 * time.Second
	// maxJoining is the number of players who join at once.
	maxJoining = 1024
)

// Add adds n players, at the pace of the options. It returns when all of them are in the world or have failed; the
// error is that of the first failure.
func (c *Crowd) Add(ctx context.Context, n int) error {
	c.mu.Lock()
	first := c.mu.next
	c.mu.next += n
	c.mu.Unlock()
	began := time.Now()
	gate := make(chan struct{}, maxJoining)
	var wg sync.WaitGroup
	var once sync.Once
	var failed error
	for i := first; i < first+n; i++ {
		due := began.Add(time.Duration(float64(i-first) / c.o.JoinRate * float64(time.Second)))
		if process.Pause(ctx, time.Until(due)) != nil {
			break
		}
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			p, err := c.join(ctx, i, due)
			if err == nil {
				select {
				case c.entered <- p:
				case <-ctx.Done():
					p.close()
				}
				return
			}
			once.Do(func() { failed = fmt.Errorf("player %d: %w", i, err) })
			c.mu.Lock()
			c.mu.Failed[err.Error()]++
			c.mu.Unlock()
		})
	}
	wg.Wait()
	return errors.Join(failed, ctx.Err())
}

// join connects the i-th player, who was to connect at a time.
func (c *Crowd) join(ctx context.Context, i int, due time.Time) (*client, error) {
	var at arrival
	var early []byte
	target := c.o.Targets[i%len(c.o.Targets)]
	fd, secured, err := connect(ctx, target, func(conn net.Conn) (err error) {
		at, early, err = c.protocol.enter(conn, target, fmt.Sprintf("crowd-%d", i), &c.o)
		return err
	})
	if err != nil {
		return nil, err
	}
	p := &client{fd: fd, secure: secured, arrival: at, landed: time.Since(due)}
	p.mover = mover{
		rng: rand.New(rand.NewPCG(1, uint64(i)+1)), pose: at.pose, sky: float64(at.height) + overLand, base: c.o.Roam,
	}
	if len(c.o.Homes) > 0 {
		p.mover.home = c.o.Homes[i%len(c.o.Homes)]
		if p.mover.heights = c.o.Heights.chunk(p.mover.home); p.mover.heights == nil {
			p.close()
			return nil, fmt.Errorf("no land for chunk %v", p.mover.home)
		}
	}
	if i < c.o.Samples {
		p.sampler = newSampler()
		p.sampler.received.rest = bytes.Clone(early) // it arrived with the welcome
	} else if c.o.Fresh {
		p.loading = &loading{due: due, missing: (2*at.view+1)*(2*at.view+1) - at.chunks}
		p.loading.received.rest = bytes.Clone(early)
	}
	return p, nil
}

// connect connects a player, lets them enter the world, and returns a descriptor of the connection, and TLS over it, if
// there is any.
func connect(ctx context.Context, target string, enter func(net.Conn) error) (fd int, over *secure, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	var conn, socket net.Conn
	if isSecure(target) {
		over, err = dialSecure(ctx, target)
		if err == nil {
			conn, socket = over, over.below.Conn
		}
	} else {
		conn, err = sessionclient.Connect(ctx, target)
		socket = conn
	}
	if err != nil {
		return -1, nil, err
	}
	defer socket.Close()                                    //nolint:errcheck // the player has a duplicate of the descriptor
	defer context.AfterFunc(ctx, func() { conn.Close() })() //nolint:errcheck // the read reports it
	if err := enter(conn); err != nil {
		return -1, nil, err
	}
	if fd, err = dupFD(socket.(*net.TCPConn)); over != nil {
		over.below.fd = fd
	}
	return fd, over, err
}

// dupFD duplicates a connection's descriptor, so that Go's poller does not wake up for every packet.
func dupFD(c syscall.Conn) (fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("duplicate socket: %w", err)
	}
	var failed error
	if err := raw.Control(func(old uintptr) {
		if fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0); failed == nil {
			failed = unix.SetNonblock(fd, true)
		}
	}); err != nil {
		return -1, fmt.Errorf("duplicate socket: %w", err)
	}
	if failed != nil {
		return -1, fmt.Errorf("duplicate socket: %w", failed)
	}
	return fd, nil
}
