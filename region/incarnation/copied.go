package incarnation

import (
	"maps"
	"time"
)

// Two copies of one data directory may run at the same time: somebody has copied a machine, and started the copy beside it. Both have the
// node's key. Each makes the other one an earlier state, so that neither votes with what it has. That looks like data that was put back, but
// waiting does not end it. It is noticed by an incarnation that goes on after a later one: of a single directory, the earlier one has ended.
// Exchanges that were under way when it ended are over after exchangeTime.

// copiedFor is how long a copy is reported after it was noticed last. Idle copies show themselves rarely.
const copiedFor = time.Hour

// earlier is an incarnation of a peer after which it has shown another one.
type earlier struct {
	id    [16]byte
	until time.Time // when the other one was noticed
}

// Copied reports whether two copies of this node's data were noticed that run at the same time, and returns the other nodes of which that
// is so.
func (k *Keeper) Copied() (own bool, others []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.mu.copied, func(_ string, at time.Time) bool { return time.Since(at) > copiedFor })
	for peer := range k.mu.copied {
		others = append(others, peer)
	}
	return !k.mu.copiedOwn.IsZero() && time.Since(k.mu.copiedOwn) <= copiedFor, others
}

// noteCopy records that two copies of a peer's data run. The caller holds the lock.
func (k *Keeper) noteCopy(peer string) {
	if last, found := k.mu.copied[peer]; !found || time.Since(last) > copiedFor {
		k.Logger.Error("two machines run with the data directory of one node: stop one of them", "peer", peer)
	}
	k.mu.copied[peer] = time.Now()
}

// noteOwnCopy records that two copies of this node's data run. The caller holds the lock.
func (k *Keeper) noteOwnCopy() {
	if k.mu.copiedOwn.IsZero() || time.Since(k.mu.copiedOwn) > copiedFor {
		k.Logger.Error("another machine runs with a copy of this node's data directory: stop one of the two")
	}
	k.mu.copiedOwn = time.Now()
}
