package rig

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"
)

func TestHistogramQuantileIsNeverBelowTheTruth(t *testing.T) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "h", Buckets: []float64{1, 2, 4}})
	read := func() Histogram {
		var m dto.Metric
		if err := h.Write(&m); err != nil {
			t.Fatal(err)
		}
		return Metrics{"h": {Metric: []*dto.Metric{&m}}}.Histogram("h")
	}
	if q := read().Quantile(.5); !math.IsNaN(q) {
		t.Errorf("the median of nothing is %v", q)
	}
	for range 100 {
		h.Observe(3)
	}
	before := read()
	for range 98 {
		h.Observe(.5)
	}
	h.Observe(1.5)
	h.Observe(9)
	since := read().Since(before)
	for q, want := range map[float64]float64{.5: 1, .98: 1, .99: 2, .995: math.Inf(1)} {
		if got := since.Quantile(q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if since.Count != 100 {
		t.Errorf("%v counts since, want 100", since.Count)
	}
}

func TestUsageGrowsWithWork(t *testing.T) {
	before, err := UsageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if before.RSS < 1<<20 {
		t.Errorf("this process uses %d bytes", before.RSS)
	}
	deadline := time.Now().Add(10 * time.Second)
	for sum := 0; ; sum++ {
		if sum%1_000_000 != 0 {
			continue
		}
		now, err := UsageOf(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now.CPU >= before.CPU+50*time.Millisecond {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("ten seconds of work count as %v", now.CPU-before.CPU)
		}
	}
}

func TestStartPiped(t *testing.T) {
	p, in, out, err := StartPiped(Options{Dir: t.TempDir()}, "echo", "cat")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "the last words\n"); err != nil {
		t.Fatal(err)
	}
	if !p.Running() {
		t.Error("it has ended before its input has")
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(out); err != nil || string(said) != "the last words\n" {
		t.Errorf("it said %q, %v", said, err)
	}
	p.Stop()
	if p.Running() {
		t.Error("it was stopped and runs")
	}
}

// orphan names the environment variable that makes this test's program start a process and wait to be killed.
const orphan = "RIG_TEST_ORPHAN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(orphan); dir != "" {
		p, err := Launch(Options{Dir: dir}, "sleep", "sleep", "1000")
		if err != nil {
			panic(err)
		}
		fmt.Println(p.PID())
		select {}
	}
	os.Exit(m.Run())
}

func TestProcessDiesWithTheProgramThatStartedIt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(orphan, t.TempDir())
	p, in, out, err := StartPiped(Options{Dir: t.TempDir()}, "parent", self)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer p.Kill()
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatalf("the parent did not start anything: %v: %s", err, p.Log())
	}
	child, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("the child does not run while its parent does: %v", err)
	}
	defer unix.Close(child)
	ended := func(within time.Duration) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(child), Events: unix.POLLIN}}, int(within.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
		return n > 0
	}
	if ended(0) {
		t.Fatal("the child has ended before its parent")
	}
	p.Kill()
	if !ended(10 * time.Second) {
		unix.Kill(pid, unix.SIGKILL) //nolint:errcheck // the test has failed
		t.Error("the child outlives its parent, which was killed")
	}
}
