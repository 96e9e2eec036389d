package export

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/backup"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// batch is how many regions are asked for at a time, right before they are read.
	batch = 128
	// workers is how many groups are fetched at the same time. Each is held in memory until it is complete.
	workers = 2
	// attempts is how often a group is tried that cannot be read, and retryPause the pause between: longer than an election.
	attempts   = 3
	retryPause = 1500 * time.Millisecond
)

// Backup writes a backup of the world. If it is complete, everything that was acknowledged before it begins is in it; otherwise it names
// what may be missing. After an error what was written is of no use.
func (e *Exporter) Backup(ctx context.Context, w io.Writer, o Options) (complete bool, err error) {
	out, err := backup.NewWriter(w, o.Header)
	if err != nil {
		return false, err
	}
	c := collection{Exporter: e, out: out, Options: o}
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
	return out.Complete(), out.Close()
}

// collection is a backup that is being written.
type collection struct {
	*Exporter
	Options

	mu  sync.Mutex // guards out
	out *backup.Writer
}

// write writes records that belong together.
func (c *collection) write(records []backup.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range records {
		if err := c.out.Write(r); err != nil {
			return err
		}
	}
	return nil
}

// catalog writes the catalog and returns the regions that it lists.
func (c *collection) catalog(ctx context.Context) ([]nodemsg.Region, error) {
	info, err := c.Regions.Member(world.CatalogID)
	if err != nil {
		if info, err = c.Directory.CatalogMembers(ctx); err != nil {
			return nil, fmt.Errorf("find the catalog: %w", err)
		}
	}
	records, err := c.fetchAgain(ctx, info)
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w", err)
	}
	var regions []nodemsg.Region
	for _, r := range records {
		if r.Group != nil && r.Group.Missing {
			return nil, fmt.Errorf("read the catalog: %s; see voxeld doctor", r.Group.Problem)
		}
		if r.Rows == nil {
			continue
		}
		rows, err := world.DecodeRows(r.Rows)
		if err != nil {
			return nil, fmt.Errorf("read the catalog: %w", err)
		}
		for _, row := range rows {
			region, err := nodemsg.DecodeRegion(row.Value)
			if err != nil {
				return nil, fmt.Errorf("read the catalog: %w", err)
			}
			if c.wants(region.Cell) {
				regions = append(regions, region)
			}
		}
	}
	return regions, c.write(records)
}

func (c *collection) wants(cell grid.Cell) bool {
	return len(c.Header.Area) == 0 || slices.Contains(c.Header.Area, cell)
}

// groups writes all regions: first those that run, close together in time, then those that hibernate.
func (c *collection) groups(ctx context.Context, regions []nodemsg.Region) error {
	seen := c.poll(ctx, regions, false)
	awake := func(info nodemsg.Region) bool { return planGroup(c.Self.Peer, info, seen).awake }
	running := make(map[uint64]bool)
	for _, info := range regions {
		running[info.ID] = awake(info)
	}
	slices.SortFunc(regions, func(a, b nodemsg.Region) int {
		return cmp.Or(compareTrue(running[a.ID], running[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	for some := range slices.Chunk(regions, batch) {
		s := c.poll(ctx, some, true)
		if err := c.each(ctx, some, func(info nodemsg.Region) error {
			records, err := c.group(ctx, planGroup(c.Self.Peer, info, s))
			if err != nil {
				records, err = c.fetchAgain(ctx, info)
			}
			if err != nil {
				return err
			}
			return c.write(records)
		}); err != nil {
			return err
		}
		c.mu.Lock()
		err := c.out.Flush()
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls do with each region, a few at a time, until one fails.
func (c *collection) each(ctx context.Context, regions []nodemsg.Region, do func(nodemsg.Region) error) error {
	var crew sync.WaitGroup
	var first error
	var once sync.Once
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan nodemsg.Region)
	for range workers {
		crew.Go(func() {
			for info := range next {
				if err := do(info); err != nil {
					once.Do(func() { first = err })
					cancel()
				}
			}
		})
	}
	for _, info := range regions {
		select {
		case next <- info:
		case <-ctx.Done():
		}
	}
	close(next)
	crew.Wait()
	return cmp.Or(first, ctx.Err())
}

// poll asks the members of the regions for their status.
func (c *collection) poll(ctx context.Context, regions []nodemsg.Region, log bool) integrity.StatusPoll {
	want := make(map[string][]uint64)
	for _, info := range regions {
		for _, m := range info.Members {
			want[m.Peer] = append(want[m.Peer], info.ID)
		}
	}
	return integrity.PollStatuses(ctx, c.AskStatuses, want, log)
}

// fetchAgain asks the members of one group again and reads it, several times. If it cannot be read with certainty, it returns the best
// copy that there is, which names the problem.
func (c *collection) fetchAgain(ctx context.Context, info nodemsg.Region) ([]backup.Record, error) {
	var failed error
	var p plan
	for range attempts {
		p = planGroup(c.Self.Peer, info, c.poll(ctx, []nodemsg.Region{info}, true))
		records, err := c.group(ctx, p)
		if err == nil || ctx.Err() != nil {
			return records, cmp.Or(ctx.Err(), err)
		}
		failed = err
		info.Members = p.info.Members // members that were not asked yet
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryPause):
		}
	}
	c.Logger.Warn("backup: region not read with certainty", "region", info.ID, "cell", integrity.Name(info), "error", failed)
	why := transport.Clip(failed)
	for _, peer := range p.sources {
		records, err := c.fetch(ctx, peer, nodemsg.Export{Group: info.ID, Cell: info.Cell})
		if err == nil {
			records[0].Group.Problem = why
			return records, nil
		}
	}
	g := backup.Group{ID: info.ID, Cell: info.Cell, Epoch: info.Epoch, Members: peers(info), Problem: why, Missing: true}
	return []backup.Record{{Group: &g}}, nil
}

// group reads a group as planned.
func (c *collection) group(ctx context.Context, p plan) ([]backup.Record, error) {
	switch {
	case p.empty:
		return p.founded(), nil
	case p.lost != "":
		return nil, errors.New(p.lost)
	}
	if same, ok := p.unchanged(c.Base); ok && p.info.ID != world.CatalogID {
		return []backup.Record{{Group: &same}}, nil
	}
	var failed error
	for _, peer := range p.sources {
		records, err := c.fetch(ctx, peer, nodemsg.Export{Group: p.info.ID, Cell: p.info.Cell, Index: p.index})
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
			continue
		case records[0].Group.Epoch != p.epoch:
			failed = errors.Join(failed, errors.New("its members have just changed"))
			continue
		}
		return records, nil
	}
	return nil, cmp.Or(failed, errors.New("no copy of it could be read"))
}

// fetch reads a group on a node, possibly this one. The first record is the group, the last one its end.
func (c *collection) fetch(ctx context.Context, peer string, q nodemsg.Export) ([]backup.Record, error) {
	if peer == c.Self.Peer {
		return c.read(ctx, q)
	}
	var records []backup.Record
	err := transport.FetchExport(ctx, c.Questions.Peers, peer, q, func(in *bufio.Reader) error {
		return readRecords(in, maxGroupBytes, func(r backup.Record) error {
			records = append(records, r)
			if first := records[0].Group; first == nil || first.ID != q.Group || first.Cell != q.Cell || !first.HasRows() || len(records) > 1 && r.Rows == nil && r.End == nil {
				return errors.New("it sent something else")
			}
			return nil
		})
	})
	if err == nil && len(records) < 2 {
		err = errors.New("it sent no rows")
	}
	return records, err
}

// readRecords reads records up to an End.
func readRecords(in *bufio.Reader, most int, each func(backup.Record) error) error {
	for size := 0; size <= most; {
		r, err := wire.ReadFrame[backup.Record](in, backup.MaxRecord)
		if err != nil {
			return err
		}
		size += len(r.Rows) + 64
		if r.Table != nil {
			size += len(r.Table.Rows)
		}
		if err := each(r); err != nil || r.End != nil {
			return err
		}
	}
	return fmt.Errorf("it is larger than %d bytes", most)
}

// tables writes what every node knows of players, and the terrain that some keep. Nodes that do not answer are left out: the records of
// their players are on others, too.
func (c *collection) tables(ctx context.Context, regions []nodemsg.Region) error {
	nodes := append([]string{c.Self.Peer}, c.Known()...)
	for _, info := range regions {
		nodes = append(nodes, peers(info)...)
	}
	slices.Sort(nodes)
	bases := make(map[string]bool)
	for _, peer := range slices.Compact(nodes) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := c.Questions.Describe(ctx, peer); err != nil && peer != c.Self.Peer {
			continue
		}
		var failed error
		emit := func(r backup.Record) error {
			if r.Table == nil {
				return nil
			}
			failed = c.table(*r.Table, bases)
			return failed
		}
		var err error
		if peer == c.Self.Peer {
			var records []backup.Record
			records, err = c.read(ctx, nodemsg.Export{})
			for _, r := range records {
				err = cmp.Or(err, emit(r))
			}
		} else {
			err = transport.FetchExport(ctx, c.Questions.Peers, peer, nodemsg.Export{}, func(in *bufio.Reader) error {
				return readRecords(in, maxTableBytes, emit)
			})
		}
		if failed != nil {
			return failed
		}
		if err != nil {
			c.out.Problem(fmt.Sprintf("players on %s: %s", peer, transport.Clip(err)))
		}
	}
	return nil
}

// table writes the rows of a table, terrain once.
func (c *collection) table(t backup.Table, bases map[string]bool) error {
	rows, err := world.DecodeRows(t.Rows)
	if err != nil {
		return err
	}
	w := backup.TableWriter{Name: t.Name, Emit: c.out.Write}
	n := 0
	for _, row := range rows {
		if t.Name == backup.BasesTable {
			if bases[string(row.Key)] {
				continue
			}
			bases[string(row.Key)] = true
		}
		n++
		if err := w.Add(row.Key, row.Value); err != nil {
			return err
		}
	}
	c.out.AddRows(n)
	return w.Flush()
}
