package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The error of Until names what did not happen, or is the cause for which the caller ended the wait.
func TestUntilSaysWhyItEnded(t *testing.T) {
	never := func() bool { return false }
	err := Until(t.Context(), "pigs fly", time.Millisecond, 5*time.Millisecond, never)
	if err == nil || err.Error() != "not within 5ms: pigs fly" {
		t.Errorf("after the limit: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupt")
	cancel(interrupt)
	if err := Until(ctx, "pigs fly", time.Hour, time.Hour, never); !errors.Is(err, interrupt) {
		t.Errorf("interrupted: %v", err)
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
	p, in, out, err := StartPiped(Options{Log: filepath.Join(t.TempDir(), "cat.log")}, "cat")
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
const orphan = "PROCESS_TEST_ORPHAN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(orphan); dir != "" {
		p, err := Start(Options{Log: filepath.Join(dir, "sleep.log")}, "sleep", "1000")
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
	p, in, out, err := StartPiped(Options{Log: filepath.Join(t.TempDir(), "parent.log")}, self)
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
