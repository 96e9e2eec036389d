package actor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
	"github.com/voxelpopuli/voxeld/world/acts"
)

var (
	// errCatalogElsewhere is returned if another node leads the catalog, or none does at the moment. It is an
	// ErrNotHere.
	errCatalogElsewhere = fmt.Errorf("the catalog: %w", ErrNotHere)
	// errListing is returned while the stored rows are being listed. It is an ErrNotHere: another member may have done
	// so.
	errListing = fmt.Errorf("the catalog is being listed: %w", ErrNotHere)
	// ErrNotFounded is returned if a region is not founded yet.
	ErrNotFounded = errors.New("not founded yet")
)

// CatalogOptions are what a Catalog needs besides.
type CatalogOptions struct {
	// Row reads a stored row, nil if there is none. It panics with a *Fault if it cannot be read.
	Row func(key string) []byte
	// Rows visits the stored rows from a key on, until visit fails.
	Rows func(from []byte, visit func(key, value []byte) error) error
	// ActRow reads the stored row of an act, likewise, and ActRows visits all such rows.
	ActRow  func(number uint64) []byte
	ActRows func(visit func(key, value []byte) error) error
	// Signed reports whether the author of an act has signed it. Others are not listed.
	Signed func(nodemsg.Act) bool
	// Stored returns the log index up to which the stored rows have all entries.
	Stored func() (uint64, error)
}

// Catalog runs the root region on a node that is a member of it. It has no ticks: it runs when a question arrives or an
// entry is committed.
type Catalog struct {
	*Actor
	// Regions are all founded regions, by their members.
	Regions *membership.Tally
	catalog *catalog // for enqueue and Run
}

// catalog is the state of a Catalog.
type catalog struct {
	*core
	CatalogOptions
	handle   *Catalog
	state    *world.Catalog
	acts     *acts.Log
	entering map[entering][]chan<- entered // pending acts
	whole    bool                          // all rows are listed in state
	asked    map[grid.Cell]*founding       // pending
}

// foundTime is how long the founding of a cell waits for its commit.
const foundTime = 10 * time.Second

// founding is a cell whose founding was requested.
type founding struct {
	entry   []byte
	waiters []chan<- founded // each has room for the answer
}

// founded is the answer to a founding request.
type founded struct {
	region nodemsg.Region
	err    error
}

// CatalogTables names the rows that a snapshot of the catalog carries.
var CatalogTables = []replica.TablePrefix{{Table: world.CatalogTable, Pieces: true}, {Table: acts.Table, Pieces: true}}

// CatalogDeletion returns the writes that delete all rows of the catalog. Keys visits the keys of a table.
func CatalogDeletion(keys func(table string, prefix []byte, visit func(key []byte) error) error) (writes []kv.Write, err error) {
	for _, of := range CatalogTables {
		err = errors.Join(err, keys(of.Table, nil, func(key []byte) error {
			writes = append(writes, kv.Write{Table: of.Table, Key: bytes.Clone(key)})
			return nil
		}))
	}
	return writes, err
}

// NewCatalog returns the catalog of an open group, which Run runs.
func NewCatalog(base Options, o CatalogOptions, g *replica.Group) (*Catalog, error) {
	c := &catalog{
		core: newCore(base, nodemsg.Region{ID: world.CatalogID}, g), CatalogOptions: o,
		asked: make(map[grid.Cell]*founding), entering: make(map[entering][]chan<- entered),
	}
	c.machine, c.handle = c, &Catalog{c.Actor, &membership.Tally{}, c}
	c.state = world.NewStoredCatalog(c.Row)
	if err := c.loadActs(); err != nil {
		return nil, err
	}
	c.applyMembers(g.Configuration())
	return c.handle, nil
}

func (c *Catalog) enqueue(f func(*catalog)) bool { return c.mailbox.Put(func() { f(c.catalog) }) }

// Run runs the catalog until ctx ends, or this node is no longer a member of it, or it fails.
func (c *Catalog) Run(ctx context.Context) Ended { return c.catalog.run(ctx, c.catalog.loop) }

func (c *catalog) loop(ctx context.Context) {
	c.startListing()
	for c.fault == nil {
		if why := c.endReason(); why != "" {
			c.core.end(why)
			return
		}
		select {
		case <-ctx.Done():
			c.core.end("the node is stopping")
			return
		case <-c.mailbox.Wake():
			c.runInbox()
		case <-c.group.Ready():
			c.deliver()
		}
	}
}

// end answers all waiting requests: unless the catalog has failed, the callers then ask another member.
func (c *catalog) end(string) {
	if c.failure != nil {
		c.refuseAll(c.refusal())
	}
	c.refuseAll(errCatalogElsewhere)
}

// salvage does nothing: every entry is reported when it is applied.
func (c *catalog) salvage() {}

func (c *catalog) restore(uint64) error {
	c.state = world.NewStoredCatalog(c.Row)
	c.handle.Regions.Clear()
	c.startListing()
	return c.loadActs()
}

// startListing starts a task that lists the stored rows.
func (c *catalog) startListing() {
	state, rows, handle := c.state, c.Rows, c.handle
	c.whole = false
	c.Start(func(ctx context.Context) {
		if err := handle.list(ctx, rows, state); err != nil && ctx.Err() == nil {
			handle.enqueue(func(*catalog) { panic(&Fault{Kind: Broken, Cause: fmt.Errorf("list the catalog: %w", err)}) })
		}
	})
}

// listAtOnce is how many rows are listed at a time: few milliseconds for the actor, and for the snapshot of the
// storage.
const listAtOnce = 1000

// errEnough ends a scan.
var errEnough = errors.New("enough")

// list lists the stored rows in the state.
func (c *Catalog) list(ctx context.Context, stored func(from []byte, visit func(key, value []byte) error) error, state *world.Catalog) error {
	type row struct{ key, value []byte }
	var from []byte
	for {
		var rows []row
		err := stored(from, func(key, value []byte) error {
			rows = append(rows, row{bytes.Clone(key), bytes.Clone(value)})
			if len(rows) == listAtOnce {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		more := err != nil
		failed, err := Ask(ctx, c.Actor, c.enqueue, func(c *catalog) error {
			for _, row := range rows {
				region, added, err := state.List(row.key, row.value)
				if err != nil || c.state != state {
					return err
				}
				if added {
					c.handle.Regions.Put(region)
				}
			}
			c.whole = !more && c.state == state
			return nil
		})
		if err != nil || failed != nil || !more {
			return errors.Join(err, failed)
		}
		from = append(rows[len(rows)-1].key, 0)
	}
}

// maxUnstored is how many changed rows are kept in memory before those that are stored are dropped.
const maxUnstored = 4096

// dropStored drops rows from memory that are stored.
func (c *catalog) dropStored() {
	if c.state.Unstored()+c.acts.Unstored() < maxUnstored {
		return
	}
	index, err := c.Stored()
	if err != nil {
		panic(&Fault{Kind: Broken, Cause: err})
	}
	c.state.Stored(index)
	c.acts.Stored(index)
}

func (c *catalog) lead(d replica.Leadership, _ bool) {
	switch {
	case d.Self:
		c.proposeAgain()
		c.Changed(c.info)
	case c.ledElsewhere():
		c.refuseAll(errCatalogElsewhere) // the callers then ask the new leader
	}
}

func (c *catalog) membersChanged() { c.Metrics.catalog.Set(float64(voters(c.members))) }

// serves reports whether questions are answered here: on the leader while its disk answers, and always on the only
// member. A catalog that has failed answers none: its state may have been changed in part.
func (c *catalog) serves() bool {
	return c.fault == nil && (c.leading && !c.hung() || len(c.members) <= 1)
}

// maxAsked bounds the changes that wait for an entry: without a leader they wait until there is one.
const maxAsked = 10_000

var errManyAsked = fmt.Errorf("the catalog has no leader, and %d changes wait for one: try again later", maxAsked)

// refuseAll answers all waiting requests with an error.
func (c *catalog) refuseAll(why error) {
	for cell := range c.asked {
		c.answer(cell, founded{err: why})
	}
	for of := range c.entering {
		c.answerAct(of, entered{err: why})
	}
}

func (c *catalog) apply(d replica.Committed) {
	if act := acts.In(d.Entry); act != nil {
		c.applyAct(d.Index, *act)
		return
	}
	region, writes, err := c.state.Apply(d.Index, d.Entry)
	c.group.ReportApplied(d.Index, writes)
	c.dropStored()
	if err != nil {
		c.Logger.Error("catalog entry refused", "error", err)
		c.refuse(d.Entry, err)
		return
	}
	if len(writes) > 0 {
		c.handle.Regions.Put(region)
		for _, id := range c.state.Gone() {
			c.handle.Regions.Forget(id)
		}
		if region.Split != 0 { // a single chunk has no halves
			for _, child := range world.ChildrenOf(region) {
				if listed, ok := c.state.Find(child.ID); ok {
					c.handle.Regions.Put(listed)
				}
			}
		}
	}
	switch {
	case len(writes) == 0:
	case slices.Contains(c.state.Gone(), region.ID):
		c.Metrics.vacated.Inc()
	case region.Epoch == FirstEpoch && region.Split == 0 && region.Merged == 0:
		c.Metrics.founded.Inc()
	}
	if f := c.asked[region.Cell]; region.ID == 0 && f != nil && !bytes.Equal(f.entry, d.Entry) {
		return // the end of a region, once more: whoever waits for the cell's founding waits for a later entry
	}
	c.answer(region.Cell, founded{region: region})
}

// refuse answers all requests for an invalid entry with an error.
func (c *catalog) refuse(entry []byte, why error) {
	for cell, f := range c.asked {
		if bytes.Equal(f.entry, entry) {
			c.answer(cell, founded{err: why})
		}
	}
}

// answer answers all requests for the cell.
func (c *catalog) answer(cell grid.Cell, a founded) {
	f := c.asked[cell]
	if f == nil {
		return
	}
	for _, waiter := range f.waiters {
		waiter <- a
	}
	delete(c.asked, cell)
}

// proposeAgain proposes again what was pending before this node led. Those entries may have been committed or not;
// founding a cell twice changes nothing.
func (c *catalog) proposeAgain() {
	for of := range c.entering {
		c.answerAct(of, entered{err: errCatalogElsewhere}) // whoever asks again is answered whether it is in the log
	}
	for cell, f := range c.asked {
		if err := c.group.Propose(f.entry); err != nil {
			c.answer(cell, founded{err: fmt.Errorf("found cell %v: %w", cell, err)})
		}
	}
}

func (c *catalog) refusal() error {
	return fmt.Errorf("the catalog's storage failed: %w", cmp.Or(c.failure, c.stalled))
}
