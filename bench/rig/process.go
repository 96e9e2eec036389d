package rig

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// startTimeout is the time limit for a process to serve, on a machine that is busy starting a hundred of them.
const startTimeout = 2 * time.Minute

// Process is a running process whose usage is measured. Metrics is the host:port of its /metrics.
type Process struct {
	Metrics string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when it has ended
	log     string        // path of its output
	printed *os.File      // the same, until the process has started
}

// Start runs another program that serves metrics at that address, under the same conditions as a daemon, and waits
// until it does.
func Start(ctx context.Context, o Options, metrics, binary string, args ...string) (*Process, error) {
	p, err := Launch(o, filepath.Base(binary), binary, args...)
	if err != nil {
		return nil, err
	}
	p.Metrics = metrics
	return p, p.Await(ctx, func() error { _, err := p.Scrape(ctx); return err })
}

// Launch runs a program without waiting until it serves. The log file is named after name.
func Launch(o Options, name, binary string, args ...string) (*Process, error) {
	p := new(Process)
	return p, p.run(o, name, binary, args)
}

// StartPiped runs a program that reads commands from its standard input, and answers on its standard output.
func StartPiped(o Options, name, binary string, args ...string) (p *Process, in io.WriteCloser, out io.ReadCloser, err error) {
	p = new(Process)
	if err = p.prepare(o, name, binary, args); err != nil {
		return nil, nil, nil, err
	}
	if in, err = p.cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	// Not cmd.StdoutPipe, which is closed when the process ends, before its last output is read.
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	p.cmd.Stdout = theirs
	err = p.start(o)
	theirs.Close() //nolint:errcheck // the process has a copy
	return p, in, out, err
}

func (p *Process) run(o Options, name, binary string, args []string) error {
	if err := p.prepare(o, name, binary, args); err != nil {
		return err
	}
	return p.start(o)
}

// prepare builds the command; its output goes to the log.
func (p *Process) prepare(o Options, name, binary string, args []string) error {
	log := filepath.Join(o.Dir, name+".log")
	out, err := os.Create(log)
	if err != nil {
		return fmt.Errorf("make log: %w", err)
	}
	p.cmd, p.ended, p.log, p.printed = exec.Command(binary, args...), make(chan struct{}), log, out
	p.cmd.Stdout, p.cmd.Stderr = out, out
	procs := o.Procs
	if procs == 0 {
		procs = len(o.CPUs)
	}
	p.cmd.Env = os.Environ()
	if procs > 0 {
		p.cmd.Env = append(p.cmd.Env, "GOMAXPROCS="+strconv.Itoa(procs))
	}
	return nil
}

func (p *Process) start(o Options) error {
	defer p.printed.Close() //nolint:errcheck // the process has a copy
	started := make(chan error)
	go func() { // Stop waits for it
		defer close(p.ended)
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		err := startPinned(p.cmd, o.CPUs, o.Nice)
		started <- err
		if err == nil {
			p.cmd.Wait() //nolint:errcheck // callers that need the reason read the log
		}
	}()
	return <-started
}

// Await calls ask until it succeeds; it stops the process if it never does.
func (p *Process) Await(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("process ended: %s", p.Log())
		case <-ctx.Done():
			p.Stop()
			return fmt.Errorf("process does not serve: %w: %s", err, p.Log())
		case <-poll.C:
		}
	}
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the end of the process's output.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// Running reports whether the process is still running.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// stopTimeout is the time limit for a daemon to stop by itself.
const stopTimeout = 20 * time.Second

// Stop terminates the process, kills it if it takes too long, and waits until it has ended.
func (p *Process) Stop() {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.Kill()
	}
}

// Kill kills the process.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

func (p *Process) signal(s syscall.Signal) {
	p.cmd.Process.Signal(s) //nolint:errcheck // it may have ended
}
