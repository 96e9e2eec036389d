package region

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// foundTime is how long whoever founds a cell waits for the commit.
const foundTime = 10 * time.Second

// errCatalogElsewhere says that another node leads the catalog, or nobody does at the moment.
var errCatalogElsewhere = errors.New("the catalog is not led here")

// catalog runs the root region where it lives. It has no ticks: it wakes for questions and commits.
type catalog struct {
	group  *replica.Group
	inbox  *mailbox[func()]
	done   chan struct{} // closed when run has returned: nobody answers any more
	logger *slog.Logger
	counts prometheus.Counter // foundings
	voters prometheus.Gauge
	self   string
	// changed is told that this node leads the catalog, or leads it with other members now; acquaint asks
	// for a member's address, which comes back as meet; load reads the state from storage.
	changed  func(wire.Region)
	acquaint func(c *catalog, peer string)
	load     func() (*world.Catalog, error)

	// The rest belongs to the goroutine of run.
	state   *world.Catalog
	asked   map[grid.Cell]*founding // under way
	failure error
	root    wire.Region // the catalog itself; its Leader is empty while unknown
	members []replica.Member
	roster  map[string]wire.Member // those of the members whose addresses are known
	leading bool
	removed bool // this node is no member any more
	hurt    *fault
	shut    bool               // it is quarantined
	then    func()             // what is to be done when it has ended, before it is opened again
	probe   func(entry []byte) // if not nil, called with every entry before it is applied: tests break the catalog by it
}

// founding is a cell that somebody asked to be founded.
type founding struct {
	entry []byte
	whom  []chan<- founded // each has room for the answer
}

// founded is the answer to whoever asked for a founding.
type founded struct {
	region wire.Region
	err    error
}

// catalogTables are the rows that a snapshot of the catalog carries.
var catalogTables = []replica.TablePrefix{{Table: world.CatalogTable}}

// openCatalog opens the catalog of a node that is a member of it.
func (h *Host) openCatalog(ctx context.Context) (*catalog, error) {
	g, err := h.Replicas.Open(ctx, replica.Founding{Group: world.CatalogID, Members: []string{h.Self.Peer}, Tables: catalogTables})
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	return h.newCatalog(g)
}

func (h *Host) newCatalog(g *replica.Group) (*catalog, error) {
	c := &catalog{
		group: g, inbox: newMailbox[func()](0), done: make(chan struct{}), logger: h.Logger, counts: h.metrics.founded,
		voters: h.metrics.catalog,
		self:   h.Self.Peer, changed: h.catalogChanged, acquaint: h.acquaintCatalog, load: h.readCatalog,
		asked: make(map[grid.Cell]*founding), root: wire.Region{ID: world.CatalogID},
		roster: map[string]wire.Member{h.Self.Peer: h.Self}, probe: h.probeCatalog,
	}
	var err error
	if c.state, err = c.load(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	c.enroll(g.Configuration())
	return c, nil
}

// readCatalog gives the catalog as it is stored.
func (h *Host) readCatalog() (*world.Catalog, error) {
	state := world.NewCatalog()
	var err error
	if hurt := fenced(func() { err = h.Storage.Scan(world.CatalogTable, nil, state.Load) }); hurt != nil {
		err = hurt
	}
	if err != nil {
		return nil, fmt.Errorf("load catalog: %w", err)
	}
	return state, nil
}

func (c *catalog) run(ctx context.Context) {
	defer close(c.done)
	for !c.removed && c.hurt == nil && !c.shut && c.then == nil {
		select {
		case <-ctx.Done():
			c.end()
			return
		case <-c.inbox.wake:
			inputs, _ := c.inbox.take()
			for _, input := range inputs {
				input()
			}
		case <-c.group.Ready():
			c.deliver()
		}
	}
	c.refuseAll(errCatalogElsewhere)
	if c.hurt == nil {
		c.end()
	}
}

func (c *catalog) end() {
	c.inbox.close()
	if err := c.group.Close(); err != nil {
		c.logger.Error("close catalog", "error", err)
	}
}

func (c *catalog) deliver() {
	for _, d := range c.group.Take() {
		if c.hurt != nil {
			return // the state is not what the log goes on from
		}
		switch d := d.(type) {
		case replica.Committed:
			c.apply(d)
		case replica.Leadership:
			c.lead(d)
		case replica.Configured:
			c.enroll(d)
			for _, m := range d.Members {
				if _, known := c.roster[m.Peer]; !known {
					c.acquaint(c, m.Peer)
				}
			}
			c.tell()
		case replica.Restored:
			state, err := c.load()
			if err != nil {
				c.fail(err)
				continue
			}
			c.state = state
		case replica.Removed:
			c.removed = true
		case replica.Failed:
			c.fail(d.Err)
		}
	}
}

func (c *catalog) fail(err error) {
	c.failure, c.hurt = err, groupFault(err)
	c.refuseAll(c.refusal())
}

func (c *catalog) lead(d replica.Leadership) {
	c.failure = d.Cause
	c.leading = d.Self
	c.root.Leader, c.root.Term = d.Leader, d.Term
	switch {
	case d.Self:
		c.proposeAgain()
		c.tell()
	case d.Leader != "" && d.Leader != c.self:
		c.refuseAll(errCatalogElsewhere) // whoever asked asks there
	}
}

// tell has it published who leads the catalog, if it is this node.
func (c *catalog) tell() {
	if c.leading {
		c.changed(c.root)
	}
}

// enroll takes in the group's members.
func (c *catalog) enroll(conf replica.Configured) {
	c.members = conf.Members
	c.root.Epoch = epochOf(conf)
	c.enlist()
	voters := 0
	for _, m := range conf.Members {
		if !m.Learner {
			voters++
		}
	}
	c.voters.Set(float64(voters))
}

func (c *catalog) enlist() {
	members := make([]wire.Member, 0, len(c.members))
	for _, m := range c.members {
		if known, ok := c.roster[m.Peer]; ok {
			known.Replica, known.Learner = m.ID, m.Learner
			members = append(members, known)
		}
	}
	c.root.Members = members
}

// meet takes in the address of a node that is or becomes a member.
func (c *catalog) meet(m wire.Member) {
	before := len(c.root.Members)
	c.roster[m.Peer] = m
	c.enlist()
	if len(c.root.Members) != before {
		c.tell()
	}
}

// serves tells whether questions are answered here: by the leader, and by the only member always.
func (c *catalog) serves() bool { return c.leading || len(c.members) <= 1 }

// refuseAll tells everybody who waits why it is in vain.
func (c *catalog) refuseAll(why error) {
	for cell := range c.asked {
		c.answer(cell, founded{err: why})
	}
}

func (c *catalog) apply(d replica.Committed) {
	if c.probe != nil {
		c.probe(d.Entry)
	}
	region, writes, err := c.state.Apply(d.Index, d.Entry)
	c.group.Applied(d.Index, writes)
	if err != nil {
		c.logger.Error("catalog entry refused", "error", err)
		c.refuse(d.Entry, err)
		return
	}
	if len(writes) > 0 && region.Epoch == firstEpoch {
		c.counts.Inc()
	}
	c.answer(region.Cell, founded{region: region})
}

// refuse tells everybody who asked for an entry that means nothing.
func (c *catalog) refuse(entry []byte, why error) {
	for cell, f := range c.asked {
		if bytes.Equal(f.entry, entry) {
			c.answer(cell, founded{err: why})
		}
	}
}

// answer tells everybody who asked for the cell.
func (c *catalog) answer(cell grid.Cell, a founded) {
	f := c.asked[cell]
	if f == nil {
		return
	}
	for _, whom := range f.whom {
		whom <- a
	}
	delete(c.asked, cell)
}

// proposeAgain repeats what was under way before this node led: it is in doubt, and founding a cell
// twice changes nothing.
func (c *catalog) proposeAgain() {
	for cell, f := range c.asked {
		if err := c.group.Propose(f.entry); err != nil {
			c.answer(cell, founded{err: fmt.Errorf("found cell %v: %w", cell, err)})
		}
	}
}
