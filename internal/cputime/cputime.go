// Package cputime measures what CPU the daemon may use (Limit), and which subsystems use it, for
// voxeld_cpu_seconds_total. A Sampler takes a CPU profile of a second every 15 seconds, charges each sample to the
// subsystem of its innermost function that belongs to one, and scales the result to the whole time. So the numbers are
// estimates: exact to a few per cent over minutes on a busy node, coarse on an idle one.
//
// The runtime takes only one CPU profile at a time. The Sampler gives way to the operator's (see Yield).
//
// One goroutine: the caller of Run.
package cputime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/google/pprof/profile"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
)

const (
	// sampleEvery is the time from the beginning of one profile to that of the next, and sampleFor is how long one
	// takes.
	sampleEvery, sampleFor = 15 * time.Second, time.Second
	// interruptAgain is the pause between two attempts to end the Sampler's profile.
	interruptAgain = 10 * time.Millisecond
)

// Sampler measures which subsystems use the CPU.
type Sampler struct {
	logger        *slog.Logger
	seconds       *prometheus.CounterVec // by subsystem
	every, length time.Duration

	profiling sync.RWMutex  // held by the Sampler while it takes a profile, and shared by all others that do
	interrupt chan struct{} // ends the Sampler's profile early
}

// New returns a sampler, which Run runs. It also registers the metrics of the limit.
func New(logger *slog.Logger, r prometheus.Registerer) *Sampler {
	s := &Sampler{
		logger: logger, every: sampleEvery, length: sampleFor, interrupt: make(chan struct{}),
		seconds: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_cpu_seconds_total",
			Help: "CPU time, estimated: regions, gateway, replication, store, network, terrain, gc, runtime, other.",
		}, metric.Values("subsystem", subsystems...)),
	}
	limit := FindLimit()
	r.MustRegister(s.seconds, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "voxeld_cpu_cores",
		Help: "Cores that the daemon may use: those of the machine, or what the quota of a container or unit leaves of them.",
	}, limit.Cores), prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "voxeld_cpu_throttled_seconds_total",
		Help: "Time for which the daemon was not run because the quota of its container or unit was used up, summed over cores.",
	}, func() float64 { return limit.Throttled().Seconds() }))
	return s
}

// Run samples until ctx ends.
func (s *Sampler) Run(ctx context.Context) error {
	every := time.NewTicker(s.every)
	defer every.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		used, took, err := s.sample(ctx)
		if err != nil {
			s.logger.Debug("no CPU profile", "error", err)
			continue
		}
		if took < s.length {
			continue // too short to stand for the whole interval: the next profile stands for this one too
		}
		now := time.Now()
		for subsystem, each := range used {
			s.seconds.WithLabelValues(subsystem).Add(each.Seconds() * now.Sub(last).Seconds() / took.Seconds())
		}
		last = now
	}
}

// sample takes a profile, and returns the CPU time of each subsystem and how long it took. It returns nothing while
// another profile is taken.
func (s *Sampler) sample(ctx context.Context) (used map[string]time.Duration, took time.Duration, err error) {
	var b bytes.Buffer
	if took, err = s.record(ctx, &b); err != nil {
		return nil, 0, err
	}
	p, err := profile.Parse(&b)
	if err != nil {
		return nil, 0, fmt.Errorf("read CPU profile: %w", err)
	}
	used = make(map[string]time.Duration)
	for _, each := range p.Sample {
		used[classify(each)] += time.Duration(each.Value[len(each.Value)-1]) // nanoseconds, after the number of samples
	}
	return used, took, nil
}

// record writes a profile to b. It ends early when somebody else wants to take one.
func (s *Sampler) record(ctx context.Context, b *bytes.Buffer) (took time.Duration, err error) {
	if !s.profiling.TryLock() {
		return 0, errors.New("another one is being taken")
	}
	defer s.profiling.Unlock()
	start := time.Now()
	if err := pprof.StartCPUProfile(b); err != nil {
		return 0, err
	}
	select {
	case <-time.After(s.length):
	case <-s.interrupt:
	case <-ctx.Done():
	}
	took = time.Since(start)
	pprof.StopCPUProfile()
	return took, nil
}

// Yield returns a handler that takes CPU profiles, for which the Sampler ends its own.
func (s *Sampler) Yield(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for !s.profiling.TryRLock() {
			select {
			case s.interrupt <- struct{}{}:
			case <-time.After(interruptAgain): // it had just begun, or has just ended
			}
		}
		defer s.profiling.RUnlock()
		handler(w, r)
	}
}
