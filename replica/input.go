package replica

import (
	"maps"
	"slices"
	"sync"
)

// input is what waits for the goroutine of Host.Run.
type input struct {
	wake chan struct{} // signals that there is work
	// mu is locked after Group.mu.
	mu struct {
		sync.Mutex
		queue    []*Group          // groups with a non-empty inbox
		commands []func()          // for Run to call
		open     map[uint64]*Group // for Receive
	}
}

// signal wakes Run's loop.
func (in *input) signal() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// post makes Run call f.
func (in *input) post(f func()) {
	in.mu.Lock()
	in.mu.commands = append(in.mu.commands, f)
	in.mu.Unlock()
	in.signal()
}

// enqueue makes Run process the group's inbox.
func (in *input) enqueue(g *Group) {
	in.mu.Lock()
	in.mu.queue = append(in.mu.queue, g)
	in.mu.Unlock()
	in.signal()
}

// drain returns and removes the groups and commands that wait. Inboxes must go before commands, so that a Close finds
// what was applied before it.
func (in *input) drain() ([]*Group, []func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	queue, commands := in.mu.queue, in.mu.commands
	in.mu.queue, in.mu.commands = nil, nil
	return queue, commands
}

// open returns the handle of an open group, nil if it is not open.
func (in *input) open(group uint64) *Group {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.mu.open[group]
}

// allOpen returns the handles of all open groups.
func (in *input) allOpen() []*Group {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Collect(maps.Values(in.mu.open))
}

// setOpen records the handle of an open group; nil removes it.
func (in *input) setOpen(group uint64, g *Group) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if g == nil {
		delete(in.mu.open, group)
	} else {
		in.mu.open[group] = g
	}
}
