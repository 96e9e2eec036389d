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
	"github.com/voxelpopuli/voxeld/region/mailbox"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// foundTime is how long the founding of a cell waits for its commit.
const foundTime = 10 * time.Second

// errCatalogElsewhere is returned if another node leads the catalog, or none does at the moment.
var errCatalogElsewhere = errors.New("the catalog is not led here")

// catalog runs the root region on a node that is a member of it. It has no ticks: it runs when a question arrives or an entry is
// committed.
type catalog struct {
	group  *replica.Group
	inbox  *mailbox.Mailbox[func()]
	done   chan struct{} // closed when run has returned: no more questions are answered
	logger *slog.Logger
	counts prometheus.Counter // foundings
	voters prometheus.Gauge
	self   string
	// changed is called when this node becomes leader of the catalog, or leads it with other members. resolveMember requests a
	// member's address, which arrives as addMember. load reads the state from storage.
	changed       func(nodemsg.Region)
	resolveMember func(c *catalog, peer string)
	load          func() (*world.Catalog, error)

	// The fields below belong to the goroutine of run.
	state       *world.Catalog
	asked       map[grid.Cell]*founding // pending
	failure     error
	root        nodemsg.Region // the catalog itself; its Leader is empty while unknown
	members     []replica.Member
	roster      map[string]nodemsg.Member // members whose addresses are known
	leading     bool
	removed     bool // this node is no longer a member
	fault       *fault
	quarantined bool               // it is quarantined
	afterEnd    func()             // if not nil, called when it has ended, before it is opened again
	probe       func(entry []byte) // if not nil, called with every entry before it is applied; tests use it to make the catalog fail
}

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

// catalogTables names the rows that a snapshot of the catalog carries.
var catalogTables = []replica.TablePrefix{{Table: world.CatalogTable}}

// openCatalog opens the catalog on a node that is a member of it.
func (h *Host) openCatalog(ctx context.Context) (*catalog, error) {
	g, err := h.Replicas.Open(ctx, replica.Founding{Group: world.CatalogID, Members: []string{h.Self.Peer}, Tables: catalogTables})
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	return h.newCatalog(g)
}

func (h *Host) newCatalog(g *replica.Group) (*catalog, error) {
	c := &catalog{
		group: g, inbox: mailbox.New[func()](0), done: make(chan struct{}), logger: h.Logger, counts: h.metrics.founded,
		voters: h.metrics.catalog,
		self:   h.Self.Peer, changed: h.catalogChanged, resolveMember: h.resolveCatalogMember, load: h.readCatalog,
		asked: make(map[grid.Cell]*founding), root: nodemsg.Region{ID: world.CatalogID},
		roster: map[string]nodemsg.Member{h.Self.Peer: h.Self}, probe: h.probeCatalog,
	}
	var err error
	if c.state, err = c.load(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	c.applyMembers(g.Configuration())
	return c, nil
}

// readCatalog reads the catalog from storage.
func (h *Host) readCatalog() (*world.Catalog, error) {
	state := world.NewCatalog()
	var err error
	if caught := catchFault(func() { err = h.Storage.Scan(world.CatalogTable, nil, state.Load) }); caught != nil {
		err = caught
	}
	if err != nil {
		return nil, fmt.Errorf("load catalog: %w", err)
	}
	return state, nil
}

func (c *catalog) run(ctx context.Context) {
	defer close(c.done)
	for !c.removed && c.fault == nil && !c.quarantined && c.afterEnd == nil {
		select {
		case <-ctx.Done():
			c.end()
			return
		case <-c.inbox.Wake():
			inputs, _ := c.inbox.Drain()
			for _, input := range inputs {
				input()
			}
		case <-c.group.Ready():
			c.deliver()
		}
	}
	c.refuseAll(errCatalogElsewhere)
	if c.fault == nil {
		c.end()
	}
}

func (c *catalog) end() {
	c.inbox.Close()
	if err := c.group.Close(); err != nil {
		c.logger.Error("close catalog", "error", err)
	}
}

func (c *catalog) deliver() {
	for _, d := range c.group.Dequeue() {
		if c.fault != nil {
			return // stop: the state in memory is not the one that the next entries apply to
		}
		switch d := d.(type) {
		case replica.Committed:
			c.apply(d)
		case replica.Leadership:
			c.lead(d)
		case replica.Configured:
			c.applyMembers(d)
			for _, m := range d.Members {
				if _, known := c.roster[m.Peer]; !known {
					c.resolveMember(c, m.Peer)
				}
			}
			c.publishLeader()
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
	c.failure, c.fault = err, groupFault(err)
	c.refuseAll(c.refusal())
}

func (c *catalog) lead(d replica.Leadership) {
	c.failure = d.Cause
	c.leading = d.Self
	c.root.Leader, c.root.Term = d.Leader, d.Term
	switch {
	case d.Self:
		c.proposeAgain()
		c.publishLeader()
	case d.Leader != "" && d.Leader != c.self:
		c.refuseAll(errCatalogElsewhere) // the callers then ask the new leader
	}
}

// publishLeader publishes who leads the catalog, if this node does.
func (c *catalog) publishLeader() {
	if c.leading {
		c.changed(c.root)
	}
}

// applyMembers records the group's members.
func (c *catalog) applyMembers(conf replica.Configured) {
	c.members = conf.Members
	c.root.Epoch = epochOf(conf)
	c.updateMembers()
	voters := 0
	for _, m := range conf.Members {
		if !m.Learner {
			voters++
		}
	}
	c.voters.Set(float64(voters))
}

func (c *catalog) updateMembers() {
	members := make([]nodemsg.Member, 0, len(c.members))
	for _, m := range c.members {
		if known, ok := c.roster[m.Peer]; ok {
			known.Replica, known.Learner = m.ID, m.Learner
			members = append(members, known)
		}
	}
	c.root.Members = members
}

// addMember records the address of a node that is or becomes a member.
func (c *catalog) addMember(m nodemsg.Member) {
	before := len(c.root.Members)
	c.roster[m.Peer] = m
	c.updateMembers()
	if len(c.root.Members) != before {
		c.publishLeader()
	}
}

// serves reports whether questions are answered here: on the leader, and always on the only member.
func (c *catalog) serves() bool { return c.leading || len(c.members) <= 1 }

// refuseAll answers all waiting requests with an error.
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
	c.group.ReportApplied(d.Index, writes)
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

// proposeAgain proposes again what was pending before this node led. Those entries may have been committed or not; founding a
// cell twice changes nothing.
func (c *catalog) proposeAgain() {
	for cell, f := range c.asked {
		if err := c.group.Propose(f.entry); err != nil {
			c.answer(cell, founded{err: fmt.Errorf("found cell %v: %w", cell, err)})
		}
	}
}
