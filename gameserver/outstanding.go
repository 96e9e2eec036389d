package gameserver

import "sync"

// pendingEdits is the set of a session's unanswered edits. Its lock is a leaf.
type pendingEdits struct {
	mu struct {
		sync.Mutex
		seqs    map[uint64]struct{}
		settled chan struct{} // nil until hold; closed when no edit waits any more
	}
}

// add adds an edit. It reports false when the session accepts no more.
func (o *pendingEdits) add(seq uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.settled != nil {
		return false
	}
	if o.mu.seqs == nil {
		o.mu.seqs = make(map[uint64]struct{})
	}
	o.mu.seqs[seq] = struct{}{}
	return true
}

// closed reports whether the session accepts no more.
func (o *pendingEdits) closed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.settled != nil
}

// answered removes an edit.
func (o *pendingEdits) answered(seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, waits := o.mu.seqs[seq]; !waits {
		return
	}
	if delete(o.mu.seqs, seq); len(o.mu.seqs) == 0 && o.mu.settled != nil {
		close(o.mu.settled)
	}
}

// close stops accepting edits. The channel is closed when all are answered. It is called once.
func (o *pendingEdits) close() (settled <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.settled = make(chan struct{})
	if len(o.mu.seqs) == 0 {
		close(o.mu.settled)
	}
	return o.mu.settled
}
