package mirror

import (
	"context"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// SendPause is how long messages for a region are collected into one, except edits, which go at once, and moves of a poller
// round, which have waited already.
const SendPause = 15 * time.Millisecond

// promptLink is a region.Link that can send without blocking.
type promptLink interface {
	// TrySend sends the result of take, or reports false without calling it.
	TrySend(take func() nodemsg.ToRegion) bool
}

// sender sends a subscription's messages to its region. Its lock is held from taking a message out until it is sent, which keeps
// messages in order. It is locked before the subscription's.
type sender struct {
	sub *Subscription

	sync.Mutex
	link promptLink // nil if there is none, or none that can send without blocking
}

// run sends collected messages over a link, until ctx ends.
func (s *sender) run(ctx context.Context, link region.Link) error {
	idle := time.NewTicker(Linger / 4)
	defer idle.Stop()
	prompt, _ := link.(promptLink)
	s.setLink(prompt)
	defer s.setLink(nil)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			if s.sub.dropUnused() {
				return errUnneeded
			}
			continue
		case <-s.sub.wake:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.sub.flushNow:
		case <-time.After(SendPause):
		}
		if err := s.send(link); err != nil {
			return err
		}
	}
}

// send sends what is collected, unless another goroutine does so already.
func (s *sender) send(link region.Link) error {
	s.Lock()
	defer s.Unlock()
	out := s.sub.takeOut()
	if out.Empty() {
		return nil
	}
	return link.Send(out)
}

// setLink lets goroutines other than the sender send.
func (s *sender) setLink(link promptLink) {
	s.Lock()
	defer s.Unlock()
	s.link = link
}

// tryFlush sends what is collected if that does not block. It saves waking the sender.
func (s *sender) tryFlush() bool {
	if !s.TryLock() {
		return false
	}
	defer s.Unlock()
	return s.link != nil && s.link.TrySend(s.sub.takeOut)
}
