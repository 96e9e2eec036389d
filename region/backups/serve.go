package backups

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// storeTime is how long a copy may take to have on disk what was acknowledged, and storePoll the pause between two
	// looks.
	storeTime = 8 * time.Second
	storePoll = 10 * time.Millisecond
	// logTime is how long that may take to be in its log. Members get entries a little later than the leader.
	logTime = time.Second
)

// Serve answers one request of another node.
func (e *Exporter) Serve(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	leave := func() {}
	defer func() { leave() }() // after what was read is sent
	err := transport.ServeExport(ctx, stream, func(ctx context.Context, q nodemsg.Export) (func(io.Writer) error, error) {
		entered, err := e.requests.enter(ctx, peer)
		if err != nil {
			return nil, err
		}
		leave = entered
		records, err := e.read(ctx, peer, q)
		return func(w io.Writer) error {
			for _, r := range records {
				if err := wire.WriteFrame(w, r); err != nil {
					return err
				}
			}
			return nil
		}, err
	})
	if err != nil {
		e.Logger.Debug("copy for a backup not sent", "peer", peer, "error", err)
	}
}

// read returns what a node, possibly this one, asks for: the records of a group, or tables and an End.
func (e *Exporter) read(ctx context.Context, peer string, q nodemsg.Export) (records []backup.Record, err error) {
	if q.Group == 0 {
		return e.readTables(ctx)
	}
	sign := q.Attest && e.Attester != nil
	if sign && !q.NoRows && (peer == e.Self.Peer || e.requests.barriers.Allow(peer)) {
		q.Index = max(q.Index, e.commitBarrier(ctx, q.Group))
	}
	if sign && q.NoRows && e.neverOpened(ctx, q.Group) {
		p := plan{info: nodemsg.Region{ID: q.Group, Cell: q.Cell}}
		records = p.founded()
	} else if err = e.awaitStored(ctx, q); err == nil {
		records, err = e.readGroup(ctx, q)
	}
	if err == nil && sign {
		err = e.attest(records)
	}
	if err != nil || !q.NoRows {
		return records, err
	}
	return []backup.Record{records[0], records[len(records)-1]}, nil
}

// neverOpened reports whether this node has had no copy of a region, so that it has no rows here.
func (e *Exporter) neverOpened(ctx context.Context, group uint64) bool {
	statuses, _, err := e.AskStatuses(ctx, e.Self.Peer, nodemsg.StatusRequest{Regions: []uint64{group}, Log: true})
	return err == nil && len(statuses) == 1 && answer{e.Self.Peer, statuses[0]}.neverOpened()
}

// awaitStored waits until everything up to the index is in the tables. A region that hibernates with entries that are
// not applied is woken, unless they are not in its log either: whoever has them serves the backup.
func (e *Exporter) awaitStored(ctx context.Context, q nodemsg.Export) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	begun, logged, woken := time.Now(), false, false
	for {
		stored, err := replica.AppliedIn(e.Storage.Get, q.Group)
		if err != nil || stored >= q.Index {
			return err
		}
		if !logged {
			p, err := e.Replicas.Position(q.Group)
			if err != nil {
				return err
			}
			if logged = p.Last >= q.Index; !logged && time.Since(begun) >= logTime {
				return fmt.Errorf("entry %d is asked for, and the log of this copy only has those up to %d", q.Index, p.Last)
			}
		}
		if logged {
			if err := e.applyLog(ctx, q, woken); err != nil {
				return err
			}
			woken = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("entry %d is acknowledged, and this copy only has those up to %d", q.Index, stored)
		case <-time.After(storePoll):
		}
	}
}

// applyLog has a group apply its log, and store what follows from it. Its members elect a leader if it has none, unless
// that was begun.
func (e *Exporter) applyLog(ctx context.Context, q nodemsg.Export, woken bool) (err error) {
	l := e.Regions.Loaded(q.Group)
	if l == nil && q.Group != world.CatalogID {
		if l, err = e.Regions.Open(ctx, q.Group, q.Cell); err != nil {
			return err
		}
	}
	if l == nil {
		return nil
	}
	if raft := l.Raft(); !woken && raft != nil && raft.Status().Leader == "" {
		raft.Campaign()
	}
	l.Flush()
	return nil
}

// enter waits until a group may be read here.
func (e *Exporter) enter(ctx context.Context) error {
	select {
	case e.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Exporter) leave() { <-e.reading }

// readGroup reads the rows of a group as of one moment. They are gathered in memory first: while a view is open, the
// file grows.
func (e *Exporter) readGroup(ctx context.Context, q nodemsg.Export) (records []backup.Record, err error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	size := 0
	table, prefix := world.LandTable, directory.Key(q.Group)
	if q.Group == world.CatalogID {
		table, prefix = world.CatalogTable, nil
	}
	emit := func(r backup.Record) error {
		if size += len(r.Rows); size > backup.MaxGroup {
			return fmt.Errorf("it is larger than %d bytes", backup.MaxGroup)
		}
		records = append(records, r)
		return nil
	}
	err = replica.View(e.Storage, func(r replica.Reader) error {
		from, conf, err := replica.OriginIn(r, q.Group)
		if err != nil {
			return err
		}
		if from.Index < q.Index {
			return errors.New("the copy has been replaced")
		}
		g := backup.Group{
			ID: q.Group, Cell: q.Cell, Epoch: actor.EpochOf(conf),
			Position: backup.Position{Index: from.Index, Term: from.Term, Next: from.Next, Recovered: from.Recovered},
		}
		for _, m := range conf.Members {
			g.Members = append(g.Members, m.Peer)
		}
		rows := backup.NewRowsWriter(emit)
		if err := emit(backup.Record{Group: &g}); err != nil {
			return err
		}
		if err := r.Scan(table, prefix, rows.Add); err != nil {
			return err
		}
		return rows.Close()
	})
	return records, err
}

// The tables of a node that are not of one group: gameserver/players, integrity, policysync and contents write them.
var tables = []string{backup.PlayersTable, backup.BasesTable, backup.PolicyTable, backup.ContentsTable}

// readTables reads the players that this node knows, and the terrain that it keeps.
func (e *Exporter) readTables(ctx context.Context) (records []backup.Record, err error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	emit := func(r backup.Record) error {
		records = append(records, r)
		return ctx.Err()
	}
	for _, name := range tables {
		rows := backup.TableWriter{Name: name, Emit: emit}
		if err := e.Storage.Scan(name, nil, rows.Add); err != nil {
			return nil, err
		}
		if name == backup.PlayersTable && e.Players != nil {
			err := e.Players(func(p nodemsg.PlayerRecord) error {
				row, err := nodemsg.EncodePlayerRecord(p)
				if err != nil {
					return err
				}
				return rows.Add(bytes.Clone(p.Player[:]), row)
			})
			if err != nil {
				return nil, err
			}
		}
		if err := rows.Flush(); err != nil {
			return nil, err
		}
	}
	return append(records, backup.Record{End: &backup.End{}}), nil
}
