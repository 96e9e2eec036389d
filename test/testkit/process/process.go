// Package process runs other programs for tests, benchmarks and fault injection: on chosen cores, with their output in
// a file, and never for longer than the program that started them. It reads how much processor time and memory they use
// from /proc. Linux only.
//
// Start and the methods of Process may be called from any goroutine.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Options configure a process. The zero value of a field means its default.
type Options struct {
	Log    string   // path of the file to which its output is appended (required)
	Prefix []string // command that runs the program, such as nsenter with its arguments; default none
	Env    []string // further environment variables
	CPUs   []int    // the cores that it may use; default all
	Procs  int      // GOMAXPROCS; default the number of CPUs, or all
	Nice   int      // niceness; a negative one takes priority over other programs and requires root
}

// Process is a process, running or ended.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
	log   string
	from  int64 // where its output begins in the log
}

// Start runs a program.
func Start(o Options, binary string, args ...string) (*Process, error) {
	p, out, err := prepare(o, binary, args)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the process has a copy
	return p, p.start(o)
}

// StartPiped runs a program that reads from in and writes to out. Only its standard error goes to the log.
func StartPiped(o Options, binary string, args ...string) (p *Process, in io.WriteCloser, out io.ReadCloser, err error) {
	p, log, err := prepare(o, binary, args)
	if err != nil {
		return nil, nil, nil, err
	}
	defer log.Close() //nolint:errcheck // the process has a copy
	if in, err = p.cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	// Not cmd.StdoutPipe, which is closed when the process ends, before its last output is read.
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer theirs.Close() //nolint:errcheck // the process has a copy
	p.cmd.Stdout = theirs
	return p, in, out, p.start(o)
}

// prepare builds the command, and opens its log.
func prepare(o Options, binary string, args []string) (*Process, *os.File, error) {
	out, err := os.OpenFile(o.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	info, err := out.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	words := append(append(append([]string{}, o.Prefix...), binary), args...)
	p := &Process{cmd: exec.Command(words[0], words[1:]...), ended: make(chan struct{}), log: o.Log, from: info.Size()}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = append(os.Environ(), o.Env...)
	if o.Procs == 0 {
		o.Procs = len(o.CPUs)
	}
	if o.Procs > 0 {
		p.cmd.Env = append(p.cmd.Env, "GOMAXPROCS="+strconv.Itoa(o.Procs))
	}
	return p, out, nil
}

func (p *Process) start(o Options) error {
	started := make(chan error)
	go func() { // Stop and Kill await it
		defer close(p.ended)
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		err := startPinned(p.cmd, o.CPUs, o.Nice)
		started <- err
		if err == nil {
			p.cmd.Wait() //nolint:errcheck // ExitCode and the log have the reason
		}
	}()
	return <-started
}

// ErrEnded is returned if a process ended before it served.
var ErrEnded = errors.New("ended before it served")

// Await calls ask until it succeeds, the process has ended, or ctx is done.
func (p *Process) Await(ctx context.Context, ask func() error) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("process %w, exit code %d: %s", ErrEnded, p.ExitCode(), p.Log())
		case <-ctx.Done():
			return fmt.Errorf("process does not serve: %w: %w: %s", ctx.Err(), err, p.Log())
		case <-poll.C:
		}
	}
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output returns what the process has printed so far.
func (p *Process) Output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[p.from:])
}

// Log returns the end of the process's output.
func (p *Process) Log() string {
	text := p.Output()
	return text[max(0, len(text)-2000):]
}

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Running reports whether the process is still running.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// ExitCode returns the exit code of a process that has ended; -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// stopTimeout is the time limit for a program to stop by itself.
const stopTimeout = 20 * time.Second

// Stop asks the program to stop, kills it if that takes too long, and waits until it has ended.
func (p *Process) Stop() {
	p.Signal(syscall.SIGTERM) //nolint:errcheck // it is killed below
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.Kill()
	}
}

// Kill kills the process, and waits until it has ended.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL) //nolint:errcheck // a process can always kill its children
	<-p.ended
}

// Signal sends the process a signal, unless it has ended.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v: %w", s, err)
	}
	return nil
}
