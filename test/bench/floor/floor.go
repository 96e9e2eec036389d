// Package floor is the least that a server can do for a crowd: receive all moves, encode one frame a tick, and write
// it once to each player. It does not decode moves and has no world. Its cost is that of the operating system for the
// same bytes; the additional cost of a real server is that of its work. The bench command runs it as its own process,
// under the same conditions as voxeld.
//
// All sockets are read once a tick; all connections belong to the goroutine of Run.
package floor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sys/unix"
)

// Options configure the floor server. All are required.
type Options struct {
	Listen  string // host:port for players
	Metrics string // host:port of /metrics
	Frame   int    // bytes of a frame, including its length prefix of 4 bytes
}

// TickEvery is the length of a tick, the same as voxeld's.
const TickEvery = 50 * time.Millisecond

// TickMetric is the name of the histogram of the time that ticks took, in seconds.
const TickMetric = "floor_tick_seconds"

// server is a running floor. Its fields belong to the goroutine of Run.
type server struct {
	Options
	fds    []int
	rest   map[int][]byte // by descriptor: the rest of a frame that was written in part
	frame  []byte
	buffer []byte
	ticks  prometheus.Histogram
}

// Run serves until ctx ends.
func Run(ctx context.Context, o Options) error {
	s := &server{Options: o, rest: make(map[int][]byte), frame: make([]byte, max(o.Frame, 4)), buffer: make([]byte, 64<<10)}
	s.ticks = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: TickMetric, Help: "Time that one tick took; the budget is 0.05.",
		Buckets: []float64{.001, .0025, .005, .0075, .01, .015, .02, .025, .03, .035, .04, .045, .05, .06, .075, .1, .25, .5, 1},
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.ticks)
	game, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	web := &http.Server{Addr: o.Metrics, Handler: mux, ReadHeaderTimeout: time.Second}
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := context.AfterFunc(ctx, func() {
		game.Close() //nolint:errcheck // Accept reports it
		web.Close()  //nolint:errcheck // Serve reports it
	})
	defer stop()
	newcomers := make(chan int, 64)
	wg.Go(func() { web.ListenAndServe() }) //nolint:errcheck // without metrics the bench reports an error
	wg.Go(func() { s.accept(game, newcomers) })
	return s.run(ctx, newcomers)
}

// accept accepts players until the listener is closed.
func (s *server) accept(l net.Listener, newcomers chan<- int) {
	defer close(newcomers)
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			continue
		}
		raw.Control(func(old uintptr) { //nolint:errcheck // it is open
			if fd, err := unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0); err == nil {
				newcomers <- fd
			}
		})
		c.Close() //nolint:errcheck // the duplicated descriptor stays open
	}
}

func (s *server) run(ctx context.Context, newcomers <-chan int) error {
	tick := time.NewTicker(TickEvery)
	defer tick.Stop()
	for number := uint64(1); ; number++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		start := time.Now()
		for more := true; more; {
			select {
			case fd, ok := <-newcomers:
				if more = ok; ok {
					s.fds = append(s.fds, fd)
				}
			default:
				more = false
			}
		}
		s.step(number)
		s.ticks.Observe(time.Since(start).Seconds())
	}
}

// step is one tick.
func (s *server) step(number uint64) {
	for _, fd := range s.fds {
		unix.Read(fd, s.buffer) //nolint:errcheck // a player who has left is found at the next write
	}
	binary.LittleEndian.PutUint32(s.frame, uint32(len(s.frame)-4))
	for i := 4; i+8 <= len(s.frame); i += 8 {
		binary.LittleEndian.PutUint64(s.frame[i:], number*uint64(i))
	}
	here := s.fds[:0]
	for _, fd := range s.fds {
		if s.write(fd) {
			here = append(here, fd)
		}
	}
	s.fds = here
}

// write writes the frame, or the rest of an older one instead, and reports whether the player is still connected.
func (s *server) write(fd int) bool {
	data := s.frame
	if rest := s.rest[fd]; rest != nil {
		data = rest
	}
	n, err := unix.Write(fd, data)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return true
	case err != nil:
		delete(s.rest, fd)
		unix.Close(fd) //nolint:errcheck // the player has left
		return false
	case n < len(data):
		s.rest[fd] = append([]byte(nil), data[n:]...)
	default:
		delete(s.rest, fd)
	}
	return true
}
