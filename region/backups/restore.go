package backups

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file founds a world from a backup in the empty storage of a node: every region, and the catalog, as a group of
// this one member. Nodes that hold data of the world from before give it up when they meet this one, as after a
// recovery (docs/adr/0009). The caller owns the storage.

// RestoreStorage is the storage of the node.
type RestoreStorage interface {
	replica.Reader
	Commit(writes []kv.Write) error
}

// RestoreOptions are how a world is restored. Self and Player are required.
type RestoreOptions struct {
	Self nodemsg.Member // the node
	// Player returns the write that makes the node publish a player's record.
	Player func(nodemsg.PlayerRecord) (kv.Write, error)
	// Forked is set if the world gets a new id: nodes from before have no part in it.
	Forked   bool
	Progress func(regions int, rows uint64) // may be nil
}

// RestoreReport is what was restored.
type RestoreReport struct {
	Regions int
	Players int
	Rows    uint64
	// Anew lists the regions that no backup has: their land is as it was generated. Older lists those that are as of an
	// earlier backup of the chain.
	Anew, Older []string
	// Disputed are the numbers of the commands about the policy that nodes had different ones of.
	Disputed []uint64
	// Unfinished describes the rollbacks that were not complete, and are not carried on.
	Unfinished []string
}

const (
	// commitRows and commitBytes bound one commit.
	commitRows  = 4000
	commitBytes = 1 << 20
)

// Restore writes the world as of the end of the chain, which must have been verified.
func Restore(db RestoreStorage, chain backup.Chain, o RestoreOptions) (RestoreReport, error) {
	r := restoration{db: db, RestoreOptions: o, players: make(map[player.ID]uint64), acts: make(acts)}
	sources := make(map[uint64]int)
	for _, g := range chain.Latest() {
		switch {
		case g.File < 0:
			r.report.Anew = append(r.report.Anew, g.Name())
		case g.Older:
			r.report.Older = append(r.report.Older, g.Name())
		}
		sources[g.ID] = g.File
		if err := r.group(g.Group, chain.Last().Splits[g.ID]); err != nil {
			return RestoreReport{}, err
		}
	}
	for i, c := range chain {
		clear(r.acts) // each file has all; those of before an earlier restore may be others
		if err := c.Rows(func(g backup.Group) bool {
			at, ok := sources[g.ID]
			return ok && at == i
		}, r.rows); err != nil {
			return RestoreReport{}, err
		}
	}
	all, disputed := r.acts.inOrder(chain.Last().Genesis.ID(), chain.Last().Issued)
	state := policyOf(all)
	if err := r.put(imports(state, chain.Last().Header.Time())...); err != nil {
		return RestoreReport{}, err
	}
	if err := r.flush(); err != nil {
		return RestoreReport{}, err
	}
	var err error
	r.report.Disputed = disputed
	r.report.Unfinished, err = unfinished(db, state, chain)
	return r.report, err
}

// restoration is a restore in progress.
type restoration struct {
	RestoreOptions

	db      RestoreStorage
	writes  []kv.Write
	players map[player.ID]uint64 // the newest record of each so far
	acts    acts
	bytes   int
	report  RestoreReport
}

func (r *restoration) put(writes ...kv.Write) error {
	for _, w := range writes {
		r.writes = append(r.writes, w)
		r.bytes += len(w.Key) + len(w.Value)
	}
	if len(r.writes) < commitRows && r.bytes < commitBytes {
		return nil
	}
	return r.flush()
}

func (r *restoration) flush() error {
	if len(r.writes) == 0 {
		return nil
	}
	err := r.db.Commit(r.writes)
	r.writes, r.bytes = nil, 0
	if r.Progress != nil {
		r.Progress(r.report.Regions, r.report.Rows)
	}
	return err
}

// Origin returns the position from which a group of a backup continues.
func Origin(g backup.Group) replica.Origin {
	p := g.Position
	return replica.Origin{
		Index: p.Index, Term: p.Term, Next: max(p.Next, 1),
		Recovered: max(p.Recovered, actor.ConfigurationOf(g.Epoch).Recovered),
	}
}

// group writes what a node stores of a group that it is the only member of, and of a region also the catalog's row.
// Split is when it was split, or 0.
func (r *restoration) group(g backup.Group, split uint64) error {
	from := Origin(g)
	conf, writes, err := replica.Restoration(r.db, r.Self.Peer, g.ID, from)
	if err != nil {
		return err
	}
	info := nodemsg.Region{ID: g.ID, Cell: g.Cell, Epoch: actor.EpochOf(conf), Term: from.Term + 1, Leader: r.Self.Peer, Split: split}
	member := r.Self
	member.Replica = conf.Members[0].ID
	info.Members = []nodemsg.Member{member}
	if g.ID != world.CatalogID {
		r.report.Regions++
		row, err := nodemsg.EncodeRegion(info)
		if err != nil {
			return fmt.Errorf("restore region %s: %w", g.Name(), err)
		}
		writes = append(writes,
			kv.Write{Table: directory.Table, Key: directory.Key(g.ID), Value: row},
			kv.Write{Table: world.CatalogTable, Key: []byte(g.Cell.String()), Value: row})
	}
	if !r.Forked {
		before := nodemsg.Region{ID: g.ID, Cell: g.Cell, Epoch: max(g.Epoch, actor.FirstEpoch)}
		for _, peer := range g.Members {
			before.Members = append(before.Members, nodemsg.Member{Peer: peer})
		}
		row, err := integrity.EvictedRow(before, r.Self.Game)
		if err != nil {
			return err
		}
		writes = append(writes, row)
	}
	return r.put(writes...)
}

// rows writes rows of a group or of a table.
func (r *restoration) rows(g *backup.Group, table string, rows []kv.Write) error {
	if g != nil && g.ID == world.CatalogID {
		return nil // its rows follow from the groups
	}
	for _, row := range rows {
		row.Table = world.LandTable
		if g == nil {
			row.Table = table
		}
		if table == backup.PolicyTable {
			r.acts.add(row)
			continue
		}
		if table == backup.PlayersTable {
			if err := r.player(row); err != nil {
				return err
			}
			continue
		}
		r.report.Rows++
		if err := r.put(row); err != nil {
			return err
		}
	}
	return nil
}

// player writes a player's record unless a newer one was written.
func (r *restoration) player(row kv.Write) error {
	rec, err := nodemsg.DecodePlayerRecord(row.Value)
	if err != nil {
		return nil //nolint:nilerr // the node that had it could not read it either
	}
	if seq, seen := r.players[rec.Player]; seen && seq >= rec.Seq {
		return nil
	}
	r.players[rec.Player] = rec.Seq
	r.report.Players = len(r.players)
	rec.Gateway, rec.Login = r.Self.Peer, nil
	published, err := r.Player(rec)
	if err != nil {
		return err
	}
	if row.Value, err = nodemsg.EncodePlayerRecord(rec); err != nil {
		return err
	}
	return r.put(row, published)
}
