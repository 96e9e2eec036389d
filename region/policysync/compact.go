package policysync

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world/acts"
)

// This file drops acts from the node's copy, and from the catalog's log, once an operator's act says what they have come to, and this node
// has come to the same (docs/adr/0095). The state before that act is kept as a snapshot, from which other nodes begin.
//
// In Table a snapshot has a row for each part, under acts.SnapshotKey. The last one, snapshotHead, has the digest of the acts, and then the
// hashes of all parts.

const (
	// compactPoll is how often an issuer looks whether there are enough acts, and the catalog's leader whether some can be dropped.
	compactPoll = 10 * time.Second
	// fetchTime bounds the time in which another node sends its snapshot.
	fetchTime = time.Minute
	// partRate and partBurst are how many parts a second a node is sent, and how many at once: the largest snapshots have 400.
	partRate, partBurst = 100, 1000
)

// snapshotHead is the number of the row that has the digest and the hashes.
const snapshotHead = math.MaxUint16

// Snapshots are rows of snapshots that several nodes have, of which some may lie.
type Snapshots struct {
	heads [][]byte
	parts map[[sha256.Size]byte][]byte
}

// Add adds a row.
func (s *Snapshots) Add(row kv.Write) {
	if s.parts == nil {
		s.parts = make(map[[sha256.Size]byte][]byte)
	}
	if binary.BigEndian.Uint16(row.Key[8:]) == snapshotHead {
		s.heads = append(s.heads, row.Value)
	} else {
		s.parts[sha256.Sum256(row.Value)] = row.Value
	}
}

// Signed returns the state that an act says there was before it. It returns nil if that is not among the rows.
func (s *Snapshots) Signed(act nodemsg.Act) *policy.State {
	of, signed := policy.Compacts(act.Text)
	for _, head := range s.heads {
		hashes := head[min(len(head), len(nodemsg.ActsDigest{})):]
		if policy.HashOf(hashes) != signed || len(hashes)%sha256.Size != 0 {
			continue
		}
		var snapshot policy.Snapshot
		for hash := range slices.Chunk(hashes, sha256.Size) {
			snapshot = append(snapshot, s.parts[[sha256.Size]byte(hash)])
		}
		if snapshot.Hash() != signed {
			continue // a part is missing
		}
		if state, err := policy.Restore(snapshot, of); err == nil {
			return state
		}
	}
	return nil
}

// saved is a snapshot that is stored here.
type saved struct {
	acts   uint64 // after how many; 0: there is none
	digest nodemsg.ActsDigest
	parts  uint64
}

// rows returns the rows of a snapshot.
func (s saved) rows(parts policy.Snapshot) (rows []kv.Write) {
	for i, part := range parts {
		rows = append(rows, kv.Write{Table: Table, Key: acts.SnapshotKey(s.acts, uint16(i)), Value: part}) //nolint:gosec // at most MaxPolicyParts
	}
	return append(rows, kv.Write{Table: Table, Key: acts.SnapshotKey(s.acts, snapshotHead), Value: append(s.digest[:], parts.Hashes()...)})
}

// compacted returns the rows that change once an act that compacts has been applied: of what was the state before it, and its digest. The
// acts that were compacted the time before are dropped, with the snapshot of then: those since stay, for nodes that were away for some time,
// and for Audit.
func (l *list) compacted(parts policy.Snapshot, digest nodemsg.ActsDigest) (writes []kv.Write) {
	last, before := l.state.Compacted()
	if last == l.snapshot.acts {
		return nil // it is stored
	}
	for ; l.dropped < before; l.dropped++ {
		writes = append(writes, kv.Write{Table: Table, Key: acts.Key(l.dropped + 1)})
	}
	if l.snapshot.acts > 0 {
		for _, row := range l.snapshot.rows(make(policy.Snapshot, l.snapshot.parts)) {
			writes = append(writes, kv.Write{Table: Table, Key: row.Key})
		}
	}
	l.snapshot = saved{last, digest, uint64(len(parts))}
	return append(writes, l.snapshot.rows(parts)...)
}

// readSnapshot returns the list that begins with the stored snapshot; without one it has no acts.
func (c *Copy) readSnapshot() (list, error) {
	l := c.newList()
	var parts policy.Snapshot
	err := c.Storage.Scan(Table, nil, func(key, value []byte) error {
		switch {
		case len(key) != len(acts.SnapshotKey(0, 0)):
		case binary.BigEndian.Uint16(key[8:]) != snapshotHead:
			parts = append(parts, bytes.Clone(value))
		case len(value) < len(l.digest) || !bytes.Equal(parts.Hashes(), value[len(l.digest):]):
			return errors.New("parts of the snapshot are missing")
		default:
			l.digest = nodemsg.ActsDigest(value)
			l.snapshot = saved{binary.BigEndian.Uint64(key), l.digest, uint64(len(parts))}
		}
		return nil
	})
	if err != nil || l.snapshot.acts == 0 {
		return l, err
	}
	l.state, err = policy.Restore(parts, l.snapshot.acts)
	l.dropped = l.snapshot.acts
	return l, err
}

// AnswerPart answers a node that begins with the snapshot of this one.
func (c *Copy) AnswerPart(peer string, q nodemsg.PolicyRequest) nodemsg.Answer {
	c.mu.RLock()
	it := c.mu.list.snapshot
	c.mu.RUnlock()
	part := nodemsg.PolicyPart{Acts: it.acts, Digest: it.digest, Parts: it.parts}
	switch {
	case !c.parts.Allow(peer):
		return nodemsg.Answer{Error: fmt.Sprintf("a node is sent %d parts of the policy a second", partRate)}
	case q.Part >= it.parts:
		return nodemsg.Answer{Policy: &part}
	}
	key := acts.SnapshotKey(it.acts, uint16(q.Part)) //nolint:gosec // less than the parts
	err := c.Storage.Scan(Table, key, func(_, value []byte) error {
		part.Part = bytes.Clone(value)
		return nil
	})
	if err == nil && len(part.Part) == 0 {
		err = errors.New("the snapshot is not stored yet, or was replaced: ask again")
	}
	if err != nil {
		return nodemsg.Answer{Error: transport.Clip(err)}
	}
	return nodemsg.Answer{Policy: &part}
}

// fetch returns a list that begins with the snapshot of a member of the catalog, and its rows. If no other member has one, the list begins
// with the first act.
func (c *Copy) fetch(ctx context.Context) (l list, rows []kv.Write, err error) {
	root, err := c.Directory.CatalogMembers(ctx)
	if err != nil {
		return l, nil, err
	}
	peers := []string{root.Leader} // a member that is new may not know the others yet
	for _, m := range root.Members {
		peers = append(peers, m.Peer)
	}
	slices.Sort(peers)
	for _, peer := range slices.Compact(peers) {
		if peer == c.Self || peer == "" {
			continue
		}
		l, rows, from := c.fetchFrom(ctx, peer)
		if from == nil && rows != nil {
			return l, rows, nil
		}
		if from != nil {
			err = errors.Join(err, fmt.Errorf("fetch the policy from %s: %w", peer, from))
		}
	}
	return c.newList(), nil, err
}

var errUnsigned = errors.New("no operator has signed its snapshot")

// fetchFrom is fetch from one member. Without a snapshot there, there are no rows. The catalog's next act must be the one which has
// compacted the acts of before: an operator has signed the snapshot in it.
func (c *Copy) fetchFrom(ctx context.Context, peer string) (l list, rows []kv.Write, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	var parts policy.Snapshot
	var of nodemsg.PolicyPart
	for n := uint64(0); n == 0 || n < of.Parts; n++ {
		answer, err := c.Directory.Questions.Ask(ctx, peer, nodemsg.Question{Policy: &nodemsg.PolicyRequest{Part: n}})
		switch {
		case err != nil:
			return l, nil, err
		case answer.Error != "":
			return l, nil, errors.New(answer.Error)
		case answer.Policy == nil || answer.Policy.Parts == 0: // an earlier version answers nothing
			return l, nil, nil
		case n > 0 && (answer.Policy.Acts != of.Acts || answer.Policy.Parts != of.Parts):
			return l, nil, errors.New("its snapshot was replaced meanwhile")
		}
		of = *answer.Policy
		parts = append(parts, of.Part)
	}
	page, err := c.missing(ctx, nodemsg.ActsRequest{After: of.Acts, Digest: of.Digest})
	if err != nil {
		return l, nil, err
	}
	if len(page) == 0 || !page[0].Operator {
		return l, nil, errUnsigned
	}
	if acts, hash := policy.Compacts(page[0].Text); acts != of.Acts || hash != parts.Hash() {
		return l, nil, errUnsigned
	}
	if err := c.judge(page[0]); err != nil {
		return l, nil, fmt.Errorf("its snapshot: %w", err)
	}
	l = c.newList()
	l.digest, l.dropped, l.snapshot = of.Digest, of.Acts, saved{of.Acts, of.Digest, of.Parts}
	l.state, err = policy.Restore(parts, of.Acts)
	return l, l.snapshot.rows(parts), err
}

// compactActs has the acts compacted, if there are enough of them, and this node is an issuer; and those dropped from the catalog's log that
// were compacted before the last time, if it leads the catalog.
func (c *Copy) compactActs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if err := c.dropActs(ctx); err != nil {
		c.Logger.Debug("commands that are compacted are not dropped from the catalog yet", "error", err)
	}
	due := false
	c.Read(func(s *policy.State) { due = s.CompactDue(c.CompactEvery) })
	if !due {
		return
	}
	if issuer, err := c.Issued(c.Operator.Charter(), c.Operator.Key); err != nil || !issuer {
		return
	}
	done, err := c.Operate(ctx, policy.CompactCommand)
	if err != nil { // mostly another command came between, or another issuer was faster
		c.Logger.Debug("commands about roles, names and claims are not compacted yet", "error", err)
		return
	}
	c.Logger.Info("commands about roles, names and claims are compacted", "compacted", done)
}

// dropActs drops acts from the catalog's log, once the snapshot that stands for them is stored here.
func (c *Copy) dropActs(ctx context.Context) error {
	catalog := c.Catalog()
	if catalog == nil {
		return nil
	}
	if err := c.pull.Acquire(ctx, 1); err != nil {
		return err
	}
	_, before := c.mu.list.state.Compacted() // only who holds pull changes it
	stored := len(c.unsaved) == 0
	c.pull.Release(1)
	if before == 0 || !stored {
		return nil
	}
	return catalog.DropActs(ctx, before)
}
