package clockstep_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/clockstep"
)

// A reading is what a process finds on its two clocks.
type reading struct {
	Wall time.Time
	Mono time.Duration
}

const childVariable = "CLOCKSTEP_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		readClocks()
		return
	}
	os.Exit(m.Run())
}

// readClocks answers each line with a reading, while other threads read the clock as often as they can.
func readClocks() {
	start := time.Now()
	for range 3 {
		go func() {
			for {
				_ = time.Now()
			}
		}()
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		now := time.Now()
		if err := json.NewEncoder(os.Stdout).Encode(reading{now, now.Sub(start)}); err != nil {
			return
		}
	}
}

// The wall clock of a process moves by each offset and back; its monotonic clock does not, nor does the clock of this
// process.
func TestStep(t *testing.T) {
	t.Parallel()
	if why := clockstep.Missing(); why != "" {
		t.Skip(why)
	}
	child := exec.Command(os.Args[0]) // ends with its input
	child.Env = append(os.Environ(), childVariable+"=1")
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := child.Wait(); err != nil {
			t.Errorf("the process whose clock was stepped: %v", err)
		}
	})
	answers := json.NewDecoder(out)
	read := func() (r reading) {
		t.Helper()
		if _, err := fmt.Fprintln(in); err != nil {
			t.Fatal(err)
		}
		if err := answers.Decode(&r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, began := read(), time.Now()
	const day = 24 * time.Hour
	for _, offset := range []time.Duration{0, 30 * time.Second, -time.Hour, 40 * day, 400 * day, -400 * day, 0} {
		if err := clockstep.Step(child.Process.Pid, offset); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		r := read()
		after := time.Now()
		if r.Wall.Before(before.Add(offset).Round(0)) || r.Wall.After(after.Add(offset).Round(0)) {
			t.Errorf("after a step to %v the wall clock is %v ahead", offset, r.Wall.Sub(before))
		}
		if gone := r.Mono - first.Mono; gone < 0 || gone > after.Sub(began)+time.Second {
			t.Errorf("after a step to %v the monotonic clock went %v in %v", offset, gone, after.Sub(began))
		}
	}
}

func TestStepErrors(t *testing.T) {
	t.Parallel()
	if why := clockstep.Missing(); why != "" {
		t.Skip(why)
	}
	if err := clockstep.Step(os.Getpid(), time.Millisecond); err == nil {
		t.Error("a step of a millisecond passed")
	}
	if err := clockstep.Step(1<<30, time.Second); err == nil {
		t.Error("a step of a process that does not exist passed")
	}
}
