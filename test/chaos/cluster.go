package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/chaos/machine"
	"github.com/voxelpopuli/voxeld/test/chaos/players"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/netns"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// seed is that of a flat world of one section. Its spawn is 23 blocks from the corner of chunk 0, 0, where four
// regions meet.
const seed = "2720"

// ClusterOptions configure the daemons.
type ClusterOptions struct {
	Binary   string // path of voxeld
	Nodes    int
	Disks    bool // each node has its own disk, which can lose power and be filled
	Networks bool // each node has its own network namespace, which can be cut off
	LogDir   string
	Args     []string // further flags of voxeld run
}

// Cluster is a set of daemons of one world, on this machine.
type Cluster struct {
	Nodes []*Node

	slot    *machine.Slot
	network *netns.Bridge // nil without namespaces
	logger  *slog.Logger
	token   string // of an earlier invite, used while no node can make one
}

// NewCluster prepares the nodes without starting them.
func NewCluster(slot *machine.Slot, o ClusterOptions, logger *slog.Logger) (*Cluster, error) {
	c := &Cluster{slot: slot, logger: logger}
	if o.Networks {
		var err error
		if c.network, err = netns.NewBridge(slot.Prefix(), fmt.Sprintf("10.77.%d", slot.Number), o.Nodes); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(o.LogDir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of logs: %w", err)
	}
	for i := 1; i <= o.Nodes; i++ {
		n, err := c.newNode(i, o)
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c, nil
}

func (c *Cluster) newNode(i int, o ClusterOptions) (*Node, error) {
	path := filepath.Join(c.slot.Dir, fmt.Sprintf("n%d", i))
	n := &Node{Number: i, dir: path, pid: path + ".pid", log: filepath.Join(o.LogDir, filepath.Base(path)+".log")}
	d := daemon.Options{
		Binary: o.Binary, Dir: n.dir, Admin: path + ".sock", IP: c.slot.Loopback(i), LogLevel: "info",
		Args: append([]string{"--sessions-per-address", "1000"}, o.Args...), Options: process.Options{Log: n.log},
	}
	if c.network != nil {
		d.IP, d.Prefix = c.network.Address(i), c.network.Enter(i)
	}
	n.Daemon = daemon.New(d)
	n.gateway = &players.Gateway{Number: i, Game: n.Game, Serves: n.Serves}
	if o.Disks {
		var err error
		n.disk, err = machine.NewDisk(path+".ext4", n.dir)
		return n, err
	}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	return n, nil
}

// Found creates the world, starts only the first node, and sets the spawn.
func (c *Cluster) Found(ctx context.Context) error {
	first := c.Nodes[0]
	if err := first.Init(ctx, "--sections", "1", "--seed", seed); err != nil {
		return err
	}
	if err := c.startAll(ctx, []*Node{first}); err != nil {
		return err
	}
	at := players.Spawn
	return first.Command(ctx, fmt.Sprintf("setspawn %d %d %d", at.X, at.Y, at.Z))
}

// startAll starts nodes concurrently, and returns when all serve.
func (c *Cluster) startAll(ctx context.Context, nodes []*Node) error {
	for _, n := range nodes {
		if err := n.launch(c.invite(ctx, n)); err != nil {
			return err
		}
	}
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.await(ctx))
	}
	return errors.Join(errs...)
}

// invite returns a join token for the node; "" for the first node, and for one that has joined before.
func (c *Cluster) invite(ctx context.Context, whom *Node) string {
	if whom.peer() != "" {
		return "" // its database has the world and the other nodes
	}
	for _, n := range c.Nodes {
		if n == whom || !n.Serves() {
			continue
		}
		if token, err := n.Invite(ctx, true); err == nil {
			c.token = token
			break
		}
	}
	return c.token
}

// Stop kills all nodes, whatever their state.
func (c *Cluster) Stop() error {
	var errs []error
	for _, n := range c.Nodes {
		errs = append(errs, n.kill())
	}
	return errors.Join(errs...)
}

// peer returns the node with that peer id; nil if there is none.
func (c *Cluster) peer(id string) *Node {
	i := slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.peer() == id })
	if i < 0 {
		return nil
	}
	return c.Nodes[i]
}

// openRegion is a region that is open on some nodes.
type openRegion struct {
	daemon.Region // as its leader reports it; without a Leader if no node claims to lead it
	area          grid.Cell
	nodes         int // on which it is open
}

// openRegions returns the regions that are open, by id. If two nodes claim to lead one, the node with the larger term
// counts. A damaged copy is not open.
func (c *Cluster) openRegions(ctx context.Context) map[string]openRegion {
	all := make(map[string]openRegion)
	for _, n := range c.Nodes {
		if !n.Serves() {
			continue
		}
		regions, err := n.Regions(ctx)
		if err != nil {
			continue // it is stopping or starting
		}
		for _, r := range regions {
			area, err := grid.ParseCell(r.Cell)
			if err != nil {
				continue // the catalog
			}
			known := all[r.ID]
			if r.Leader == n.peer() && r.Term >= known.Term {
				known.Region = r
			}
			known.area, known.nodes = area, known.nodes+1
			all[r.ID] = known
		}
	}
	return all
}

// regionAt returns the region with the chunk, or what is wrong. If several are led, it is the smallest: the others are
// split, and will hibernate. One without a leader may be what a node that was down keeps of a merged region until it
// sweeps.
func regionAt(all map[string]openRegion, chunk grid.ChunkPos) (found openRegion, wrong string) {
	for id, r := range all {
		if !r.area.Contains(chunk) || r.Leader == "" {
			continue
		}
		switch {
		case found.nodes > 0 && found.area == r.area:
			return found, fmt.Sprintf("chunk %v is in the regions %s and %s of %v", chunk, found.ID, id, r.area)
		case found.nodes == 0 || r.area.Label.Len() > found.area.Label.Len():
			found = r
		}
	}
	if found.nodes == 0 {
		return found, fmt.Sprintf("no leader of the region of chunk %v", chunk)
	}
	return found, ""
}

// missingMembers returns what is missing until each of the chunks is in a region, every such region has that many
// members, and every node is connected to that many others.
func (c *Cluster) missingMembers(ctx context.Context, chunks []grid.ChunkPos, members, peers int) (missing string) {
	for _, n := range c.Nodes {
		if !n.Serves() {
			continue
		}
		s, err := n.Status(ctx)
		if err != nil {
			return err.Error()
		}
		if s.Peers < peers {
			return fmt.Sprintf("node %d is connected with %d nodes", n.Number, s.Peers)
		}
		if s.Catalog == "" {
			return fmt.Sprintf("node %d does not know who leads the catalog", n.Number)
		}
		for state, regions := range s.NodeRegions { // the catalog is among them
			if state != "healthy" && regions > 0 {
				return fmt.Sprintf("node %d has %d regions in the state %s", n.Number, regions, state)
			}
		}
	}
	all := c.openRegions(ctx)
	for _, chunk := range chunks {
		r, wrong := regionAt(all, chunk)
		if wrong != "" {
			return wrong
		}
		if r.nodes < members {
			return fmt.Sprintf("region %s is open on %d nodes", r.Cell, r.nodes)
		}
		// Nor may there be more: a removed member that is still listed counts towards majorities.
		alive := 0
		for _, m := range r.Members {
			if n := c.peer(m); n != nil && n.Serves() {
				alive++
			}
		}
		if r.Voters != members || len(r.Members) != members || alive != members {
			return fmt.Sprintf("region %s has %d members, of which %d vote and %d run", r.Cell, len(r.Members), r.Voters, alive)
		}
	}
	return ""
}

// eventually polls until missing returns "", and returns how long that took.
func eventually(ctx context.Context, limit time.Duration, missing func() string) (time.Duration, error) {
	start := time.Now()
	for {
		what := missing()
		took := time.Since(start)
		if what == "" {
			return took, nil
		}
		if took > limit {
			return took, fmt.Errorf("not within %v: %s", limit, what)
		}
		select {
		case <-ctx.Done():
			return took, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// panics returns the lines of the nodes' logs that report a panic or a data race.
func (c *Cluster) panics() ([]string, error) {
	var found []string
	for _, n := range c.Nodes {
		text, err := os.ReadFile(n.log)
		if err != nil {
			return nil, fmt.Errorf("look for panics: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.Contains(line, "panicked") ||
				strings.Contains(line, "DATA RACE") || strings.HasPrefix(line, "SIGSEGV") {
				found = append(found, fmt.Sprintf("node %d: %s", n.Number, strings.TrimSpace(line)))
			}
		}
	}
	return found, nil
}
