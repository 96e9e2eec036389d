package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Node is one daemon: its own process, address, data directory and log. One goroutine calls its methods, except where
// a method says otherwise.
type Node struct {
	Number int // from 1
	Game   string

	binary     string
	args       []string // of voxeld run, without --join
	execPrefix []string // command prefix that enters the node's namespace; empty without namespaces
	dir        string   // data directory
	admin      string   // admin socket
	pid        string   // file with the process id, for a sweep
	log        string   // of all runs of this node
	disk       *disk    // nil without disks
	poweredOff bool     // its machine has no power
	peer       string   // peer id; empty before the first start, and after wipe

	mu struct {
		sync.Mutex
		process *process // nil while the node is stopped
		paused  bool
		code    int // exit code of the previous process
	}
}

// process is one run of a node.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed when it has ended and was awaited
	wanted bool          // the driver has ended it, or is about to
}

// startLimit is the time limit for a node to serve.
const startLimit = 40 * time.Second

// start runs the node, and returns when it serves. join is a token, or empty.
func (n *Node) start(ctx context.Context, join string) error {
	if err := n.launch(join); err != nil {
		return err
	}
	return n.await(ctx)
}

// launch runs the node, without waiting for it.
func (n *Node) launch(join string) error {
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open log of node %d: %w", n.Number, err)
	}
	defer log.Close()                                                            //nolint:errcheck // the process writes it
	fmt.Fprintf(log, "=== started at %s\n", time.Now().Format(time.RFC3339Nano)) //nolint:errcheck // only for people
	args := append(append([]string{}, n.execPrefix...), n.binary)
	args = append(args, n.args...)
	if join != "" {
		args = append(args, "--join", join)
	}
	c := exec.Command(args[0], args[1:]...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // nodes end with a driver that is killed
	if err := c.Start(); err != nil {
		return fmt.Errorf("start node %d: %w", n.Number, err)
	}
	p := &process{cmd: c, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		c.Wait() //nolint:errcheck // the exit code has it
	}()
	n.mu.Lock()
	n.mu.process, n.mu.paused = p, false
	n.mu.Unlock()
	if err := os.WriteFile(n.pid, []byte(strconv.Itoa(c.Process.Pid)), 0o644); err != nil {
		return fmt.Errorf("write pid file of node %d: %w", n.Number, err)
	}
	return nil
}

// errRefused is returned if the node exited before it served.
var errRefused = errors.New("exited before it served")

// await waits until a launched node serves.
func (n *Node) await(ctx context.Context) error {
	p := n.running()
	if p == nil {
		return fmt.Errorf("node %d is not running", n.Number)
	}
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	for {
		if s, err := getAdmin[status](ctx, n, "status"); err == nil {
			n.peer = s.Peer
			return nil
		}
		select {
		case <-p.ended:
			n.gone(p)
			return fmt.Errorf("node %d: %w, exit code %d: %s", n.Number, errRefused, p.cmd.ProcessState.ExitCode(), n.logTail())
		case <-limit.C:
			return fmt.Errorf("node %d did not serve within %v: see %s", n.Number, startLimit, n.log)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// running returns the node's process; nil while there is none. Any goroutine may call it.
func (n *Node) running() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.process
}

// Serves reports whether sessions may try the node: it runs, and is not paused. Any goroutine may call it.
func (n *Node) Serves() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.process != nil && !n.mu.paused
}

// signal sends the process a signal, unless it has ended.
func (n *Node) signal(s syscall.Signal) error {
	p := n.running()
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to node %d: %w", s, n.Number, err)
	}
	return nil
}

// kill kills the node (SIGKILL).
func (n *Node) kill() error {
	p := n.expectEnd()
	if p == nil {
		return nil
	}
	if err := n.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	n.gone(p)
	return nil
}

// terminate asks the node to stop (SIGTERM), and returns its exit code and how long it took.
func (n *Node) terminate(ctx context.Context, limit time.Duration) (code int, took time.Duration, err error) {
	p := n.expectEnd()
	if p == nil {
		return 0, 0, fmt.Errorf("stop node %d: not running", n.Number)
	}
	start := time.Now()
	if err := n.signal(syscall.SIGTERM); err != nil {
		return 0, 0, err
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	case <-time.After(limit):
		return 0, 0, errors.Join(fmt.Errorf("node %d did not stop within %v", n.Number, limit), n.kill())
	}
	n.gone(p)
	return p.cmd.ProcessState.ExitCode(), time.Since(start), nil
}

// expectEnd records that the driver is ending the process.
func (n *Node) expectEnd() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.process != nil {
		n.mu.process.wanted = true
	}
	return n.mu.process
}

func (n *Node) gone(p *process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.process == p {
		n.mu.process, n.mu.code = nil, p.cmd.ProcessState.ExitCode()
	}
}

// suspend pauses the process (SIGSTOP); resume continues it.
func (n *Node) suspend() error {
	n.setPaused(true)
	return n.signal(syscall.SIGSTOP)
}

func (n *Node) resume() error {
	defer n.setPaused(false)
	return n.signal(syscall.SIGCONT)
}

func (n *Node) setPaused(yes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.paused = yes
}

// killAll kills nodes, all at the same moment.
func killAll(nodes []*Node) error {
	var errs []error
	for _, n := range nodes {
		n.expectEnd()
		errs = append(errs, n.signal(syscall.SIGKILL))
	}
	for _, n := range nodes {
		errs = append(errs, n.kill()) // awaits it
	}
	return errors.Join(errs...)
}

// cutPowerAll cuts the power of the nodes' machines, all at the same moment: their disks lose what they have not written.
// The processes are paused meanwhile, so that they send nothing that a machine without power could not send.
func cutPowerAll(nodes []*Node) error {
	errs := make([]error, len(nodes))
	for i, n := range nodes {
		n.poweredOff = true
		errs[i] = n.suspend()
	}
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = errors.Join(errs[i], n.disk.cut()) })
	}
	wg.Wait()
	return errors.Join(append(errs, killAll(nodes))...)
}

// powerUp restores the power, if it was cut. It does not start the node.
func (n *Node) powerUp() error {
	if !n.poweredOff {
		return nil
	}
	n.poweredOff = false
	return n.disk.remount()
}

// exitedUnexpectedly reports whether the process ended without the driver's doing, and its exit code. The node then counts as
// stopped. Any goroutine may call it.
func (n *Node) exitedUnexpectedly() (code int, yes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.mu.process
	if p == nil || p.wanted {
		return 0, false
	}
	select {
	case <-p.ended:
		n.mu.process, n.mu.code = nil, p.cmd.ProcessState.ExitCode()
		return n.mu.code, true
	default:
		return 0, false
	}
}

// exitCode returns the exit code of the latest process, once it has ended.
func (n *Node) exitCode() (code int, ended bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.code, n.mu.process == nil
}

// wipe empties the data directory, as an operator would who replaces a damaged node.
func (n *Node) wipe() error {
	entries, err := os.ReadDir(n.dir)
	if err != nil {
		return fmt.Errorf("wipe node %d: %w", n.Number, err)
	}
	for _, e := range entries {
		if e.Name() == "lost+found" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(n.dir, e.Name())); err != nil {
			return fmt.Errorf("wipe node %d: %w", n.Number, err)
		}
	}
	n.peer = ""
	return nil
}

// logTail returns the end of the log.
func (n *Node) logTail() string {
	text, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-3):], []byte(" | ")))
}
