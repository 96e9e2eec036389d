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

// startTime is how long a process may take until it serves, on a machine that is busy starting a hundred of them.
const startTime = 2 * time.Minute

// Process is a running process whose accounts are read. Metrics is the host:port of its /metrics.
type Process struct {
	Metrics string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when it has ended
	log     string        // path of what it printed
	printed *os.File      // the same, until it runs
}

// Start runs any other program that serves metrics at that address, under the same conditions as a daemon, and waits
// until it does.
func Start(ctx context.Context, o Options, metrics, binary string, args ...string) (*Process, error) {
	p, err := Launch(o, filepath.Base(binary), binary, args...)
	if err != nil {
		return nil, err
	}
	p.Metrics = metrics
	return p, p.Await(ctx, func() error { _, err := p.Scrape(ctx); return err })
}

// Launch runs a program without waiting until it serves. Its log is named after the name.
func Launch(o Options, name, binary string, args ...string) (*Process, error) {
	p := new(Process)
	return p, p.run(o, name, binary, args)
}

// Converse runs a program that is told what to do on its standard input, and answers on its standard output.
func Converse(o Options, name, binary string, args ...string) (p *Process, in io.WriteCloser, out io.ReadCloser, err error) {
	p = new(Process)
	if err = p.prepare(o, name, binary, args); err != nil {
		return nil, nil, nil, err
	}
	if in, err = p.cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	// Not cmd.StdoutPipe, which is closed when the process ends, with its last words in it.
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	p.cmd.Stdout = theirs
	err = p.start(o)
	theirs.Close() //nolint:errcheck // the process has it now
	return p, in, out, err
}

func (p *Process) run(o Options, name, binary string, args []string) error {
	if err := p.prepare(o, name, binary, args); err != nil {
		return err
	}
	return p.start(o)
}

// prepare makes the command; what it prints goes to the log.
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
	defer p.printed.Close() //nolint:errcheck // the process has it now
	started := make(chan error)
	go func() { // Stop waits for it
		defer close(p.ended)
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		err := startOn(p.cmd, o.CPUs, o.Nice)
		started <- err
		if err == nil {
			p.cmd.Wait() //nolint:errcheck // whoever waits for the process looks at its log
		}
	}()
	return <-started
}

// Await asks until the process answers; it ends one that does not.
func (p *Process) Await(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
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
			return fmt.Errorf("it ended: %s", p.Log())
		case <-ctx.Done():
			p.Stop()
			return fmt.Errorf("it does not serve: %w: %s", err, p.Log())
		case <-poll.C:
		}
	}
}

// PID is the system's number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is the end of what the process printed.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// Running tells whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// stopTime is how long a daemon may take to stop in order.
const stopTime = 20 * time.Second

// Stop ends the process, in order if it can, and waits until it is gone.
func (p *Process) Stop() {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopTime):
		p.Kill()
	}
}

// Kill ends the process at once.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

func (p *Process) signal(s syscall.Signal) {
	p.cmd.Process.Signal(s) //nolint:errcheck // it may have ended
}
