package floor_test

import (
	"context"
	"errors"
	"math"
	"net"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/bench/floor"
)

// A crowd on the floor program receives 20 frames a second of the configured size, and its moves are read.
func TestFloorServesACrowd(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	game, metrics := "127.78.0.1:4002", "127.78.0.1:9102"
	ended := make(chan error, 2)
	go func() {
		ended <- floor.Run(ctx, floor.Options{Listen: game, Metrics: metrics, Frame: 500})
	}()
	c := crowd.New(crowd.Options{Targets: []string{game}, FloorMove: make([]byte, 40), JoinRate: 1000})
	go func() { c.Run(ctx); ended <- nil }()
	defer func() {
		stop()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	}()
	await(t, func() bool {
		probe, err := net.Dial("tcp", game)
		if err == nil {
			probe.Close()
		}
		return err == nil
	})
	if err := c.Add(ctx, 20); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return c.Counts().Players == 20 && c.Counts().Frames > 8 })
	first, began := c.Counts(), time.Now()
	await(t, func() bool { return c.Counts().Frames-first.Frames >= 160 }) // of four samples
	counts, seconds := c.Counts().Since(first), time.Since(began).Seconds()
	if counts.Lost > 0 || seconds < 1.5 {
		t.Errorf("%d players lost; 160 frames for four took %.2f s, want 2", counts.Lost, seconds)
	}
	frames := float64(counts.BytesIn) / 500 / 20
	if want := float64(counts.Frames) / 4; math.Abs(frames-want) > 5 { // a busy machine misses ticks
		t.Errorf("%.1f frames' bytes to each, want those of %.1f", frames, want)
	}
}

func await(t *testing.T, condition func() bool) {
	t.Helper()
	deadline, poll := time.After(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer poll.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatal("not within 20 s")
		case <-poll.C:
		}
	}
}
