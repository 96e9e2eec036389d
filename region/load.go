package region

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// loaded returns the region's land and starts it if the region is not loaded.
func (r *regions) loaded(ctx context.Context, hello nodemsg.Hello) (*actor.Land, error) {
	l := r.Loaded(hello.Region)
	if l == nil {
		var err error
		l, err = r.loading.Do(ctx, r.Tasks, helloKey(hello), func(ctx context.Context) (*actor.Land, error) {
			if l := r.Loaded(hello.Region); l != nil {
				return l, nil // loaded since we looked
			}
			return r.load(ctx, hello)
		})
		if err != nil {
			return nil, err
		}
	}
	if l.Cell() != hello.Cell {
		return nil, actor.ErrNotHere
	}
	return l, nil
}

// Open returns a region's land and loads it first if necessary. The error is an integrity.Refusal if its copy here is
// not to be opened.
func (r *regions) Open(ctx context.Context, id uint64, cell grid.Cell) (*actor.Land, error) {
	return r.loaded(ctx, nodemsg.Hello{Region: id, Cell: cell})
}

// openMember returns the group of a region, possibly the catalog, that this node is a member of, as far as it knows.
func (r *regions) openMember(ctx context.Context, id uint64) (placement.Group, error) {
	if c := r.Catalog(); id == world.CatalogID && c != nil {
		return r.catalogGroup(c), nil
	}
	info, err := r.membership(ctx, id)
	if err != nil {
		return placement.Group{}, err
	}
	l, err := r.Open(ctx, id, info.Cell)
	if err != nil {
		return placement.Group{}, err
	}
	return r.GroupOf(l), nil
}

// load opens the region's group and starts its land. A region that was never here is opened only if the catalog's log
// names this node a member (docs/adr/0004).
func (r *regions) load(ctx context.Context, hello nodemsg.Hello) (*actor.Land, error) {
	info, err := r.membership(ctx, hello.Region)
	if err != nil {
		return nil, err
	}
	if info.Cell != hello.Cell {
		return nil, actor.ErrNotHere
	}
	if err := r.executor.Admit(ctx, info); err != nil {
		return nil, fmt.Errorf("load region %d: %w", info.ID, err)
	}
	g, err := r.openGroup(ctx, info)
	if err == nil {
		var l *actor.Land
		if l, err = r.serve(info, g); err == nil {
			r.facts.Opened(info.ID)
			if err := r.facts.Err(info.ID); err != nil { // it turned out since this began
				l.Close(err.Error())
			}
			return l, nil
		}
	}
	r.executor.NotOpened(info, err)
	return nil, err
}

// readLand reads the region's land from storage.
func (r *regions) readLand(info nodemsg.Region) (*world.Land, error) {
	land := world.NewLand(info.ID, info.Cell, r.Height)
	var err error
	if caught := actor.Catch(func() { err = r.Storage.Scan(world.LandTable, land.Prefix(), land.Load) }); caught != nil {
		err = caught
	}
	if err != nil {
		return nil, fmt.Errorf("load region %d: %w", info.ID, err)
	}
	return land, nil
}

// options are the options of all actors.
func (r *regions) options(changed func(nodemsg.Region)) actor.Options {
	return actor.Options{
		Self: r.Self, Logger: r.Logger, Metrics: r.actors, Start: r.Tasks.Start, Describe: r.Questions.Describe, Changed: changed,
	}
}

func (r *regions) landOptions() (actor.Options, actor.LandOptions) {
	return r.options(r.publisher.Changed), actor.LandOptions{
		Hash: r.bases.Hash, Hibernate: r.hibernate, StayAwake: r.autoSplit.StayAwake, Reload: r.readLand, ReadParts: r.disk.ReadParts, FetchParts: r.disk.FetchParts,
		Split: r.splitter.Begin, Merged: r.splitter.DeleteMerged, Resolve: r.resolve, Pinned: r.bases.Pinned, RefuseEdit: r.policy.RefuseEdit,
		Orders: func() actor.Orders { return r.policy.Orders() }, Proofs: r.proofs, Now: r.now, CPU: r.cpu, Probe: r.probe,
	}
}

// resolve finds out what has become of a region that is frozen, or was given up.
func (r *regions) resolve(l *actor.Land, structure world.Structure, leads bool) {
	if structure.Vacated != 0 {
		r.vacater.Resolve(l, leads)
		return
	}
	r.splitter.Resolve(l, structure, leads)
}

// failedLately reports whether a region failed lately here, or on another member, as that said last.
func (r *regions) failedLately(info nodemsg.Region) bool {
	return r.facts.FailedLately(info.ID) || slices.ContainsFunc(info.Members, func(m nodemsg.Member) bool {
		about, _ := r.Detector.About(m.Peer)
		return m.Peer != r.Self.Peer && slices.Contains(about.Failed, info.ID)
	})
}

// serve starts the land of a region whose group is open.
func (r *regions) serve(info nodemsg.Region, g *replica.Group) (*actor.Land, error) {
	land, err := r.readLand(info)
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	r.Logger.Debug("region loaded", "region", info.ID, "cell", info.Cell.String(), "edits", land.Edits())
	base, o := r.landOptions()
	l := actor.NewLand(base, o, info, g, land, r.failedLately(info))
	r.bases.Pinned(actor.BasesOf(land.Pins()))
	r.mu.Lock()
	r.mu.lands[info.ID] = l
	r.mu.Unlock()
	r.metrics.loaded.Inc()
	if !r.Tasks.Start(func(ctx context.Context) { r.runLand(ctx, l) }) {
		stopped, cancel := context.WithCancel(context.Background())
		cancel()
		l.Run(stopped) // dismisses who has subscribed meanwhile, and closes the group
		r.unloaded(l)
		return nil, background.ErrStopping
	}
	return l, nil
}

// runLand runs a loaded region until it ends, regularly or by a fault.
func (r *regions) runLand(ctx context.Context, l *actor.Land) {
	ended := l.Run(ctx)
	if ended.Hibernated {
		r.metrics.hibernated.Inc()
	}
	if ended.Fault != nil {
		ended = r.isolate(ctx, r.GroupOf(l), ended)
	}
	if ended.Removed && !ended.Discarded {
		if err := r.Delete(ended.Info); err != nil {
			r.Logger.Error("rows of a region that this node left stay on disk", "error", err)
		}
	}
	if ended.Then != nil {
		ended.Then()
	}
	r.unloaded(l)
}

// unloaded removes a land that has ended from the list, and only then finishes it, so that callers waiting for that can
// load the region again.
func (r *regions) unloaded(l *actor.Land) {
	r.mu.Lock()
	delete(r.mu.lands, l.ID())
	r.mu.Unlock()
	r.metrics.loaded.Dec()
	l.Finish()
}

// handOffTime bounds how long an isolated region stays open so that another member can take over. Without the handover,
// an election would take longer.
const handOffTime = time.Second

// isolate ends a region, or the catalog, that has failed here. Another member takes over, the gateways are sent its
// name, and the group is closed. It runs in the actor's goroutine, after Run. It returns how the actor has ended in the
// end: a command that was still queued may have removed it.
func (r *regions) isolate(ctx context.Context, g placement.Group, ended actor.Ended) actor.Ended {
	info, f := ended.Info, ended.Fault
	r.executor.Fail(info, f)
	if next := r.supervisor.Successor(g); ended.Led && next != "" {
		ctx, cancel := context.WithTimeout(ctx, handOffTime)
		if err := r.supervisor.Transfer(ctx, g, next); err != nil {
			r.Logger.Warn("leadership of an isolated region not handed over", "region", info.ID, "peer", next, "error", err)
		}
		cancel()
	}
	return g.Actor.EndIsolated("the region failed on this node")
}

// membership returns the region that makes this node a member: from the stored row, or from the catalog.
func (r *regions) membership(ctx context.Context, id uint64) (nodemsg.Region, error) {
	info, err := r.Registry.Region(id)
	if !errors.Is(err, actor.ErrNotHere) {
		return info, err
	}
	info, err = r.Directory.ByID(ctx, id)
	if errors.Is(err, directory.ErrNotFounded) {
		return nodemsg.Region{}, actor.ErrNotHere
	}
	if err != nil {
		return nodemsg.Region{}, err
	}
	if !actor.HasMember(info, r.Self.Peer) {
		return nodemsg.Region{}, actor.ErrNotHere
	}
	return info, nil
}

// openGroup opens the region's group. If it was not founded here and this node is one of its first members, it is
// founded. Later members are invited. But a first member that was away until the members had changed is neither founder
// nor learner, so nobody invites it: it joins as the replica that the catalog has.
func (r *regions) openGroup(ctx context.Context, info nodemsg.Region) (*replica.Group, error) {
	has, err := r.Replicas.Has(info.ID)
	if err != nil {
		return nil, fmt.Errorf("find region %d: %w", info.ID, err)
	}
	if !has && info.Epoch != actor.FirstEpoch {
		return r.joinLate(ctx, info)
	}
	founding := replica.Founding{Group: info.ID, Tables: landTables(info.ID)}
	for _, m := range info.Members {
		founding.Members = append(founding.Members, m.Peer)
	}
	var g *replica.Group
	if has {
		g, err = r.Replicas.Open(ctx, founding)
	} else {
		err = r.create(info.ID, uint64(slices.Index(founding.Members, r.Self.Peer)+1), func() (err error) {
			if err = r.Registry.Put(info); err == nil {
				g, err = r.Replicas.Open(ctx, founding)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("open region %d: %w", info.ID, err)
	}
	return g, nil
}

// joinLate joins a region of which nothing is stored here, as the replica that the catalog has. A child of a split
// region begins with the parent's land instead, if this node has that.
func (r *regions) joinLate(ctx context.Context, info nodemsg.Region) (*replica.Group, error) {
	if parent, awaited, err := r.splitter.Awaited(ctx, info); err != nil || awaited {
		if err == nil {
			_, err = r.Open(ctx, parent.ID, parent.Cell) // so that it catches up
		}
		return nil, cmp.Or(err, fmt.Errorf("join region %d: the split of region %d has not arrived here yet: %w", info.ID, parent.ID, actor.ErrNotHere))
	}
	join := replica.JoinInfo{Group: info.ID, Tables: landTables(info.ID)}
	for _, m := range info.Members {
		join.Members = append(join.Members, replica.Member{ID: m.Replica, Peer: m.Peer, Learner: m.Learner})
		if m.Peer == r.Self.Peer {
			join.ID = m.Replica
		}
	}
	if join.ID == 0 {
		return nil, fmt.Errorf("region %d no longer has its first members: %w", info.ID, actor.ErrNotHere)
	}
	var g *replica.Group
	err := r.create(info.ID, join.ID, func() (err error) {
		if err = r.Registry.Put(info); err == nil {
			g, err = r.Replicas.Join(ctx, join)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("join region %d: %w", info.ID, err)
	}
	return g, nil
}

// landTables names the rows that a snapshot of the region carries.
func landTables(id uint64) []replica.TablePrefix {
	return []replica.TablePrefix{{Table: world.LandTable, Prefix: directory.Key(id)}}
}

// helloKey identifies what a gateway asks for.
func helloKey(hello nodemsg.Hello) string { return fmt.Sprintf("%d %v", hello.Region, hello.Cell) }

// subscribe subscribes the gateway of a node to a region that is led here. The region is loaded first if necessary.
func (r *regions) subscribe(ctx context.Context, peer string, hello nodemsg.Hello) (*actor.Subscription, error) {
	reading := hello.Reading
	hello.Reading = false // not part of the key: a region is loaded once for all callers
	for {
		l, err := r.loaded(ctx, hello)
		if err != nil {
			return nil, err
		}
		if s := l.Subscribe(peer, reading); s != nil {
			r.vacater.Watched(hello.Region)
			return s, nil
		}
		select { // it is being unloaded: wait, then load it again
		case <-l.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
