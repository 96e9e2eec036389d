package services

import (
	"sync"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// maxUnanswered bounds the edits of a service that the land has not answered. Players' edits wait in the same queue,
// which holds mirror.MaxPending.
const maxUnanswered = 2 * maxEdits

// author is what this node knows of a service: what it may still do, and its edits that the land has not answered. It
// is the mirror's subscriber that gets the answers, whichever request sent them.
type author struct {
	unseen
	requests, blocks, lines *rate.Limiter
	editing                 *semaphore.Weighted // one request at a time changes blocks

	mu struct {
		sync.Mutex
		unanswered map[uint64]chan<- nodemsg.EditResult // by number; nil if the request has ended. A channel has room for the result.
		line       uint64                               // the number of the last line to the world
	}
}

func newAuthor() *author {
	a := &author{
		requests: rate.NewLimiter(requestsPerSecond, requestsAtOnce), blocks: rate.NewLimiter(blocksPerSecond, blocksAtOnce),
		lines: rate.NewLimiter(linesPerSecond, linesAtOnce), editing: semaphore.NewWeighted(1),
	}
	a.mu.unanswered = make(map[uint64]chan<- nodemsg.EditResult)
	return a
}

// await has the results of edits sent to a channel. It reports false if too many others wait.
func (a *author) await(seqs []uint64, to chan<- nodemsg.EditResult) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	added := 0
	for _, seq := range seqs {
		if _, waits := a.mu.unanswered[seq]; !waits {
			added++
		}
	}
	if len(a.mu.unanswered)+added > maxUnanswered {
		return false
	}
	for _, seq := range seqs {
		a.mu.unanswered[seq] = to
	}
	return true
}

// waited returns the numbers of the edits that the land has not answered.
func (a *author) waited() map[uint64]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[uint64]bool)
	for seq := range a.mu.unanswered {
		all[seq] = true
	}
	return all
}

// leave ends the wait of a request.
func (a *author) leave(seqs []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seq := range seqs {
		if _, waits := a.mu.unanswered[seq]; waits {
			a.mu.unanswered[seq] = nil
		}
	}
}

// forget forgets an edit that is not requested.
func (a *author) forget(seq uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.mu.unanswered, seq)
}

// SendResult takes the result of an edit.
func (a *author) SendResult(r nodemsg.EditResult) (waits bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if to := a.mu.unanswered[r.Seq]; to != nil {
		to <- r
	}
	delete(a.mu.unanswered, r.Seq)
	return false
}

// nextLine returns the number of the next line to the world, above those before: at least a time in milliseconds.
func (a *author) nextLine(at uint64) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.line = max(a.mu.line+1, at)
	return a.mu.line
}

var _ mirror.Subscriber = (*author)(nil)
