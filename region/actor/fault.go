package actor

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// This file describes why a region is isolated on a node, and turns panics into that.

// FaultKind is the kind of a region's failure.
type FaultKind int

// The kinds of failures.
const (
	Panicked FaultKind = iota + 1 // its code Panicked
	Slow                          // it exceeded its tick budget repeatedly
	Broken                        // its group failed: raft, or its stored state
	Refused                       // storage refuses its writes, possibly because of the disk
)

func (k FaultKind) String() string {
	names := [...]string{"none", "panic", "slow", "group", "storage"}
	if k < 0 || int(k) >= len(names) {
		return "unknown" // reported by another version of voxeld
	}
	return names[k]
}

// Fault is the failure for which a region is isolated.
type Fault struct {
	Kind  FaultKind
	Cause error
	Entry uint64 // log index of the entry that was being applied, 0 if none was
	Stack []byte // of a panic
}

func (f *Fault) Error() string {
	if f.Entry != 0 {
		return fmt.Sprintf("%v, while it applied entry %d", f.Cause, f.Entry)
	}
	return f.Cause.Error()
}

func (f *Fault) Unwrap() error { return f.Cause }

// Catch runs f and returns the panic that ended it, or nil.
//
// It is the only place of package region that recovers from what a region does. That is safe here because f runs only
// what one owner does with its own state. That state is discarded afterwards and read again from storage, which holds
// only what was handed to Group.ReportApplied before the panic. No shared lock is held (loops take none), and nothing was
// promised to others. Fatal errors (a concurrent map write, no memory left) still end the process.
func Catch(f func()) (caught *Fault) {
	defer func() {
		if what := recover(); what != nil {
			caught = &Fault{Kind: Panicked, Cause: fmt.Errorf("panic: %v", what), Stack: debug.Stack()}
			var before *Fault // detected beside the actor, and passed on to it as a panic
			if err, ok := what.(error); ok && errors.As(err, &before) {
				caught = before
			}
		}
	}()
	f()
	return nil
}
