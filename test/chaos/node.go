package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/machine"
	"github.com/voxelpopuli/voxeld/test/chaos/players"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// Node is one daemon, with a data directory that may be on a disk of its own. One goroutine calls its methods, except
// where a method says otherwise.
type Node struct {
	*daemon.Daemon
	Number int // from 1

	dir        string        // data directory
	pid        string        // file with the process id, for a sweep
	log        string        // of all runs of this node
	disk       *machine.Disk // nil without disks
	gateway    *players.Gateway
	poweredOff bool // its machine has no power

	mu struct {
		sync.Mutex
		process *process.Process // nil while the node is stopped
		latest  *process.Process // also while it is stopped
		ending  bool             // the driver has ended it, or is about to
		paused  bool
		served  bool   // the process has served, since it was launched
		code    int    // exit code of the previous process
		peer    string // peer id; empty before the first start, and after wipe
	}
}

// gatewaysOf returns nodes as players know them.
func gatewaysOf(nodes []*Node) []*players.Gateway {
	all := make([]*players.Gateway, len(nodes))
	for i, n := range nodes {
		all[i] = n.gateway
	}
	return all
}

// startLimit is the time limit for a node to serve.
const startLimit = 40 * time.Second

// launch runs the node, without waiting for it. join is a token, or empty.
func (n *Node) launch(join string) error {
	if err := n.markStart(); err != nil {
		return err
	}
	if err := n.Launch(join); err != nil {
		return fmt.Errorf("start node %d: %w", n.Number, err)
	}
	n.mu.Lock()
	n.mu.process, n.mu.latest, n.mu.paused, n.mu.ending, n.mu.served = n.Process, n.Process, false, false, false
	n.mu.Unlock()
	if err := os.WriteFile(n.pid, []byte(strconv.Itoa(n.PID())), 0o644); err != nil {
		return fmt.Errorf("write pid file of node %d: %w", n.Number, err)
	}
	return nil
}

// markStart writes a line into the log, for people.
func (n *Node) markStart() error {
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open log of node %d: %w", n.Number, err)
	}
	_, err = fmt.Fprintf(log, "=== started at %s\n", time.Now().Format(time.RFC3339Nano))
	return errors.Join(err, log.Close())
}

// await waits until a launched node serves. The error is process.ErrEnded if it exits before.
func (n *Node) await(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err := n.Await(limited)
	if err == nil {
		n.mu.Lock()
		n.mu.served = true
		n.mu.Unlock()
		var s daemon.Status
		s, err = n.Status(ctx)
		n.setPeer(s.Peer)
	}
	if !n.Running() {
		n.gone(n.Process)
	}
	if err != nil {
		return fmt.Errorf("node %d: %w", n.Number, err)
	}
	return nil
}

// peer returns the node's peer id; "" before the first start. Any goroutine may call it.
func (n *Node) peer() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.peer
}

func (n *Node) setPeer(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.peer = id
}

// running returns the node's process; nil while there is none. Any goroutine may call it.
func (n *Node) running() *process.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.process
}

// Serves reports whether sessions may try the node: it has started, is not paused, and the driver is not ending it.
// What a node does not answer while it serves is judged. Any goroutine may call it.
func (n *Node) Serves() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.process != nil && n.mu.served && !n.mu.paused && !n.mu.ending
}

// signal sends the process a signal, unless it has ended.
func (n *Node) signal(s syscall.Signal) error {
	p := n.running()
	if p == nil {
		return nil
	}
	if err := p.Signal(s); err != nil {
		return fmt.Errorf("node %d: %w", n.Number, err)
	}
	return nil
}

// kill kills the node (SIGKILL).
func (n *Node) kill() error {
	if p := n.expectEnd(); p != nil {
		p.Kill()
		n.gone(p)
	}
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
	case <-p.Ended():
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	case <-time.After(limit):
		return 0, 0, errors.Join(fmt.Errorf("node %d did not stop within %v", n.Number, limit), n.kill())
	}
	n.gone(p)
	return p.ExitCode(), time.Since(start), nil
}

// expectEnd records that the driver is ending the process.
func (n *Node) expectEnd() *process.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.ending = true
	return n.mu.process
}

func (n *Node) gone(p *process.Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.process == p {
		n.mu.process, n.mu.code = nil, p.ExitCode()
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

// cutPowerAll cuts the power of the nodes' machines, all at the same moment: their disks lose what they have not
// written. The processes are paused meanwhile, so that they send nothing that a machine without power could not send.
func cutPowerAll(nodes []*Node) error {
	errs := make([]error, len(nodes))
	for i, n := range nodes {
		n.poweredOff = true
		errs[i] = n.suspend()
	}
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = errors.Join(errs[i], n.disk.Cut()) })
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
	return n.disk.Remount()
}

// exitedUnexpectedly reports whether the process ended without the driver's doing, and its exit code. The node then
// counts as stopped. Any goroutine may call it.
func (n *Node) exitedUnexpectedly() (code int, yes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.mu.process
	if p == nil || n.mu.ending || p.Running() {
		return 0, false
	}
	n.mu.process, n.mu.code = nil, p.ExitCode()
	return n.mu.code, true
}

// exitCode returns the exit code of the latest process, once it has ended.
func (n *Node) exitCode() (code int, ended bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.code, n.mu.process == nil
}

// wipe empties the data directory, as an operator would who replaces a damaged node.
func (n *Node) wipe() error {
	if err := machine.EmptyDir(n.dir); err != nil {
		return fmt.Errorf("wipe node %d: %w", n.Number, err)
	}
	n.setPeer("")
	return nil
}

// logTail returns the last lines of the latest process's output. Any goroutine may call it.
func (n *Node) logTail() string {
	n.mu.Lock()
	p := n.mu.latest
	n.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(p.Log()), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}
