package region

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file isolates regions from each other (docs/adr/0009). A failure in one region ends only that region on this node. Its
// leadership moves to another member, and the other regions keep running.

// faultKind is the kind of a region's failure.
type faultKind int

const (
	panicked faultKind = iota + 1 // its code panicked
	slow                          // it exceeded its tick budget repeatedly
	broken                        // its group failed: raft, or its stored state
	refused                       // storage refuses its writes, possibly because of the disk
)

func (k faultKind) String() string {
	names := [...]string{"none", "panic", "slow", "group", "storage"}
	if k < 0 || int(k) >= len(names) {
		return "unknown" // reported by another version of voxeld
	}
	return names[k]
}

// fault is the failure for which a region is isolated.
type fault struct {
	kind  faultKind
	cause error
	entry uint64 // log index of the entry that was being applied, 0 if none was
	stack []byte // of a panic
}

func (f *fault) Error() string {
	if f.entry != 0 {
		return fmt.Sprintf("%v, while it applied entry %d", f.cause, f.entry)
	}
	return f.cause.Error()
}

func (f *fault) Unwrap() error { return f.cause }

// catchFault runs f and returns the panic that ended it, or nil.
//
// It is the only place of this package that recovers. That is safe here because f runs only what one owner does with its own
// state. That state is discarded afterwards and read again from storage, which holds only what was handed to Group.Applied before
// the panic. No shared lock is held (loops take none), and nothing was promised to others. Fatal errors (a concurrent map write,
// no memory left) still end the process.
func catchFault(f func()) (caught *fault) {
	defer func() {
		if what := recover(); what != nil {
			caught = &fault{kind: panicked, cause: fmt.Errorf("panic: %v", what), stack: debug.Stack()}
			var before *fault // detected beside the loop, and passed on to it as a panic
			if err, ok := what.(error); ok && errors.As(err, &before) {
				caught = before
			}
		}
	}()
	f()
	return nil
}

// groupFault returns the fault that a group's error stands for, or nil if the error is not a failure.
func groupFault(err error) *fault {
	switch {
	case errors.Is(err, replica.ErrStopped), errors.Is(err, replica.ErrClosed):
		return nil
	case errors.Is(err, replica.ErrStorage):
		return &fault{kind: refused, cause: err}
	default:
		return &fault{kind: broken, cause: err}
	}
}

// handOffTime bounds how long an isolated region stays open so that another member can take over. Without the handover, an
// election would take longer.
const handOffTime = time.Second

// runLoop runs a loaded region until it ends, normally or by a fault.
func (h *Host) runLoop(ctx context.Context, l *loop) {
	caught := catchFault(func() { l.run(ctx) })
	if caught != nil {
		caught.entry = l.applying
	} else {
		caught = l.fault
	}
	if caught != nil {
		l.fault = caught // nothing that is still queued is applied from here on
		h.isolate(ctx, l, caught)
	}
	if l.removed && !l.discarded {
		if err := h.deleteRegion(l.info); err != nil {
			h.Logger.Error("rows of a region that this node left stay on disk", "error", err)
		}
	}
	if l.afterEnd != nil {
		l.afterEnd()
	}
	h.unloaded(l)
}

// isolate ends a region that has failed here. Another member takes over, the gateways are sent its name, and the group is closed.
// Then the failure is counted. It runs in the loop's goroutine, after run.
func (h *Host) isolate(ctx context.Context, l *loop, f *fault) {
	h.metrics.isolated.WithLabelValues(f.kind.String()).Inc()
	h.Logger.Error("region fenced", "region", l.info.ID, "cell", l.info.Cell.String(), "reason", f.kind.String(), "error", f, "stack", string(f.stack))
	l.inbox.Close()
	if l.applying == 0 && f.kind != refused {
		// No entry was applied in part, so the land is consistent. Store it: a quarantined region shows what is stored.
		if worse := catchFault(l.report); worse != nil {
			h.Logger.Debug("land of a failed region not stored", "region", l.info.ID, "error", worse)
		}
	}
	led := l.leading
	if heir := h.successor(h.groupOf(l)); led && heir != "" {
		if err := h.handOff(ctx, l, heir); err != nil {
			h.Logger.Warn("leadership of a fenced region not handed over", "region", l.info.ID, "peer", heir, "error", err)
		}
	}
	l.leader, l.leading = l.raft.Status().Leader, false
	l.endAfterFault("the region failed on this node")
	if err := l.group.Close(); err != nil {
		h.Logger.Error("close region", "region", l.info.ID, "error", err)
	}
	h.recordFailure(l.info, f, led)
}

// handOff transfers the leadership of a region whose loop has ended.
func (h *Host) handOff(ctx context.Context, l *loop, heir string) error {
	ctx, cancel := context.WithTimeout(ctx, handOffTime)
	defer cancel()
	if err := l.raft.Transfer(heir); err != nil {
		return err
	}
	if err := h.awaitGroup(ctx, func() bool { return !l.raft.Status().Self }); err != nil {
		return err
	}
	h.metrics.changes.WithLabelValues("transfer").Inc()
	return nil
}

// endAfterFault is end for a loop that has failed. It touches only the subscribers, no other state. Queued commands still run,
// because gateways that were just coming in are among them; each may fail by itself.
func (l *loop) endAfterFault(why string) {
	inputs, _ := l.inbox.Drain()
	for _, input := range inputs {
		if caught := catchFault(input); caught != nil {
			l.logger.Debug("queued command of a failed region failed", "region", l.info.ID, "error", caught)
		}
	}
	last := nodemsg.FromRegion{Tick: l.tick, Closed: why}
	if l.ledElsewhere() {
		last.Leader = l.leader
	}
	for s := range l.subscribers {
		s.out.Put(last)
		s.out.Close()
	}
	clear(l.subscribers)
}

// fail records that the region cannot continue here.
func (l *loop) fail(err error) {
	l.failed = true
	l.fault = groupFault(err)
}
