package region

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file is the fence around each region (docs/adr/0009): whatever goes wrong in one of them ends that one
// on this node, its leadership moves to another member, and the other regions do not notice.

// faultKind is what went wrong with a region.
type faultKind int

const (
	panicked faultKind = iota + 1 // its code panicked
	slow                          // it blew its tick budget again and again
	broken                        // its group failed: raft, or what is stored of it
	refused                       // storage refuses its writes; that may be the disk's fault
)

func (k faultKind) String() string {
	names := [...]string{"none", "panic", "slow", "group", "storage"}
	if k < 0 || int(k) >= len(names) {
		return "unknown" // another version of voxeld says so
	}
	return names[k]
}

// fault is why a region is fenced.
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

// fenced runs f and gives the panic that ended it; nil if none did.
//
// It is the one place of this package that recovers, and it is right to do so here: f is all that one owner
// does with its own state. That state is thrown away afterwards and read anew from storage, where nothing is
// that was not handed to Group.Applied before the panic. No lock of others is held (loops take none), and
// nothing outside was promised. What cannot be survived (a concurrent map write, no memory left) ends the
// process still.
func fenced(f func()) (hurt *fault) {
	defer func() {
		if what := recover(); what != nil {
			hurt = &fault{kind: panicked, cause: fmt.Errorf("panic: %v", what), stack: debug.Stack()}
			var before *fault // found beside the loop, and brought here
			if err, ok := what.(error); ok && errors.As(err, &before) {
				hurt = before
			}
		}
	}()
	f()
	return nil
}

// groupFault tells what the failure of a group means; nil if it is no fault of anybody.
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

// handOffTime bounds how long a fenced region stays open so that another member can take over. An election,
// without it, takes longer.
const handOffTime = time.Second

// runLoop runs a loaded region to its end, whatever end that is.
func (h *Host) runLoop(ctx context.Context, l *loop) {
	hurt := fenced(func() { l.run(ctx) })
	if hurt != nil {
		hurt.entry = l.applying
	} else {
		hurt = l.hurt
	}
	if hurt != nil {
		l.hurt = hurt // from here on nothing that was queued is applied
		h.fence(ctx, l, hurt)
	}
	if l.removed && !l.discarded {
		if err := h.forget(l.info); err != nil {
			h.Logger.Error("land that has moved away stays on disk", "error", err)
		}
	}
	if l.then != nil {
		l.then()
	}
	h.unloaded(l)
}

// fence ends a region that has failed here: another member takes over, the gateways are told who, and the
// group is closed. Then the failure is counted. It runs in the loop's goroutine, behind run.
func (h *Host) fence(ctx context.Context, l *loop, f *fault) {
	h.metrics.fenced.WithLabelValues(f.kind.String()).Inc()
	h.Logger.Error("region fenced", "region", l.info.ID, "cell", l.info.Cell.String(), "reason", f.kind.String(), "error", f, "stack", string(f.stack))
	l.inbox.close()
	if l.applying == 0 && f.kind != refused {
		// No entry was applied by half, so the land is whole: a quarantined region shows what is stored.
		if worse := fenced(l.report); worse != nil {
			h.Logger.Debug("land of a failed region not stored", "region", l.info.ID, "error", worse)
		}
	}
	led := l.leading
	if heir := h.heir(h.ward(l)); led && heir != "" {
		if err := h.handOff(ctx, l, heir); err != nil {
			h.Logger.Warn("leadership of a fenced region not handed over", "region", l.info.ID, "peer", heir, "error", err)
		}
	}
	l.leader, l.leading = l.raft.Status().Leader, false
	l.abandon("the region failed on this node")
	if err := l.group.Close(); err != nil {
		h.Logger.Error("close region", "region", l.info.ID, "error", err)
	}
	h.struck(l.info, f, led)
}

// handOff moves the leadership of a region whose loop has ended.
func (h *Host) handOff(ctx context.Context, l *loop, heir string) error {
	ctx, cancel := context.WithTimeout(ctx, handOffTime)
	defer cancel()
	if err := l.raft.Transfer(heir); err != nil {
		return err
	}
	if err := h.settle(ctx, func() bool { return !l.raft.Status().Self }); err != nil {
		return err
	}
	h.metrics.changes.WithLabelValues("transfer").Inc()
	return nil
}

// abandon is end for a loop that has failed: nothing of its state is touched but the seats. Commands that
// wait are run, because gateways that were just coming in are among them; each may fail for itself.
func (l *loop) abandon(why string) {
	inputs, _ := l.inbox.take()
	for _, input := range inputs {
		if hurt := fenced(input); hurt != nil {
			l.logger.Debug("command of a failed region failed", "region", l.info.ID, "error", hurt)
		}
	}
	last := wire.FromRegion{Tick: l.tick, Closed: why}
	if l.ledElsewhere() {
		last.Leader = l.leader
	}
	for s := range l.seats {
		s.out.put(last)
		s.out.close()
	}
	clear(l.seats)
}

// fail notes that the region cannot go on here.
func (l *loop) fail(err error) {
	l.failed = true
	l.hurt = groupFault(err)
}
