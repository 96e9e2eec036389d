package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

// usageLog reads the daemons' resource usage at rounds.
type usageLog struct {
	daemons []*daemon.Daemon
	readers sync.WaitGroup
	mu      struct {
		sync.Mutex
		entries []entry // by round; sorted by close
		err     error
	}
}

// entry is the daemons' usage up to a round.
type entry struct {
	round   int
	at      time.Time
	cpu     time.Duration
	out, in []float64 // bytes to and from other nodes, by daemon
	packets []float64 // bytes of the overlay's packets
	refused float64
}

func newUsageLog(daemons []*daemon.Daemon) *usageLog { return &usageLog{daemons: daemons} }

// record reads the usage, concurrently with the game, if wanted.
func (l *usageLog) record(ctx context.Context, round int, wanted bool) {
	if !wanted {
		return
	}
	l.readers.Go(func() { // awaited by close
		e, err := l.read(ctx, round)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.mu.entries, l.mu.err = append(l.mu.entries, e), errors.Join(l.mu.err, err)
	})
}

func (l *usageLog) read(ctx context.Context, round int) (entry, error) {
	e := entry{round: round, at: time.Now()}
	for _, d := range l.daemons {
		u, err := d.Usage()
		if err != nil {
			return e, err
		}
		e.cpu += u.CPU
	}
	for _, d := range l.daemons {
		m, err := d.Scrape(ctx)
		if err != nil {
			return e, err
		}
		e.out = append(e.out, m.Value("voxeld_stream_bytes_total", "direction", "out"))
		e.in = append(e.in, m.Value("voxeld_stream_bytes_total", "direction", "in"))
		e.packets = append(e.packets, m.Value("voxeld_overlay_packet_bytes_total", "direction", "out"))
		e.refused += m.Value("voxeld_overlay_refused_total")
	}
	return e, nil
}

func (l *usageLog) close() error {
	l.readers.Wait()
	slices.SortFunc(l.mu.entries, func(a, b entry) int { return a.round - b.round })
	return l.mu.err
}

func (l *usageLog) at(round int) entry {
	i, _ := slices.BinarySearchFunc(l.mu.entries, round, func(e entry, round int) int { return e.round - round })
	return l.mu.entries[i]
}
