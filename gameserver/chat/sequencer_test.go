package chat

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A leader that sends more events than can be shown does not fill the memory.
func TestArrivedEventsAreBounded(t *testing.T) {
	s := NewSequencer(Options{
		Now: func() time.Duration { return 0 }, Awaited: func(vclock.Stamp) map[vclock.ID]uint64 { return nil },
		Registerer: prometheus.NewRegistry(),
	})
	for range 20 {
		s.Enqueue(nil, make([]nodemsg.ChatEvent, 1000))
	}
	if n := len(s.takeArrived()); n != maxArrived {
		t.Errorf("%d events wait, want %d", n, maxArrived)
	}
}
