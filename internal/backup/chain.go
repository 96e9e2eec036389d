package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Contents are what a verified backup has, without the rows.
type Contents struct {
	File    string
	ID      ID
	Header  Header
	Genesis world.Genesis
	Groups  []Group // the catalog first
	Sums    map[uint64]ID
	Splits  map[uint64]uint64 // by region, of those that are split: the log index of that (nodemsg.Region.Split)
	// Voters are the members with a vote (peer ids) that the catalog lists, by region; for the catalog, its own
	// members.
	Voters  map[uint64][]string
	Summary Summary
	Edits   uint64 // edited blocks
	Players int
}

// Problems lists why acknowledged edits may be missing.
func (c Contents) Problems() []string {
	var all []string
	for _, g := range c.Groups {
		if g.Problem != "" {
			all = append(all, g.Name()+": "+g.Problem)
		}
	}
	return append(all, c.Summary.Problems...)
}

// Verify reads a whole backup and decodes everything in it. Progress is called after each group, if not nil.
func Verify(in io.Reader, progress func(groups int, rows uint64)) (c Contents, err error) {
	r, err := NewReader(in)
	if err != nil {
		return Contents{}, err
	}
	defer r.Close()
	return verify(r, progress)
}

func verify(r *Reader, progress func(groups int, rows uint64)) (c Contents, err error) {
	c.Header = r.Header
	c.Sums, c.Splits, c.Voters = make(map[uint64]ID), make(map[uint64]uint64), make(map[uint64][]string)
	if c.Genesis, err = world.DecodeGenesis(r.Header.Genesis); err != nil {
		return Contents{}, damaged("%v", err)
	}
	v := verifier{Contents: &c, reader: r, players: make(map[player.ID]struct{})}
	for {
		next, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c, v.whole()
		}
		if err == nil {
			err = v.record(next)
		}
		if err != nil {
			return Contents{}, err
		}
		if progress != nil && (next.Group != nil || next.End != nil) {
			progress(len(c.Groups), r.rows)
		}
	}
}

type verifier struct {
	*Contents
	reader  *Reader
	last    groupState
	catalog *world.Catalog
	players map[player.ID]struct{}
}

// groupState is what the rows of a group mean: one of the two is set.
type groupState struct {
	land    *world.Land
	catalog *world.Catalog
}

func newGroupState(g Group, height int32) groupState {
	if g.ID == world.CatalogID {
		return groupState{catalog: world.NewCatalog()}
	}
	return groupState{land: world.NewLand(g.ID, g.Cell, height)}
}

func (s groupState) load(rows []kv.Write) error {
	load := s.land.Load
	if s.catalog != nil {
		load = s.catalog.Load
	}
	for _, row := range rows {
		if err := load(row.Key, row.Value); err != nil {
			return damaged("%v", err)
		}
	}
	return nil
}

// CheckGroup returns an error unless the records are those of one group, with its rows and its end, in a world of that
// height, and the region was split when the catalog says, or not at all.
func CheckGroup(records []Record, height int32, split uint64) error {
	var check groupReader
	var into groupState
	for i, r := range records {
		if (i == 0) != (r.Group != nil) || i > 0 && check.open == nil {
			return damaged("they are not the records of one group")
		}
		rows, err := r.rows()
		if err == nil {
			err = check.check(r, uint64(len(rows)))
		}
		if err != nil {
			return err
		}
		if r.Group != nil {
			into = newGroupState(*r.Group, height)
		}
		if err := into.load(rows); err != nil {
			return err
		}
	}
	if len(records) < 2 || check.open != nil {
		return damaged("the rows do not end")
	}
	return into.checkSplit(split)
}

// errSplit is why a backup lacks the land of a region.
var errSplit = errors.New("it was split while the backup was made, so that its land is in regions that the backup lacks: make the backup again")

// checkSplit returns an error if the catalog of the backup lists a region as split that is not, or the other way round:
// then it lists the wrong regions.
func (s groupState) checkSplit(split uint64) error {
	if s.land != nil && s.land.Structure().Split != split {
		return errSplit
	}
	return nil
}

// record checks what the rows mean.
func (v *verifier) record(next Record) error {
	switch {
	case next.Group != nil:
		g := *next.Group
		if (len(v.Groups) == 0) != (g.ID == world.CatalogID) {
			return damaged("the catalog is not first")
		}
		if len(v.Groups) > 0 && v.Groups[0].HasRows() {
			info, listed := v.catalog.Find(g.ID)
			if !listed || info.Cell != g.Cell {
				return damaged("the catalog does not list region %s", g.Name())
			}
			if info.Split != 0 {
				v.Splits[g.ID] = info.Split
			}
			for _, m := range info.Members {
				if !m.Learner {
					v.Voters[g.ID] = append(v.Voters[g.ID], m.Peer)
				}
			}
		}
		if g.ID == world.CatalogID {
			v.Voters[g.ID] = g.Members
		}
		v.Groups = append(v.Groups, g)
		if v.last = newGroupState(g, v.Genesis.Height()); v.last.catalog != nil {
			v.catalog = v.last.catalog
		}
		if g.Same != nil {
			v.Sums[g.ID] = *g.Same
		}
	case next.End != nil:
		g := v.Groups[len(v.Groups)-1]
		v.Sums[g.ID] = next.End.Sum
		if v.Groups[0].HasRows() && g.ID != world.CatalogID {
			info, _ := v.catalog.Find(g.ID)
			if err := v.last.checkSplit(info.Split); err != nil {
				return fmt.Errorf("region %s: %w", g.Name(), err)
			}
		}
		if v.last.land != nil {
			v.Edits += uint64(v.last.land.Edits())
		}
	case next.Rows != nil:
		return v.last.load(v.reader.Rows())
	case next.Table != nil:
		v.table(next.Table.Name)
	case next.Summary != nil:
		v.Summary, v.ID = *next.Summary, next.Summary.Sum
	}
	return nil
}

// table counts players, as a restore does: by their records that can be decoded.
func (v *verifier) table(name string) {
	if name != PlayersTable {
		return
	}
	for _, row := range v.reader.Rows() {
		if p, err := nodemsg.DecodePlayerRecord(row.Value); err == nil {
			v.players[p.Player] = struct{}{}
		}
	}
	v.Players = len(v.players)
}

// whole checks that the regions are those of the catalog.
func (v *verifier) whole() error {
	if len(v.Groups) == 0 {
		return damaged("it has no catalog")
	}
	if v.Groups[0].HasRows() && len(v.Header.Area) == 0 && v.catalog.Len() != len(v.Groups)-1 {
		return damaged("it has %d regions, the catalog lists %d", len(v.Groups)-1, v.catalog.Len())
	}
	return nil
}

// Chain is a full backup and the incremental ones that follow it, each based on the one before.
type Chain []Contents

// VerifyFiles verifies the files and returns them as a chain. A single incremental backup is no chain. It fails when
// ctx ends.
func VerifyFiles(ctx context.Context, files []string, progress func(file string, groups int, rows uint64)) (Chain, error) {
	var chain Chain
	for i, name := range files {
		c, err := VerifyFile(ctx, name, func(groups int, rows uint64) {
			if progress != nil {
				progress(name, groups, rows)
			}
		})
		if err == nil {
			err = chain.follows(c)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", files[i], err)
		}
		chain = append(chain, c)
	}
	return chain, chain.complete()
}

// VerifyFile verifies one file. It fails when ctx ends.
func VerifyFile(ctx context.Context, name string, progress func(groups int, rows uint64)) (Contents, error) {
	f, err := os.Open(name)
	if err != nil {
		return Contents{}, err
	}
	defer f.Close()                                      //nolint:errcheck // it was only read
	defer context.AfterFunc(ctx, func() { f.Close() })() //nolint:errcheck // it was only read; reading fails then
	c, err := Verify(f, progress)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	c.File = name
	return c, err
}

// HeaderOf returns the header of a file, without verifying what follows.
func HeaderOf(file string) (Header, error) {
	f, err := os.Open(file)
	if err != nil {
		return Header{}, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return ReadHeader(f)
}

// ReadHeader reads the header of a backup, without verifying what follows.
func ReadHeader(in io.Reader) (Header, error) {
	r, err := NewReader(in)
	if err != nil {
		return Header{}, err
	}
	defer r.Close()
	return r.Header, nil
}

// follows returns an error unless the backup can come next in the chain.
func (chain Chain) follows(c Contents) error {
	switch {
	case c.Header.Base == nil && len(chain) > 0:
		return errors.New("it is a full backup, and must be the first file")
	case c.Header.Base != nil && len(chain) == 0:
		return fmt.Errorf("it is an incremental backup: name the files that it is based on before it, beginning with the full one (it is based on backup %v)", *c.Header.Base)
	case len(chain) > 0 && c.Genesis.ID() != chain.Last().Genesis.ID():
		return fmt.Errorf("it is of another world than %s before it", chain.Last().File)
	case c.Header.Base != nil && *c.Header.Base != chain.Last().ID:
		return fmt.Errorf("it is based on backup %v, and %s before it is backup %v", *c.Header.Base, chain.Last().File, chain.Last().ID)
	}
	return nil
}

// complete checks that all rows that later files refer to are there.
func (chain Chain) complete() error {
	if len(chain) == 0 {
		return errors.New("no backup given")
	}
	for i, c := range chain {
		for _, g := range c.Groups {
			if g.Same == nil {
				continue
			}
			if i == 0 || chain[i-1].Sums[g.ID] != *g.Same {
				return fmt.Errorf("%s: %w: the files before it do not have the rows of %s", c.File, ErrDamaged, g.Name())
			}
		}
	}
	return nil
}

// Last returns the newest backup.
func (chain Chain) Last() Contents { return chain[len(chain)-1] }

// Latest is a group as a chain has it at its end.
type Latest struct {
	Group

	File  int  // number of the file that has its rows, -1 if none has
	Older bool // the newest backup could not read it, and the rows are those of an earlier one
}

// Latest returns the groups of the newest backup, the catalog first.
func (chain Chain) Latest() []Latest {
	rows := make(map[uint64]Latest)
	for i, c := range chain {
		for _, g := range c.Groups {
			if g.HasRows() {
				rows[g.ID] = Latest{Group: g, File: i}
			}
		}
	}
	var all []Latest
	for _, g := range chain.Last().Groups {
		at, there := rows[g.ID]
		switch {
		case !there:
			at = Latest{Group: g, File: -1}
		case g.Missing:
			at.Older = true
			at.Epoch, at.Members = max(at.Epoch, g.Epoch), g.Members // the copies that must give way
		case g.Same != nil:
			at.Group = g
		}
		all = append(all, at)
	}
	return all
}

// Rows calls visit with the rows of the groups that want, and with those of the tables, in the order of the file. Group
// is nil for the rows of a table.
func (c Contents) Rows(want func(Group) bool, visit func(g *Group, table string, rows []kv.Write) error) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	r, err := NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	defer r.Close()
	var open *Group
	for {
		next, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", c.File, err)
		case next.Group != nil:
			if open = nil; want(*next.Group) {
				open = next.Group
			}
		case next.Rows != nil && open != nil:
			err = visit(open, "", r.Rows())
		case next.Table != nil:
			err = visit(nil, next.Table.Name, r.Rows())
		}
		if err != nil {
			return err
		}
	}
}
