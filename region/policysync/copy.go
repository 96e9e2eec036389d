// Package policysync keeps a node's copy of the world's policy: it asks the catalog for new acts, verifies their
// signatures, and enters the acts of this node's players and operator. What acts mean, package policy decides.
//
// A Copy keeps the acts in a table of its own: bans outlive a restart, also while the catalog cannot be reached.
package policysync

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world/acts"
)

// Table is the table of a node's copy of the acts: as acts.Table.
const Table = "policy"

// ImportTable has the commands that the first node of a restored world has yet to enter: prefix, u64 big-endian → text.
// The urgent ones are entered before players join.
const (
	ImportTable  = "policy_import"
	ImportUrgent = "a"
	ImportNames  = "b"
)

const (
	// every is how often the catalog is asked for new acts. A change takes effect everywhere within twice that.
	every = time.Second
	// askTime bounds one such question, with the search for the catalog.
	askTime = 10 * time.Second
	// announcedFor is how old a line for all players may be that is still shown.
	announcedFor = 30 * time.Second
	// maxSkew is how far the number of a command, which counts microseconds since 1970, may be ahead of this node's
	// clock. The player's later commands would be refused until the clock reaches it.
	maxSkew = 10 * time.Minute
	// commandRate and commandBurst are how many commands a second a node may enter, and how many at once: registered
	// names, mostly.
	commandRate, commandBurst = 10, 200
	// othersFor is how long the catalog must have other acts than this node until they replace those here: the world
	// was restored from a backup. A new leader of the catalog may lack some for a moment.
	othersFor = 5 * time.Second
)

// Storage is where a Copy keeps the acts.
type Storage interface {
	kv.Scanner
	Commit(writes []kv.Write) error
}

// Operator signs for the operator of this node.
type Operator struct {
	Key     ed25519.PublicKey
	Sign    func(text []byte) ([]byte, error)
	Charter func() uint64 // returns the number of the newest charter that this node knows
	// WasOpen means that the world was open, and all were operators: commands without a charter count until the first
	// that has one.
	WasOpen bool
}

// Options configure a Copy. All fields are required.
type Options struct {
	World     string // its id
	Self      string // peer id
	Storage   Storage
	Directory *directory.Directory
	Detector  *directory.Detector
	Catalog   func() *actor.Catalog // the catalog if this node is a member of it, else nil
	Issued    policy.Issued
	Operator  Operator
	Now       func() time.Time
	Settled   func() bool // whether what is too old by Now may be deleted

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Copy is a node's copy of the policy. Any goroutine may use it.
type Copy struct {
	Options
	metrics *metrics
	limits  *transport.PeerLimits // of commands that other nodes enter
	quotas  gatewayQuotas
	// operating is held while a command of the operator is entered.
	operating sync.Mutex
	numbered  uint64              // the number of the last one; guarded by operating
	pull      *semaphore.Weighted // held while acts are asked for and applied
	// entering are held while this node, as leader of the catalog, enters an act of a key whose id's last byte has the
	// index as its lower bits: the next act of that key is judged after it.
	entering  [64]*semaphore.Weighted
	others    time.Time  // since when the catalog has other acts; zero if it has not; guarded by pull, as is unsaved
	unsaved   []kv.Write // applied, and not stored yet
	builders  atomic.Pointer[policy.Builders]
	importing atomic.Bool // commands that a restore has left are not entered yet

	mu struct {
		sync.RWMutex
		changed  func() // these two are called after a change, and do not block
		announce func(text string)
		list     list
		asking   map[asked]chan<- effect // who waits for an act; each has room for its effect
	}
}

// asked identifies an act.
type asked struct {
	by  player.ID
	seq uint64
}

// Open returns the copy with the acts that are stored.
func Open(o Options) (*Copy, error) {
	c := &Copy{
		Options: o, metrics: newMetrics(o.Registerer), limits: transport.NewPeerLimits(commandRate, commandBurst), pull: semaphore.NewWeighted(1),
	}
	for i := range c.entering {
		c.entering[i] = semaphore.NewWeighted(1)
	}
	c.mu.asking = make(map[asked]chan<- effect)
	c.mu.changed, c.mu.announce = func() {}, func(string) {}
	var err error
	if c.mu.list, err = c.read(); err != nil {
		return nil, err
	}
	c.setBuilders(c.mu.list.state)
	return c, o.Storage.Scan(ImportTable, nil, func(_, _ []byte) error {
		c.importing.Store(true)
		return nil
	})
}

// read returns the list of the stored acts.
func (c *Copy) read() (list, error) {
	l := c.newList()
	err := c.Storage.Scan(Table, nil, func(key, value []byte) error {
		if string(key) != string(acts.Key(l.state.Acts()+1)) {
			return fmt.Errorf("its key %x does not follow act %d", key, l.state.Acts())
		}
		act, err := nodemsg.DecodeAct(value)
		if err == nil {
			_, err = c.apply(&l, act, c.judge(act))
		}
		return err
	})
	if err != nil {
		return list{}, fmt.Errorf("read the policy: %w", err)
	}
	return l, nil
}

// judge returns why an act in the catalog counts for nothing.
func (c *Copy) judge(act nodemsg.Act) error {
	return policy.Verify(c.World, act, func(charter uint64, node ed25519.PublicKey) (bool, error) {
		if charter == 0 && c.Operator.WasOpen {
			return true, nil
		}
		return c.Issued(charter, node)
	})
}

// Notify has changed called after each change, and announce with each line for all players. They must not block, nor
// use the Copy.
func (c *Copy) Notify(changed func(), announce func(text string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.changed, c.mu.announce = changed, announce
}

// Update asks the catalog for the acts that are missing here, and applies and stores them.
func (c *Copy) Update(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if err := c.pull.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for the catalog: %w", err)
	}
	defer c.pull.Release(1)
	if err := c.judgeAgain(); err != nil {
		return err
	}
	for {
		page, err := c.missing(ctx, c.known())
		if errors.Is(err, actor.ErrOtherActs) {
			if c.others.IsZero() {
				c.others = time.Now()
			}
			if time.Since(c.others) < othersFor {
				return err
			}
			return c.replace(ctx)
		}
		c.others = time.Time{}
		if err == nil {
			err = c.add(page)
		}
		if err != nil || len(page) < nodemsg.ActsPage {
			return err
		}
	}
}

// missing returns a page of the acts in the catalog's log after the known ones. The error is actor.ErrOtherActs if the
// catalog has others.
func (c *Copy) missing(ctx context.Context, known nodemsg.ActsRequest) ([]nodemsg.Act, error) {
	if catalog := c.Catalog(); catalog != nil { // what is committed is known to all members, to some a little later
		acts, err := catalog.Acts(ctx, known)
		if !errors.Is(err, actor.ErrNotHere) {
			return acts, err
		}
	}
	answer, err := c.Directory.Consult(ctx, nodemsg.Question{Acts: &known}, func(catalog *actor.Catalog) (nodemsg.Answer, error) {
		acts, err := catalog.Acts(ctx, known)
		return nodemsg.Answer{Acts: acts}, err
	})
	if err == nil && answer.OtherActs {
		err = actor.ErrOtherActs
	}
	return answer.Acts, err
}

// known returns which acts are here.
func (c *Copy) known() nodemsg.ActsRequest {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.mu.list.known()
}

// replace takes all acts from the catalog, in the place of those here, which count until then. The caller holds pull.
func (c *Copy) replace(ctx context.Context) error {
	c.Logger.Warn("the catalog has other commands than this node: all roles, names and bans are taken from it")
	fresh := c.newList()
	var writes []kv.Write
	err := c.Storage.Scan(Table, nil, func(key, _ []byte) error {
		writes = append(writes, kv.Write{Table: Table, Key: bytes.Clone(key)})
		return nil
	})
	for err == nil {
		var page []nodemsg.Act
		if page, err = c.missing(ctx, fresh.known()); err != nil {
			break
		}
		for _, act := range page {
			if _, err = c.apply(&fresh, act, c.judge(act)); err != nil {
				break
			}
			writes = append(writes, fresh.row(act))
		}
		if len(page) < nodemsg.ActsPage {
			break
		}
	}
	if err != nil {
		return err
	}
	c.others, c.unsaved = time.Time{}, writes
	c.setList(fresh)
	return c.save()
}

// judgeAgain applies all acts again if a charter is new that one of them may have waited for. The caller holds pull.
func (c *Copy) judgeAgain() error {
	if !c.mu.list.waits || c.mu.list.charter == c.Operator.Charter() { // only who holds pull changes them
		return nil
	}
	if err := c.save(); err != nil {
		return err
	}
	fresh, err := c.read()
	if err == nil {
		c.setList(fresh)
	}
	return err
}

// setList publishes a list in the place of the one before. The caller holds pull.
func (c *Copy) setList(l list) {
	c.setBuilders(l.state)
	c.mu.Lock()
	c.mu.list = l
	changed := c.mu.changed
	c.mu.Unlock()
	changed()
}

// add applies and stores acts that follow those here. The caller holds pull.
func (c *Copy) add(page []nodemsg.Act) (err error) {
	for _, act := range page {
		invalid := c.judge(act)
		c.mu.Lock()
		var did effect
		if did, err = c.apply(&c.mu.list, act, invalid); err == nil {
			c.unsaved = append(c.unsaved, c.mu.list.row(act))
		}
		of := asked{player.IDOf(act.Key), act.Seq}
		waiting, announce := c.mu.asking[of], c.mu.announce
		if err == nil {
			delete(c.mu.asking, of)
		}
		c.mu.Unlock()
		if err != nil {
			break
		}
		if waiting != nil {
			waiting <- did
		}
		if did.Say != "" && c.Now().Sub(time.UnixMilli(act.At)) < announcedFor {
			announce(did.Say)
		}
	}
	if len(page) > 0 {
		c.mu.RLock()
		c.setBuilders(c.mu.list.state)
		changed := c.mu.changed
		c.mu.RUnlock()
		changed()
	}
	if len(c.unsaved) == 0 {
		return err
	}
	return errors.Join(err, c.save())
}

// save stores what is not stored yet. If the disk is full, that is tried again at the next update. The caller holds
// pull.
func (c *Copy) save() error {
	err := c.Storage.Commit(c.unsaved)
	if err == nil {
		c.unsaved = nil
	}
	return err
}

// effect is what an act has done, or why it has done nothing.
type effect struct {
	policy.Effect
	err error
}

// list is a policy, and the acts that have made it.
type list struct {
	state  *policy.State
	digest nodemsg.ActsDigest
	// charter is the newest one that was known when the list was begun. Waits means that an act counts for nothing
	// because its charter was not known.
	charter uint64
	waits   bool
}

func (c *Copy) newList() list { return list{state: policy.New(), charter: c.Operator.Charter()} }

func (l *list) known() nodemsg.ActsRequest {
	return nodemsg.ActsRequest{After: l.state.Acts(), Digest: l.digest}
}

// row returns what is stored of the act that was applied last.
func (l *list) row(act nodemsg.Act) kv.Write {
	value, err := nodemsg.EncodeAct(act)
	if err != nil {
		panic(err) // it was decoded
	}
	return kv.Write{Table: Table, Key: acts.Key(l.state.Acts()), Value: value}
}

// apply applies the next act to a list. Invalid is what judge returned for it. An act whose charter is not known must
// hold up no other: whoever leads the catalog could name a charter that will never be.
func (c *Copy) apply(l *list, act nodemsg.Act, invalid error) (did effect, err error) {
	if l.digest, err = l.digest.Next(act); err != nil {
		return effect{}, err
	}
	if invalid != nil {
		l.state.Skip()
		l.waits = l.waits || errors.Is(invalid, policy.ErrUnknownCharter)
		c.metrics.acts.WithLabelValues("forged").Inc()
		c.Logger.Warn("a command in the catalog counts for nothing", "number", l.state.Acts(), "error", invalid)
		return effect{err: invalid}, nil
	}
	if did.Effect, did.err = l.state.Apply(act); did.err != nil {
		c.metrics.acts.WithLabelValues("refused").Inc()
	} else {
		c.metrics.acts.WithLabelValues("applied").Inc()
	}
	return did, nil
}

// Acts returns how many acts there are here.
func (c *Copy) Acts() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.mu.list.state.Acts()
}

// Read runs read on the policy, which must keep nothing of it, nor change it.
func (c *Copy) Read(read func(*policy.State)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	read(c.mu.list.state)
}

// RefuseEdit returns why a player may not make an edit, if its proof is right, empty if they may, for leaders of regions.
// It waits for no lock.
func (c *Copy) RefuseEdit(e *nodemsg.Intent) string {
	why := c.builders.Load().Refuse(e, c.Now())
	if why != "" {
		c.metrics.refused.WithLabelValues(why).Inc()
	}
	return why
}

// Orders returns the orders of which regions have marks in their history. It waits for no lock.
func (c *Copy) Orders() *policy.Builders { return c.builders.Load() }

// setBuilders publishes who may build where.
func (c *Copy) setBuilders(s *policy.State) {
	c.builders.Store(s.Builders())
	c.metrics.claims.Set(float64(s.Claims().Count()))
	c.metrics.used.Set(s.Used())
}

// Audit visits the last acts that are stored here, in order, with their numbers.
func (c *Copy) Audit(last uint64, visit func(number uint64, act nodemsg.Act) error) error {
	number := c.Acts()
	number -= min(last, number)
	return kv.ScanFrom(c.Storage, Table, nil, acts.Key(number+1), func(_, value []byte) error {
		number++
		act, err := nodemsg.DecodeAct(value)
		if err != nil {
			return err
		}
		return visit(number, act)
	})
}
