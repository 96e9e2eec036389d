package cputime

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/terrain"
)

func newSampler(length time.Duration) *Sampler {
	s := New(slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	s.length = length
	return s
}

func TestClassify(t *testing.T) {
	for _, c := range []struct{ stack, want string }{ // innermost function first
		{"github.com/voxelpopuli/voxeld/region/actor.(*Land).step github.com/voxelpopuli/voxeld/region.(*regions).runLand", "regions"},
		{"slices.Sort github.com/voxelpopuli/voxeld/wire/nodemsg.Encode github.com/voxelpopuli/voxeld/gameserver/mirror.(*sender).run", "gateway"},
		{"github.com/voxelpopuli/voxeld/terrain.(*Generator).Chunk github.com/voxelpopuli/voxeld/gameserver.(*Gateway).Run", "terrain"},
		{"syscall.Syscall go.etcd.io/bbolt.fdatasync github.com/voxelpopuli/voxeld/store.(*DB).Run", "store"},
		{"go.etcd.io/raft/v3.(*raft).Step github.com/voxelpopuli/voxeld/replica/raftgroup.(*Replica).Step", "replication"},
		{"crypto/sha256.block github.com/libp2p/go-yamux/v5.(*Session).send", "network"},
		{"github.com/voxelpopuli/voxeld/region/transport.(*Carrier).Run", "network"},
		{"runtime.scanobject runtime.gcDrain runtime.gcBgMarkWorker.func2 runtime.systemstack", "gc"},
		{"runtime.gcAssistAlloc1 runtime.mallocgc github.com/voxelpopuli/voxeld/region/actor.(*Land).step", "gc"},
		{"runtime.mallocgc github.com/voxelpopuli/voxeld/region/actor.(*Land).step", "regions"},
		{"runtime.futex runtime.findRunnable runtime.schedule", "runtime"},
		{"encoding/json.Marshal main.main runtime.main", "other"},
		{"github.com/voxelpopuli/voxeld/worldwide.F main.main", "other"},
	} {
		s := &profile.Sample{}
		for name := range strings.FieldsSeq(c.stack) {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		if got := classify(s); got != c.want {
			t.Errorf("%s: %s, want %s", c.stack, got, c.want)
		}
	}
}

// A package that is renamed would be charged to others without an error.
func TestPackagesExist(t *testing.T) {
	modules, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for prefix := range packages {
		if own, ok := strings.CutPrefix(prefix, module); ok {
			if _, err := os.Stat("../../" + own); err != nil {
				t.Error(err)
			}
		} else if !bytes.Contains(modules, []byte("\t"+prefix)) {
			t.Errorf("go.mod has no %s", prefix)
		}
	}
}

// generate generates terrain for as long.
func generate(t *testing.T, length time.Duration) {
	t.Helper()
	g, err := terrain.New(terrain.Params{Seed: 1, Sections: 4, Version: terrain.Version})
	if err != nil {
		t.Fatal(err)
	}
	x := int32(0)
	for start := time.Now(); time.Since(start) < length; x++ {
		g.Chunk(grid.ChunkPos{X: x})
	}
}

// The work of this process is charged to the subsystem that does it.
func TestSample(t *testing.T) {
	s := newSampler(500 * time.Millisecond)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // how much it takes depends on what else the machine does
	done := make(chan struct{})
	go func() {
		defer close(done)
		generate(t, 600*time.Millisecond)
	}()
	used, took, err := s.sample(t.Context())
	<-done
	if err != nil {
		t.Fatal(err)
	}
	for subsystem, each := range used {
		// The functions of the race detector are nobody's.
		if subsystem != generation && subsystem != golang && subsystem != other && each >= used[generation]/2 {
			t.Errorf("%v is charged with %v", subsystem, each)
		}
	}
	if took < s.length || used[generation] == 0 {
		t.Errorf("in %v: %v", took, used)
	}
}

// An operator's profile ends the sampler's, and is complete; meanwhile the sampler takes none.
func TestGivesWay(t *testing.T) {
	s := newSampler(time.Hour)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, _, err := s.sample(t.Context()); err == nil {
				return
			}
		}
	}()
	for s.profiling.TryRLock() { // until it has begun
		s.profiling.RUnlock()
		<-time.After(interruptAgain)
	}
	take := s.Yield(pprof.Profile)
	for range 2 {
		answer := httptest.NewRecorder()
		take(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/debug/pprof/profile?seconds=1", nil))
		if p, err := profile.Parse(answer.Body); err != nil || p.DurationNanos < int64(900*time.Millisecond) {
			t.Fatalf("status %d: %v", answer.Code, err)
		}
	}
	<-done
	s.profiling.RLock()
	if _, _, err := s.sample(t.Context()); err == nil {
		t.Error("sampled while another profile is taken")
	}
}

// A profile that an operator cut short counts for nothing: its few samples would be scaled up to the whole interval.
func TestCutShort(t *testing.T) {
	s := newSampler(time.Hour)
	s.every = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	for s.profiling.TryRLock() { // until it has begun
		s.profiling.RUnlock()
		<-time.After(interruptAgain)
	}
	generate(t, 100*time.Millisecond)
	s.Yield(func(http.ResponseWriter, *http.Request) { cancel() })(nil, nil)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, subsystem := range subsystems {
		var m dto.Metric
		if err := s.seconds.WithLabelValues(subsystem).Write(&m); err != nil || m.GetCounter().GetValue() != 0 {
			t.Errorf("%s: %v s (%v)", subsystem, m.GetCounter().GetValue(), err)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	s := newSampler(time.Millisecond)
	for b.Loop() {
		if _, _, err := s.sample(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
