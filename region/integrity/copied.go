package integrity

import (
	"maps"
	"sync"
	"time"
)

// Two copies of one data directory may run at the same time: somebody has copied a machine, and started the copy beside
// it. Both have the node's key. Each makes the other one an earlier state, so that neither votes with what it has. That
// looks like data that was put back, but waiting does not end it. It is noticed by an incarnation that goes on after a
// later one: of a single directory, the earlier one has ended. Exchanges that were under way when it ended are over
// after exchangeTime.

// copiedFor is how long a copy is reported after it was noticed last. Idle copies show themselves rarely.
const copiedFor = time.Hour

// earlier is an incarnation of a peer after which it has shown another one.
type earlier struct {
	id    [16]byte
	until time.Time // when the other one was noticed
}

// copyTimes is what was noticed of copies. It has a lock of its own: the keeper's is held while the disk writes, and
// doctor must not wait for that.
type copyTimes struct {
	sync.Mutex

	others map[string]time.Time // by peer: when two copies of its data were noticed last
	own    time.Time            // when two of this node's were; zero if never
}

// Copied reports whether two copies of this node's data were noticed that run at the same time, and returns the other
// nodes of which that is so.
func (k *Incarnations) Copied() (own bool, others []string) {
	k.copies.Lock()
	defer k.copies.Unlock()
	maps.DeleteFunc(k.copies.others, func(_ string, at time.Time) bool { return time.Since(at) > copiedFor })
	for peer := range k.copies.others {
		others = append(others, peer)
	}
	return !k.copies.own.IsZero() && time.Since(k.copies.own) <= copiedFor, others
}

// forget forgets what was noticed of a peer.
func (c *copyTimes) forget(peer string) {
	c.Lock()
	defer c.Unlock()
	delete(c.others, peer)
}

// noteCopy records that two copies of a peer's data run.
func (k *Incarnations) noteCopy(peer string) {
	k.copies.Lock()
	defer k.copies.Unlock()
	if last, found := k.copies.others[peer]; !found || time.Since(last) > copiedFor {
		k.Logger.Error("two machines run with the data directory of one node: stop one of them", "peer", peer)
	}
	k.copies.others[peer] = time.Now()
}

// noteOwnCopy records that two copies of this node's data run.
func (k *Incarnations) noteOwnCopy() {
	k.copies.Lock()
	defer k.copies.Unlock()
	if k.copies.own.IsZero() || time.Since(k.copies.own) > copiedFor {
		k.Logger.Error("another machine runs with a copy of this node's data directory: stop one of the two")
	}
	k.copies.own = time.Now()
}
