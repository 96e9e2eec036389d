package integrity

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// The tables.
const (
	// IncarnationsTable stores "own" → the lineage of this node, and "seen/" and a peer id → the newest incarnation of
	// that node; "promised" → when this node last counted that it has promised something, and "reached" → the same as
	// of the earlier state to which its data was put back last. Times are seconds since 1970, 8 bytes big-endian.
	IncarnationsTable = "incarnations"
	// outdatedTable stores the replicas that must not be used any more: group, 8 bytes big-endian → replica id,
	// likewise. The group 0 means that the replicas are not replaced yet of which nothing is stored, because they are
	// newer than the state.
	outdatedTable = "outdated"
)

var ownKey, promisedKey, reachedKey = []byte("own"), []byte("promised"), []byte("reached")

const seenPrefix = "seen/"

// maxSeen bounds the nodes whose incarnations are remembered.
const maxSeen = 4096

// IncarnationsStorage is the node's storage.
type IncarnationsStorage interface {
	Get(table string, key []byte) ([]byte, error)
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
	Commit(writes []kv.Write) error
}

// IncarnationsOptions configure a Keeper. All fields are required.
type IncarnationsOptions struct {
	Storage IncarnationsStorage
	// Sign signs with the node's key. The same text has the same signature.
	Sign func(text []byte) ([]byte, error)
	// Ask asks a peer the question of Protocol.
	Ask func(ctx context.Context, peer string, question []byte) ([]byte, error)
	// Held lists the groups that this node stores, each with its replica id.
	Held func() (map[uint64]uint64, error)
	// GroupPeers lists the other members of the groups that this node stores, and OpenGroupPeers those of the groups
	// that are open now.
	GroupPeers     func() ([]string, error)
	OpenGroupPeers func() []string
	// Promised counts what the node has promised as a member of groups.
	Promised   func() uint64
	Now        func() time.Time // the time of the world; nil: that of the machine
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Incarnations keeps this node's lineage, and what it remembers of other nodes.
type Incarnations struct {
	IncarnationsOptions
	outdatedTotal prometheus.Counter

	copies   copyTimes
	adopting sync.RWMutex // locked while the storage turns out to be outdated, and for reading by Create; before mu

	mu struct {
		sync.Mutex
		own        lineage
		promised   time.Time // when the count was raised last, according to the storage; zero if unknown
		reached    time.Time // promised as of the state to which the storage was put back last; zero if unknown
		counted    uint64    // Promised when the count was raised last
		signature  []byte    // of the incarnation that runs
		seen       map[string]nodemsg.SignedIncarnation
		groupPeers map[string]struct{}            // nodes that have been members of a group together with this one since it started
		shown      map[string]nodemsg.Incarnation // by peer: what it has accepted of this node since it started
		asking     map[string]struct{}            // peers that are being shown the newest
		outdated   map[uint64]uint64              // replicas that must not be used, by group
		lost       map[uint64]uint64              // replicas of which nothing is stored; they must not be created again under their ids
		losing     bool                           // the row of group 0 is stored
		unlisted   bool                           // lost is not known yet
		abandon    func(ctx context.Context, replicas map[uint64]uint64) error
		before     map[string]earlier // by peer: the incarnation that it showed before the one in seen, since this node started
	}
}

// OpenIncarnations returns the keeper of a node that starts. The new incarnation is durable before Open returns.
func OpenIncarnations(o IncarnationsOptions) (*Incarnations, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Incarnations{IncarnationsOptions: o, outdatedTotal: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "voxeld_replicas_rolled_back_total",
		Help: "Replicas not used because this node's data was put back to an earlier state; other members replace them.",
	})}
	o.Registerer.MustRegister(k.outdatedTotal)
	k.mu.seen, k.mu.outdated, k.mu.lost = make(map[string]nodemsg.SignedIncarnation), make(map[uint64]uint64), make(map[uint64]uint64)
	k.mu.groupPeers, k.mu.asking = make(map[string]struct{}), make(map[string]struct{})
	k.mu.shown, k.mu.before = make(map[string]nodemsg.Incarnation), make(map[string]earlier)
	k.copies.others = make(map[string]time.Time)
	k.mu.abandon = func(context.Context, map[uint64]uint64) error { return nil }
	if err := k.load(); err != nil {
		return nil, fmt.Errorf("read incarnations: %w", err)
	}
	groupPeers, err := k.GroupPeers()
	if err != nil {
		return nil, fmt.Errorf("list the other members of groups: %w", err)
	}
	for _, peer := range groupPeers {
		k.mu.groupPeers[peer] = struct{}{}
	}
	if len(k.mu.own) == 0 { // a new node
		err := k.storePromised(k.mu.own.begin(draw()))
		return k, err
	}
	return k, k.store(k.mu.own.begin(draw()))
}

func draw() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

func (k *Incarnations) load() error {
	row, err := k.Storage.Get(IncarnationsTable, ownKey)
	if err != nil {
		return err
	}
	if row != nil {
		own, err := nodemsg.DecodeLineage(row)
		if err != nil {
			return err
		}
		k.mu.own = own.Incarnations
	}
	if k.mu.promised, err = LastPromised(k.Storage); err != nil {
		return err
	}
	if k.mu.reached, err = loadTime(k.Storage, reachedKey); err != nil {
		return err
	}
	err = k.Storage.Scan(IncarnationsTable, []byte(seenPrefix), func(key, value []byte) error {
		seen, err := nodemsg.DecodeIncarnation(value)
		k.mu.seen[strings.TrimPrefix(string(key), seenPrefix)] = seen
		return err
	})
	if err != nil {
		return err
	}
	return k.Storage.Scan(outdatedTable, nil, func(key, value []byte) error {
		if len(key) != 8 || len(value) != 8 {
			return fmt.Errorf("%w: a row of table %s", kv.ErrDamaged, outdatedTable)
		}
		if group := binary.BigEndian.Uint64(key); group != 0 {
			k.mu.outdated[group] = binary.BigEndian.Uint64(value)
		} else {
			k.mu.losing, k.mu.unlisted = true, true
		}
		return nil
	})
}

// LastPromised returns when a node last counted that it has promised something, which it does every ten seconds while
// its regions change, according to its storage; zero if it never has.
func LastPromised(s IncarnationsStorage) (time.Time, error) { return loadTime(s, promisedKey) }

func loadTime(s IncarnationsStorage, key []byte) (time.Time, error) {
	value, err := s.Get(IncarnationsTable, key)
	if err != nil || len(value) != 8 {
		return time.Time{}, err
	}
	return time.Unix(int64(binary.BigEndian.Uint64(value)), 0), nil //nolint:gosec // what timeWrite has written
}

// timeWrite returns the write that stores a time; the zero time is not stored.
func timeWrite(key []byte, t time.Time) kv.Write {
	if t.IsZero() {
		return kv.Write{Table: IncarnationsTable, Key: key}
	}
	return kv.Write{Table: IncarnationsTable, Key: key, Value: binary.BigEndian.AppendUint64(nil, uint64(t.Unix()))} //nolint:gosec // it is after 1970
}

// storePromised is store, for a lineage that counts what the node has promised until now.
func (k *Incarnations) storePromised(own lineage) error {
	now := k.Now()
	if err := k.store(own, timeWrite(promisedKey, now)); err != nil {
		return err
	}
	k.mu.promised = now
	return nil
}

// store makes a lineage durable, with the other writes, and then the one that is shown. The caller holds the lock, or
// is alone.
func (k *Incarnations) store(own lineage, also ...kv.Write) error {
	signature, err := k.Sign(signedText(own[len(own)-1]))
	if err != nil {
		return fmt.Errorf("sign incarnation: %w", err)
	}
	row, err := nodemsg.EncodeLineage(nodemsg.Lineage{Incarnations: own})
	if err != nil {
		return fmt.Errorf("store incarnation: %w", err)
	}
	if err := k.Storage.Commit(append(also, kv.Write{Table: IncarnationsTable, Key: ownKey, Value: row})); err != nil {
		return fmt.Errorf("store incarnation: %w", err)
	}
	k.mu.own, k.mu.signature = own, signature
	return nil
}

// Outdated returns the replicas of this node that must not be used any more, by group: those in its storage, and those
// that Lost has reported.
func (k *Incarnations) Outdated() map[uint64]uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := maps.Clone(k.mu.outdated)
	maps.Copy(all, k.mu.lost)
	return all
}

// Reached returns about when the state ends to which this node's data was put back last: it has nothing from more than
// raiseEvery after that. It is zero if that is unknown.
func (k *Incarnations) Reached() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.reached
}

// Unlisted reports whether this node was put back, and it is not known yet which replicas it had that are not in its
// storage: until Lost is called.
func (k *Incarnations) Unlisted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.unlisted
}

// Errors of Create.
var (
	ErrUnlisted  = errors.New("the data of this node was put back to an earlier state, and it is not known yet which replicas it has lost")
	ErrForgotten = errors.New("this node was that replica before its data was put back to an earlier state")
)

// Create calls create, which opens a replica of a group of which this node stores nothing, or only an outdated replica.
// It does not if this node may have been that replica already, and has forgotten what it promised as such.
func (k *Incarnations) Create(group, id uint64, create func() error) error {
	k.adopting.RLock() // what create stores is in Held when the storage turns out to be outdated
	defer k.adopting.RUnlock()
	outdated, found := k.Outdated()[group]
	switch {
	case found && id <= outdated:
		return fmt.Errorf("replica %d of group %d: %w", id, group, ErrForgotten)
	case !found && k.Unlisted():
		return fmt.Errorf("replica %d of group %d: %w", id, group, ErrUnlisted)
	}
	return create()
}

// Lost reports the replicas that other nodes count this node as, and of which it stores nothing.
func (k *Incarnations) Lost(replicas map[uint64]uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for group, id := range replicas {
		k.mu.lost[group] = id
		k.outdatedTotal.Inc()
	}
	k.mu.unlisted = false
	return k.found()
}

// found records that no replica is lost any more, if so. The caller holds the lock.
func (k *Incarnations) found() error {
	if !k.mu.losing || k.mu.unlisted || len(k.mu.lost) > 0 {
		return nil
	}
	if err := k.Storage.Commit([]kv.Write{{Table: outdatedTable, Key: groupKey(0)}}); err != nil {
		return fmt.Errorf("store that no replica is lost: %w", err)
	}
	k.mu.losing = false
	return nil
}

// OnOutdated sets a function that closes replicas that must not be used any more, before other nodes accept this one
// again.
func (k *Incarnations) OnOutdated(abandon func(ctx context.Context, replicas map[uint64]uint64) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.abandon = abandon
}

// Replaced forgets that the replica of a group must not be used: it was discarded.
func (k *Incarnations) Replaced(group uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, lost := k.mu.lost[group]; lost {
		delete(k.mu.lost, group)
		if err := k.found(); err != nil {
			k.Logger.Warn("lost replicas are listed again after a restart", "error", err)
		}
	}
	if _, found := k.mu.outdated[group]; !found {
		return nil
	}
	if err := k.Storage.Commit([]kv.Write{{Table: outdatedTable, Key: groupKey(group)}}); err != nil {
		return fmt.Errorf("store that group %d is replaced: %w", group, err)
	}
	delete(k.mu.outdated, group)
	return nil
}

func groupKey(group uint64) []byte { return binary.BigEndian.AppendUint64(nil, group) }

// Show returns what this node shows to a peer first.
func (k *Incarnations) Show() nodemsg.Lineage { return k.show(nil) }

// show returns what this node shows to a peer, with what it remembers of that peer if it has refused it.
func (k *Incarnations) show(refused *nodemsg.SignedIncarnation) nodemsg.Lineage {
	k.mu.Lock()
	defer k.mu.Unlock()
	return nodemsg.Lineage{Incarnations: k.mu.own, Signature: k.mu.signature, Remembered: refused}
}

// Receive processes what a peer has shown, and returns the answer. The answer has Remembered set if the peer is
// refused.
func (k *Incarnations) Receive(ctx context.Context, peer string, shown nodemsg.Lineage) (nodemsg.Lineage, error) {
	if shown.Remembered != nil {
		if err := k.adopt(ctx, peer, *shown.Remembered); err != nil {
			return nodemsg.Lineage{}, err
		}
	}
	refused, err := k.judge(peer, shown)
	if err != nil {
		return nodemsg.Lineage{}, err
	}
	return k.show(refused), nil
}

// judge compares what a peer shows with what is remembered of it, and remembers the newest, durably. It returns what is
// remembered if the peer is refused.
func (k *Incarnations) judge(peer string, shown nodemsg.Lineage) (refused *nodemsg.SignedIncarnation, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, known := k.mu.seen[peer]
	running := shown.Running().ID
	if last, found := k.mu.before[peer]; found && known && running == last.id && running != before.ID && time.Since(last.until) > exchangeTime {
		k.noteCopy(peer)
	}
	if known && !lineage(shown.Incarnations).continues(before.Incarnation) {
		k.Logger.Debug("a node shows an earlier state of its data than before", "peer", peer)
		return &before, nil
	}
	now := shown.Running()
	if known && now.Incarnation == before.Incarnation && bytes.Equal(now.Signature, before.Signature) {
		return nil, nil //nolint:nilnil // it is accepted, and nothing is new
	}
	row, err := nodemsg.EncodeIncarnation(now)
	if err != nil {
		return nil, fmt.Errorf("remember incarnation of %s: %w", peer, err)
	}
	writes := []kv.Write{{Table: IncarnationsTable, Key: []byte(seenPrefix + peer), Value: row}}
	forgotten := ""
	if !known && len(k.mu.seen) >= maxSeen {
		if forgotten = k.dispensable(); forgotten == "" {
			return nil, errTooMany
		}
		writes = append(writes, kv.Write{Table: IncarnationsTable, Key: []byte(seenPrefix + forgotten)})
	}
	if err := k.Storage.Commit(writes); err != nil {
		return nil, fmt.Errorf("remember incarnation of %s: %w", peer, err)
	}
	delete(k.mu.seen, forgotten)
	delete(k.mu.before, forgotten)
	k.copies.forget(forgotten)
	k.mu.seen[peer] = now
	if known && now.ID != before.ID {
		k.mu.before[peer] = earlier{before.ID, time.Now()}
	}
	k.Logger.Debug("newer incarnation of a node remembered", "peer", peer)
	return nil, nil //nolint:nilnil // it is accepted
}

// dispensable returns a node that is forgotten for a new one, if there is one: none whose promises this node relies on.
// The caller holds the lock.
func (k *Incarnations) dispensable() string {
	for peer := range k.mu.seen {
		if _, isGroupPeer := k.mu.groupPeers[peer]; !isGroupPeer {
			return peer
		}
	}
	return ""
}

var errTooMany = fmt.Errorf("it is a member of groups together with %d other nodes, and remembers no more", maxSeen)

var errNotSigned = errors.New("what it remembers of this node is not signed by this node")

// adopt handles the news that this node's storage was put back: the replicas in it are abandoned, durably, before the
// peer accepts this node again.
func (k *Incarnations) adopt(ctx context.Context, peer string, remembered nodemsg.SignedIncarnation) error {
	signature, err := k.Sign(signedText(remembered.Incarnation))
	if err != nil {
		return fmt.Errorf("check signature: %w", err)
	}
	if !bytes.Equal(signature, remembered.Signature) {
		return fmt.Errorf("%s: %w", peer, errNotSigned)
	}
	k.adopting.Lock()
	defer k.adopting.Unlock()
	k.mu.Lock()
	known, outdates := k.mu.own.continues(remembered.Incarnation), k.mu.own.outdates(remembered.Incarnation)
	if _, accepted := k.mu.shown[peer]; accepted && !known && remembered.ID != k.mu.own.running().ID {
		k.noteOwnCopy() // the peer has accepted this run of the node, and after that one of which this node knows nothing
	}
	k.mu.Unlock()
	if known {
		return nil // another peer has reported it meanwhile
	}
	if outdates {
		if err := k.abandonAll(ctx, peer); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.store(k.mu.own.adopt(remembered.Incarnation, draw()))
}

// abandonAll marks all replicas that this node stores as not to be used any more, and closes them.
func (k *Incarnations) abandonAll(ctx context.Context, peer string) error {
	held, err := k.Held()
	if err != nil {
		return fmt.Errorf("list the replicas of an earlier state: %w", err)
	}
	k.Logger.Error("the data of this node was put back to an earlier state: it has forgotten what it has promised to the other nodes; "+
		"its replicas are not used any more, and the other members replace them", "peer", peer, "replicas", len(held))
	if err := k.mark(held); err != nil {
		return err
	}
	k.mu.Lock()
	abandon := k.mu.abandon
	k.mu.Unlock()
	if err := abandon(ctx, held); err != nil {
		return fmt.Errorf("close the replicas of an earlier state: %w", err)
	}
	return nil
}

// mark makes durable that the replicas must not be used.
func (k *Incarnations) mark(replicas map[uint64]uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	writes := []kv.Write{{Table: outdatedTable, Key: groupKey(0), Value: groupKey(1)}, timeWrite(reachedKey, k.mu.promised)}
	for group, id := range replicas {
		writes = append(writes, kv.Write{Table: outdatedTable, Key: groupKey(group), Value: binary.BigEndian.AppendUint64(nil, id)})
	}
	if err := k.Storage.Commit(writes); err != nil {
		return fmt.Errorf("store that replicas are of an earlier state: %w", err)
	}
	k.mu.losing, k.mu.unlisted, k.mu.reached = true, true, k.mu.promised
	for group, id := range replicas {
		if k.mu.outdated[group] != id {
			k.outdatedTotal.Inc()
		}
		k.mu.outdated[group] = id
	}
	return nil
}
