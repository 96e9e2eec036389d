package replica_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file puts disks back to earlier copies. The nodes notice with region/integrity, and replace what they must not
// use any more in a short form of region/integrity's Executor.

// machinePast is what a machine needs for that.
type machinePast struct {
	keeper      *integrity.Incarnations
	accepted    map[string]int           // by peer: the process whose lineage this one has accepted
	introducing map[string]time.Duration // by peer: until when an exchange may be under way
	closing     time.Duration            // until then replicas of an earlier state are being closed

	copies   []kv.Tables // of the disk
	backs    int         // how often the disk was put back
	wentBack bool        // it was put back, and the node has not noticed yet
}

var errStillOpen = errors.New("replicas are being closed")

// beginIncarnation is what a daemon does when it starts.
func (n *machine) beginIncarnation() {
	s := n.sim
	keeper, err := integrity.OpenIncarnations(integrity.IncarnationsOptions{
		Storage: n.disk, Held: func() (map[uint64]uint64, error) { return replica.Replicas(n.disk, n.peer) }, Promised: n.host.Promised, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		GroupPeers: func() ([]string, error) { return replica.GroupPeers(n.disk, n.peer) }, OpenGroupPeers: func() []string { return n.host.OpenGroupPeers() },
		Sign: func(text []byte) ([]byte, error) { return append([]byte(n.peer), text[len(text)-32:]...), nil },
	})
	if err != nil { // the disk is full
		n.down()
		s.at(s.now+500*time.Millisecond, n.boot)
		return
	}
	n.keeper, n.accepted, n.introducing, n.closing = keeper, make(map[string]int), make(map[string]time.Duration), 0
	keeper.OnOutdated(n.abandon)
	n.enqueue(n.introduceAll)
	n.every(time.Second, func() {
		for _, o := range n.owners {
			if n.backs == 0 && !o.closed && o.group.Status().Lost {
				n.sim.fail("%s: replica %d of group %d is said to have lost entries, on a disk that was never put back", n.peer, n.host.ReplicaID(o.id), o.id)
			}
		}
	})
	n.every(10*time.Second, func() {
		if counted, _ := keeper.Count(); counted { // an error: the disk is full
			n.introduceAll()
		}
	})
}

func (n *machine) introduceAll() {
	for _, other := range n.sim.nodes {
		if other != n && !other.gone {
			n.exchange(other, n.keeper.Show(), 3)
		}
	}
}

// admits reports whether a raft message counts that a process of another node has sent.
func (n *machine) admits(from *machine, life int) bool {
	if from == n || n.accepted[from.peer] == life {
		return true
	}
	if s := n.sim; n.introducing[from.peer] <= s.now {
		n.introducing[from.peer] = s.now + 300*time.Millisecond
		n.exchange(from, n.keeper.Show(), 3)
	}
	return false
}

// exchange is Keeper.Exchange.
func (n *machine) exchange(to *machine, question nodemsg.Lineage, rounds int) {
	s, life := n.sim, n.life
	s.ship(n, to, func() {
		answerer := to.life
		answer, err := to.keeper.Receive(context.Background(), n.peer, question)
		if err != nil {
			return
		}
		s.ship(to, n, func() {
			if n.life != life {
				return
			}
			next, err := n.keeper.Receive(context.Background(), to.peer, answer)
			switch {
			case err != nil:
			case answer.Remembered == nil && next.Remembered == nil:
				n.accepted[to.peer] = answerer
			case rounds > 0:
				n.exchange(to, next, rounds-1)
			}
		})
	})
}

// abandon closes replicas of an earlier state. It fails until they are closed, and is called again.
func (n *machine) abandon(_ context.Context, replicas map[uint64]uint64) error {
	for _, o := range slices.Clone(n.owners) {
		if replicas[o.id] != 0 {
			n.close(o)
			n.closing = n.sim.now + 200*time.Millisecond
		}
	}
	if len(n.opening) > 0 || n.closing > n.sim.now {
		return errStillOpen
	}
	n.sim.count("old disks noticed")
	n.sim.note(note{who: n.peer, what: "abandons", a: uint64(len(replicas))})
	n.wentBack = false
	return nil
}

// outdated reports whether the replica that is stored must not be opened.
func (n *machine) outdated(group uint64) bool {
	id, found := n.keeper.Outdated()[group]
	stored := n.stored(group)
	return found && (stored == 0 || stored == id)
}

// listLost finds the groups that count this node as a member though its disk, which was put back, has nothing of them.
func (n *machine) listLost() {
	if !n.keeper.Unlisted() {
		return
	}
	lost := make(map[uint64]uint64)
	for _, m := range n.sim.inOrder() {
		i := slices.IndexFunc(m.newest.Members, func(k replica.Member) bool { return k.Peer == n.peer })
		if i >= 0 && n.stored(m.group) == 0 {
			n.sim.count("replicas that are not on an old disk")
			lost[m.group] = m.newest.Members[i].ID
		}
		for _, k := range m.region.Members { // the catalog may still list a replica that was removed
			if k.Peer == n.peer && i < 0 && k.Replica != 0 && n.stored(m.group) == 0 {
				lost[m.group] = k.Replica
			}
		}
	}
	_ = n.keeper.Lost(lost) // an error: the disk is full
}

func (n *machine) stored(group uint64) uint64 {
	held, err := replica.Replicas(n.disk, n.peer)
	if err != nil {
		n.sim.fail("%s: %v", n.peer, err)
	}
	return held[group]
}

// replaceOutdated asks the leaders to remove replicas that must not be used, and then discards them.
func (n *machine) replaceOutdated() {
	n.listLost()
	s, outdated := n.sim, n.keeper.Outdated()
	for _, group := range slices.Sorted(maps.Keys(outdated)) {
		id := outdated[group]
		if n.opening[group] || n.owner(group) != nil && n.host.ReplicaID(group) <= id {
			continue
		}
		if stored := n.stored(group); stored != 0 && stored != id {
			_ = n.keeper.Replaced(group) // an error: the disk is full
			continue
		}
		for _, other := range s.nodes {
			s.ship(n, other, func() {
				o := other.owner(group)
				if o == nil || !o.leading {
					return
				}
				member, is := o.replicaOf(n.peer)
				if is && (!o.heldWithout(member.ID) || o.group.Remove(n.peer) != nil) { // another change is under way
					return
				}
				other.later(300*time.Millisecond, func() {
					now, still := o.replicaOf(n.peer)
					if o.closed || still && (!is || now == member) {
						return
					}
					newest := o.group.NewestID()
					if still { // it was removed, and invited again since
						newest = member.ID
					}
					s.ship(other, n, func() { n.discardOutdated(group, id, newest) })
				})
			})
		}
	}
}

func (o *owner) replicaOf(peer string) (replica.Member, bool) {
	for _, m := range o.group.Configuration().Members {
		if m.Peer == peer {
			return m, true
		}
	}
	return replica.Member{}, false
}

// heldWithout is that of region/integrity.
func (o *owner) heldWithout(id uint64) bool {
	status := o.group.Status()
	voters, others, have := 0, 0, 0
	for _, m := range status.Members {
		if m.Learner {
			continue
		}
		voters++
		if m.ID != id {
			others++
			if m.Match >= status.Last {
				have++
			}
		}
	}
	return status.Self && have >= min(voters/2+1, others)
}

func (n *machine) discardOutdated(group, id, newest uint64) {
	if n.opening[group] || n.owner(group) != nil || !n.outdated(group) {
		return
	}
	life := n.life
	n.opening[group] = true
	n.host.PostDiscard(group, max(id, newest), n.deletion(group), func(err error) {
		if n.life != life {
			return
		}
		delete(n.opening, group)
		if err == nil {
			n.sim.count("outdated replicas discarded")
			n.tombstones[group] = max(n.tombstones[group], id, newest)
			_ = n.keeper.Replaced(group) // an error: the disk is full
		}
	})
}

// keepCopy copies the disk.
func (n *machine) keepCopy() {
	if n.gone || len(n.disk.tables[integrity.IncarnationsTable]) == 0 {
		return
	}
	n.copies = append(n.copies, n.disk.tables.Clone())
	n.copies = n.copies[max(0, len(n.copies)-3):]
}

// allCurrent reports whether no disk is of an earlier state, and all that were have been replaced.
func (s *sim) allCurrent() bool {
	return !slices.ContainsFunc(s.nodes, func(n *machine) bool { return !n.gone && (n.wentBack || len(n.disk.tables["outdated"]) > 0) })
}

// putBack puts a disk back to an earlier copy, if all other nodes can know, and the groups can spare what it has
// forgotten.
func (s *sim) putBack(n *machine) {
	if n.gone || len(n.copies) == 0 || !s.allCurrent() {
		return
	}
	one := n.copies[s.random.IntN(len(n.copies))]
	own, err := nodemsg.DecodeLineage(one[integrity.IncarnationsTable]["own"])
	if err != nil {
		s.fail("%s: lineage in a copy: %v", n.peer, err)
		return
	}
	for _, other := range s.nodes {
		if other == n || other.gone {
			continue
		}
		row := other.disk.tables[integrity.IncarnationsTable]["seen/"+n.peer]
		seen, err := nodemsg.DecodeIncarnation(row)
		if err != nil || slices.ContainsFunc(own.Incarnations, func(i nodemsg.Incarnation) bool { return i.ID == seen.ID && i.Count >= seen.Count }) {
			s.count("old disks that some node cannot know")
			return
		}
	}
	for _, m := range s.models {
		voters := 0
		for _, k := range m.newest.Members {
			if !k.Learner {
				voters++
			}
		}
		if voters < 3 {
			return
		}
	}
	// What the others acknowledge together with this node, the witness does not have. Then the two are alone for a
	// while.
	witness := s.anyNode()
	if witness == n || witness.gone {
		return
	}
	for _, other := range s.nodes {
		if other != witness {
			s.network.cut[[2]int{witness.number, other.number}], s.network.cut[[2]int{other.number, witness.number}] = true, true
		}
	}
	s.run(s.now + s.between(500*time.Millisecond, 5*time.Second))
	s.network.cut = make(map[[2]int]bool)
	if s.chance(0.5) {
		for _, other := range s.nodes {
			if other != witness && other != n && s.chance(0.8) {
				other.crash("while a disk is old")
				s.at(s.now+s.between(3*time.Second, 12*time.Second), other.boot)
			}
		}
	}
	n.crash("for an old disk")
	s.count("old disks put back")
	s.note(note{who: n.peer, what: "put back"})
	n.backs++
	n.wentBack = true
	n.disk.tables = one.Clone()
	s.at(s.now+s.between(0, time.Second), n.boot)
}
