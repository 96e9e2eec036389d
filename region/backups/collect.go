package backups

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/contents"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// batch is how many regions are asked for at a time, right before they are read, and after how many the output is
	// flushed.
	batch = 128
	// workers is how many groups are fetched at the same time. Each is held in memory until it is complete.
	workers = 2
	// maxRest bounds the rest of a worker after each group.
	maxRest = time.Second
	// attempts is how often a group is tried that cannot be read, and retryPause the pause between: longer than an
	// election.
	attempts = 3
	// attestTries is how often the rows of a group are read and signed, if they have changed in between.
	attestTries = 3
	retryPause  = 1500 * time.Millisecond
)

// Backup writes a backup of the world. If it is complete, everything that was acknowledged before it begins is in it;
// otherwise it names what may be missing. After an error what was written is of no use.
func (e *Exporter) Backup(ctx context.Context, w io.Writer, o ExportOptions) (complete bool, err error) {
	out, err := backup.NewWriter(w, o.Header)
	if err != nil {
		return false, err
	}
	c := collection{Exporter: e, out: out, ExportOptions: o, certificates: make(map[trust.Key][]byte)}
	if len(o.Header.Area) == 0 {
		c.commands(ctx)
	}
	regions, err := c.catalog(ctx)
	if err != nil {
		return false, err
	}
	if err := c.groups(ctx, regions); err != nil {
		return false, err
	}
	if len(o.Header.Area) == 0 {
		err = c.tables(ctx, regions)
	}
	if err != nil {
		return false, err
	}
	if e.Attester != nil {
		out.Certify(e.Attester.Charters(), slices.SortedFunc(maps.Values(c.certificates), bytes.Compare))
	}
	return out.Complete(), out.Close()
}

// collection is a backup that is being written.
type collection struct {
	*Exporter
	ExportOptions

	behind bool // this node's table of the policy may lack commands

	mu           sync.Mutex // guards the following
	out          *backup.Writer
	written      int                  // groups
	certificates map[trust.Key][]byte // sealed, of the nodes that have signed
}

// write writes records that belong together.
func (c *collection) write(records []backup.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range records {
		if r.Group != nil {
			c.takeCertificates(r.Group.Attestations)
		}
		if err := c.out.Write(r); err != nil {
			return err
		}
	}
	c.written++
	if c.written%batch > 0 {
		return nil
	}
	return c.out.Flush() // so that the operator sees progress
}

// takeCertificates keeps the certificates of those who have signed, for the summary.
func (c *collection) takeCertificates(all []backup.Attestation) {
	for i, a := range all {
		c.certificates[a.Node] = a.Certificate
		all[i].Certificate = nil
	}
}

// commands has this node read the commands of the policy that were acknowledged. Its table of them is written later.
func (c *collection) commands(ctx context.Context) {
	if err := c.UpdatePolicy(ctx); err != nil {
		c.behind = true
		c.out.Problem(fmt.Sprintf("the last commands about roles, names, bans and claims may be missing: %s", transport.Clip(err)))
	}
}

// catalog writes the catalog and returns the regions that it lists.
func (c *collection) catalog(ctx context.Context) (regions []nodemsg.Region, err error) {
	info, err := c.catalogMembers(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the catalog: %w", err)
	}
	err = c.readAll(ctx, []nodemsg.Region{info}, func(records []backup.Record) error {
		if g := records[0].Group; g.Missing {
			return fmt.Errorf("%s; see voxeld doctor", g.Problem)
		}
		for _, r := range records {
			if r.Rows == nil {
				continue
			}
			rows, err := world.DecodeRows(r.Rows)
			if err != nil {
				return err
			}
			for _, row := range rows {
				region, err := nodemsg.DecodeRegion(row.Value)
				if err != nil {
					return err
				}
				if c.wants(region.Cell) {
					regions = append(regions, region)
				}
			}
		}
		return c.write(records)
	})
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w", err)
	}
	return regions, nil
}

// catalogMembers returns the catalog as this node's copy has it, or as most of its members say.
func (c *collection) catalogMembers(ctx context.Context) (nodemsg.Region, error) {
	info, err := c.Regions.Member(world.CatalogID)
	if err == nil {
		return info, nil
	}
	if info, err = c.Directory.FindCatalog(ctx); err != nil {
		c.out.Problem("the members of the catalog agree on no leader: it may be another one")
		return c.Directory.CatalogMembers(ctx)
	}
	return info, nil
}

func (c *collection) wants(cell grid.Cell) bool {
	return len(c.Header.Area) == 0 || slices.ContainsFunc(c.Header.Area, func(wanted grid.Cell) bool {
		return wanted.Covers(cell) || cell.Covers(wanted)
	})
}

// groups writes all regions: first those that run, close together in time, then those that hibernate.
func (c *collection) groups(ctx context.Context, regions []nodemsg.Region) error {
	seen := c.poll(ctx, regions, nil, false, make(map[string]bool))
	awake := func(info nodemsg.Region) bool { return planGroup(c.Self.Peer, info, seen, c.Vouched).awake }
	running := make(map[uint64]bool)
	for _, info := range regions {
		running[info.ID] = awake(info)
	}
	slices.SortFunc(regions, func(a, b nodemsg.Region) int {
		return cmp.Or(compareTrue(running[a.ID], running[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	return c.readAll(ctx, regions, c.write)
}

// unread is a group that could not be read.
type unread struct {
	plan

	why error
}

// readAll calls visit with the records of each group, a few at a time. Groups that cannot be read with certainty come
// last: they are all tried again after a pause, several times; then they come with the best copy that there is, and the
// problem.
func (c *collection) readAll(ctx context.Context, infos []nodemsg.Region, visit func([]backup.Record) error) error {
	var left []unread
	named := make(map[uint64][]string) // members that the catalog does not list, by region
	for try := range attempts {
		if try > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(retryPause):
			}
		}
		var err error
		if left, err = c.readRound(ctx, infos, named, visit); err != nil || len(left) == 0 {
			return err
		}
		infos = nil
		for _, u := range left {
			infos, named[u.info.ID] = append(infos, u.info), u.named
		}
	}
	return each(ctx, left, func(u unread) error {
		if c.givenUp(ctx, u) {
			return visit(u.founded())
		}
		return visit(c.uncertain(ctx, u))
	})
}

// givenUp reports whether a region that has no copy left was given up since the catalog was read: nothing was ever
// built there.
func (c *collection) givenUp(ctx context.Context, u unread) bool {
	if len(u.sources) > 0 || u.info.Cell.Label.Len() != grid.FoundingLabel {
		return false
	}
	_, err := c.Directory.ByID(ctx, u.info.ID)
	return errors.Is(err, directory.ErrNotFounded)
}

// readRound asks the members of the groups, reads the groups and returns those that could not be read. A node that does
// not answer is asked once.
func (c *collection) readRound(ctx context.Context, infos []nodemsg.Region, named map[uint64][]string, visit func([]backup.Record) error) (left []unread, err error) {
	var mu sync.Mutex
	silent := make(map[string]bool)
	for some := range slices.Chunk(infos, batch) {
		s := c.poll(ctx, some, named, true, silent)
		err := each(ctx, some, func(info nodemsg.Region) error {
			p := planGroup(c.Self.Peer, info, s, c.Vouched)
			records, err := c.group(ctx, p)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				left = append(left, unread{p, err})
				return ctx.Err()
			}
			return visit(records)
		})
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

// uncertain returns the best copy of a group that cannot be read with certainty.
func (c *collection) uncertain(ctx context.Context, u unread) []backup.Record {
	c.Logger.Warn("backup: region not read with certainty", "region", u.info.ID, "cell", integrity.Name(u.info), "error", u.why)
	why := transport.Clip(u.why)
	for _, peer := range u.sources {
		if records, err := c.fetch(ctx, peer, u.info, 0); err == nil {
			c.keepSigned(peer, records)
			records[0].Group.Problem, records[0].Group.Members = why, u.peers()
			return records
		}
	}
	g := backup.Group{ID: u.info.ID, Cell: u.info.Cell, Epoch: u.info.Epoch, Members: peers(u.info), Problem: why, Missing: true}
	return []backup.Record{{Group: &g}}
}

// each calls do with each item, a few at a time, until one fails. After each item a worker rests for as long as it
// took: the longer things take, the more does the machine need its time for ticks.
func each[T any](ctx context.Context, items []T, do func(T) error) error {
	var wg sync.WaitGroup
	var first error
	var once sync.Once
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan T)
	for range workers {
		wg.Go(func() {
			for item := range next {
				begun := time.Now()
				if err := do(item); err != nil {
					once.Do(func() { first = err })
					cancel()
				}
				select {
				case <-ctx.Done():
				case <-time.After(min(time.Since(begun), maxRest)):
				}
			}
		})
	}
	for _, item := range items {
		select {
		case next <- item:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	return cmp.Or(first, ctx.Err())
}

// poll asks the members of the regions, and those named besides, for their status, except nodes that are silent, and
// adds those that do not answer to them.
func (c *collection) poll(ctx context.Context, regions []nodemsg.Region, named map[uint64][]string, log bool, silent map[string]bool) integrity.StatusPoll {
	want := make(map[string][]uint64)
	for _, info := range regions {
		for _, peer := range append(peers(info), named[info.ID]...) {
			if !silent[peer] {
				want[peer] = append(want[peer], info.ID)
			}
		}
	}
	s := integrity.PollStatuses(ctx, c.AskStatuses, want, log)
	for peer := range s.Silent {
		silent[peer] = true
	}
	return s
}

// attested reads a group on a source, at most so many times, with the signatures of it and of the others. They are left
// out if they cannot be had. Signed reports whether most of the voters have signed the rows.
func (c *collection) attested(ctx context.Context, source string, p plan, tries int) (records []backup.Record, signed bool, err error) {
	for range tries {
		again := false
		if records, err = c.fetch(ctx, source, p.info, p.index); err == nil && c.Attester != nil {
			signed, again = c.gather(ctx, source, p, records)
		}
		if !again {
			break
		}
	}
	return records, signed, err
}

// group reads a group as planned.
func (c *collection) group(ctx context.Context, p plan) ([]backup.Record, error) {
	switch {
	case p.empty:
		records := p.founded()
		if c.Attester != nil {
			c.gather(ctx, "", p, records)
		}
		return records, nil
	case p.lost != "":
		return nil, errors.New(p.lost)
	}
	if same, ok := p.unchanged(c.Base); ok && p.info.ID != world.CatalogID {
		return []backup.Record{{Group: &same}}, nil
	}
	records, err := c.copyOf(ctx, p)
	if err != nil {
		return nil, err
	}
	if p.info.ID == world.CatalogID {
		c.vouch(p, records[0].Group)
	}
	for _, peer := range p.alone {
		c.Contradicted(peer, fmt.Sprintf("%s has members that neither the catalog lists nor most of the others name", records[0].Group.Name()))
	}
	return records, nil
}

// copyOf reads a group on one of the sources. A copy that most of the voters have signed is preferred: if they have not
// signed the first one, the others are read once each.
func (c *collection) copyOf(ctx context.Context, p plan) (unsigned []backup.Record, err error) {
	var failed error
	tries := attestTries
	for _, peer := range p.sources {
		records, signed, err := c.attested(ctx, peer, p, tries)
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
		case records[0].Group.Position.Index < p.index:
			failed = errors.Join(failed, fmt.Errorf("%s sent an older copy than it was asked for", peer))
		case records[0].Group.Epoch != p.epoch || !p.has(records[0].Group.Members):
			failed = errors.Join(failed, errors.New("its members have just changed"))
		case signed || c.Attester == nil:
			return records, nil
		case unsigned == nil:
			unsigned, tries = records, 1
		}
	}
	if unsigned != nil {
		return unsigned, nil
	}
	return nil, cmp.Or(failed, errors.New("no copy of it could be read"))
}

// fetch reads a group on a node, possibly this one, with everything up to the index. The first record is the group, the
// last one its end.
func (c *collection) fetch(ctx context.Context, peer string, info nodemsg.Region, index uint64) ([]backup.Record, error) {
	q := nodemsg.Export{Group: info.ID, Cell: info.Cell, Index: index, Attest: c.Attester != nil}
	records, err := c.request(ctx, peer, q, backup.MaxGroup+backup.MaxRecord)
	if err != nil {
		return nil, err
	}
	if err := backup.CheckGroup(records, c.Height, info.Split); err != nil {
		return nil, fmt.Errorf("the copy on %s: %w", peer, err)
	}
	records[0].Group.Problem, records[0].Group.Voucher = "", nil // that is for this node to say
	return records, nil
}

// maxNewActs bounds the commands of the policy that a node adds to those of the nodes before it, if this node has them
// all.
const maxNewActs = 4096

// tables writes what every node knows of players, the terrain that some keep, and the commands of the policy. Nodes
// that do not answer are left out: the records of their players are on others, too.
func (c *collection) tables(ctx context.Context, regions []nodemsg.Region) error {
	nodes := c.Known()
	for _, info := range regions {
		nodes = append(nodes, peers(info)...)
	}
	slices.Sort(nodes)
	nodes = slices.DeleteFunc(slices.Compact(nodes), func(peer string) bool { return peer == c.Self.Peer })
	t := &tableRows{out: c.out, written: make(map[string]bool), newActs: math.MaxInt}
	note := func(peer string, err error) {
		if err != nil && t.failed == nil {
			c.out.Problem(fmt.Sprintf("players on %s: %s", peer, transport.Clip(err)))
		}
	}
	records, err := c.read(ctx, c.Self.Peer, nodemsg.Export{})
	for _, r := range records {
		err = cmp.Or(err, t.add(r))
	}
	note(c.Self.Peer, err)
	most := maxNewActs
	if c.behind || err != nil {
		most = math.MaxInt // what this node lacks, others have
	}
	for _, peer := range nodes {
		if err := cmp.Or(t.failed, ctx.Err()); err != nil {
			return err
		}
		if _, err := c.Questions.Describe(ctx, peer); err != nil {
			continue
		}
		t.newActs = most
		note(peer, transport.FetchExport(ctx, c.Questions.Peers, peer, nodemsg.Export{}, func(in *bufio.Reader) error {
			return readRecords(in, maxTableBytes, t.add)
		}))
	}
	return t.failed
}

// tableRows writes rows of tables, of one node after the other. The first one is this node.
type tableRows struct {
	out     *backup.Writer
	written map[string]bool // rows that several nodes have
	newActs int             // how many commands of the policy the node may still add
	failed  error           // the output cannot be written
}

// add writes rows of a table, except those that are written already and those that mean nothing.
func (t *tableRows) add(r backup.Record) error {
	if r.Table == nil {
		return nil
	}
	rows, err := world.DecodeRows(r.Table.Rows)
	if err != nil {
		return err
	}
	w := backup.TableWriter{Name: r.Table.Name, Emit: t.out.Write}
	n := 0
	for _, row := range rows {
		if !t.wants(r.Table.Name, row) {
			continue
		}
		n++
		if t.failed = w.Add(row.Key, row.Value); t.failed != nil {
			return t.failed
		}
	}
	t.out.AddRows(n)
	t.failed = w.Flush()
	return t.failed
}

// wants reports whether a row is to be written. Of a player's records the newest counts, and between different commands
// with the same number a restore decides.
func (t *tableRows) wants(table string, row kv.Write) bool {
	id := table + string(row.Key)
	switch table {
	case backup.PlayersTable:
		_, err := nodemsg.DecodePlayerRecord(row.Value)
		return err == nil
	case backup.PolicyTable:
		if id += string(row.Value); t.written[id] || t.newActs == 0 {
			return false
		}
		if _, err := nodemsg.DecodeAct(row.Value); err != nil {
			return false
		}
		t.newActs--
	case backup.BasesTable:
		if t.written[id] || !soundBase(row) {
			return false
		}
	case backup.ContentsTable:
		if t.written[id] || !contents.Sound(row.Key, row.Value) {
			return false
		}
	}
	t.written[id] = true
	return true
}

// soundBase reports whether a row is the terrain that its key names.
func soundBase(row kv.Write) bool {
	data, err := wire.UnpackChunk(row.Value)
	sum := sha256.Sum256(data)
	return err == nil && bytes.Equal(row.Key, sum[:])
}
