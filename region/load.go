package region

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/mods"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/region/split"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// opener opens, runs and closes the regions and the catalog on this node. It is the last part to be made: what happens
// in a region concerns most of the others.
type opener struct {
	integrity.Node
	*regions

	options      openerOptions
	supervisor   *placement.Supervisor
	facts        *integrity.Facts
	executor     *integrity.Executor
	incarnations incarnations
	bases        *integrity.Bases
	disk         *integrity.Disk
	publisher    *placement.Publisher
	hibernation  *hibernation
	splitter     *split.Splitter
	autoSplit    *split.AutoSplit
	vacater      *split.Vacater
	policy       *policysync.Copy
	runner       *mods.Runner
	actors       *actor.Metrics

	joining background.Shared[*actor.Land] // joins by invitation
	probes  probes
}

// openerOptions are what of a Host's options its regions need.
type openerOptions struct {
	world  string // its id
	proofs world.Proofs
	now    func() time.Time // of the world
	say    func(gateway string, line nodemsg.PrivateLine)
}

// probes are for tests: cpu measures how long a piece of a tick's work keeps a core busy, land sees the entries of
// regions.
type probes struct {
	cpu  func(work func()) time.Duration
	land func(tx actor.Tx, entry []byte)
}

// begin looks at what is stored here, and opens the catalog if it is. Damaged are the regions of which rows are.
func (o *opener) begin(ctx context.Context, damaged map[uint64]string) (*actor.Catalog, error) {
	if err := o.executor.NoteDamaged(damaged); err != nil {
		return nil, err
	}
	if known := o.incarnations.known; known != nil {
		known.OnOutdated(o.executor.Abandon)
		if err := o.executor.NoteRolledBack(known.Outdated()); err != nil {
			return nil, err
		}
	}
	here, err := o.Replicas.Has(world.CatalogID)
	if err != nil {
		return nil, fmt.Errorf("find the catalog: %w", err)
	}
	if !here || o.facts.Err(world.CatalogID) != nil {
		return nil, nil //nolint:nilnil // it is not stored here, or not to be used
	}
	c, err := o.openCatalog(ctx)
	if err != nil {
		return nil, err
	}
	o.setCatalog(c)
	return c, nil
}

// run opens what it is asked for until ctx ends.
func (o *opener) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-o.openings:
			started := o.Tasks.Start(func(ctx context.Context) {
				ctx, cancel := context.WithTimeout(ctx, background.AttemptTime)
				defer cancel()
				if w.catalog {
					w.answer <- openResult{err: o.openCatalogAgain(ctx)}
					return
				}
				l, err := o.load(ctx, w.region)
				w.answer <- openResult{l, err}
			})
			if !started {
				w.answer <- openResult{err: background.ErrStopping}
			}
		}
	}
}

// load opens the region's group and starts its land. A region that was never here is opened only if the catalog's log
// names this node a member (docs/adr/0004).
func (o *opener) load(ctx context.Context, hello nodemsg.Hello) (*actor.Land, error) {
	if l := o.Loaded(hello.Region); l != nil {
		return l, nil // since it was asked for
	}
	info, err := o.Membership(ctx, hello.Region)
	if err != nil {
		return nil, err
	}
	if info.Cell != hello.Cell {
		return nil, actor.ErrNotHere
	}
	if err := o.executor.Admit(ctx, info); err != nil {
		return nil, fmt.Errorf("load region %d: %w", info.ID, err)
	}
	g, err := o.openGroup(ctx, info)
	if err == nil {
		var l *actor.Land
		if l, err = o.serve(info, g); err == nil {
			o.facts.Opened(info.ID)
			if err := o.facts.Err(info.ID); err != nil { // it turned out since this began
				l.Close(err.Error())
			}
			return l, nil
		}
	}
	o.executor.NotOpened(info, err)
	return nil, err
}

// readLand reads the region's land from storage.
func (o *opener) readLand(info nodemsg.Region) (*world.Land, error) {
	land := world.NewLand(info.ID, info.Cell, o.Height)
	var err error
	if caught := actor.Catch(func() { err = o.Storage.Scan(world.LandTable, land.Prefix(), land.Load) }); caught != nil {
		err = caught
	}
	if err != nil {
		return nil, fmt.Errorf("load region %d: %w", info.ID, err)
	}
	return land, nil
}

// actorOptions are the options of all actors.
func (o *opener) actorOptions(changed func(nodemsg.Region)) actor.Options {
	return actor.Options{
		Self: o.Self, Logger: o.Logger, Metrics: o.actors, Start: o.Tasks.Start, Describe: o.Questions.Describe, Changed: changed,
	}
}

func (o *opener) landOptions() (actor.Options, actor.LandOptions) {
	return o.actorOptions(o.publisher.Changed), actor.LandOptions{
		Hash: o.bases.Hash, Hibernate: o.hibernation.hibernate, StayAwake: o.autoSplit.StayAwake, Reload: o.readLand, ReadParts: o.disk.ReadParts, FetchParts: o.disk.FetchParts,
		Split: o.splitter.Begin, Merged: o.splitter.DeleteMerged, Resolve: o.resolve, Pinned: o.bases.Pinned, RefuseEdit: o.policy.RefuseEdit,
		Orders: func() actor.Orders { return o.policy.Orders() }, RunScript: o.runner.Submit, Say: o.options.say, Proofs: o.options.proofs, Now: o.options.now, CPU: o.probes.cpu, Probe: o.probes.land,
	}
}

// resolve finds out what has become of a region that is frozen, or was given up.
func (o *opener) resolve(l *actor.Land, structure world.Structure, leads bool) {
	if structure.Vacated != 0 {
		o.vacater.Resolve(l, leads)
		return
	}
	o.splitter.Resolve(l, structure, leads)
}

// failedLately reports whether a region failed lately here, or on another member, as that said last.
func (o *opener) failedLately(info nodemsg.Region) bool {
	return o.facts.FailedLately(info.ID) || slices.ContainsFunc(info.Members, func(m nodemsg.Member) bool {
		about, _ := o.Detector.About(m.Peer)
		return m.Peer != o.Self.Peer && slices.Contains(about.Failed, info.ID)
	})
}

// serve starts the land of a region whose group is open.
func (o *opener) serve(info nodemsg.Region, g *replica.Group) (*actor.Land, error) {
	land, err := o.readLand(info)
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	o.Logger.Debug("region loaded", "region", info.ID, "cell", info.Cell.String(), "edits", land.Edits())
	base, options := o.landOptions()
	l := actor.NewLand(base, options, info, g, land, o.failedLately(info))
	o.bases.Pinned(actor.BasesOf(land.Pins()))
	o.add(l)
	if !o.Tasks.Start(func(ctx context.Context) { o.runLand(ctx, l) }) {
		stopped, cancel := context.WithCancel(context.Background())
		cancel()
		l.Run(stopped) // dismisses who has subscribed meanwhile, and closes the group
		o.remove(l)
		return nil, background.ErrStopping
	}
	return l, nil
}

// runLand runs a loaded region until it ends, regularly or by a fault.
func (o *opener) runLand(ctx context.Context, l *actor.Land) {
	ended := l.Run(ctx)
	if ended.Hibernated {
		o.metrics.hibernated.Inc()
	}
	if ended.Fault != nil {
		ended = o.isolate(ctx, placement.GroupOf(l), ended)
	}
	if ended.Removed && !ended.Discarded {
		if err := o.Delete(ended.Info); err != nil {
			o.Logger.Error("rows of a region that this node left stay on disk", "error", err)
		}
	}
	if ended.Then != nil {
		ended.Then()
	}
	o.remove(l)
}

// handOffTime bounds how long an isolated region stays open so that another member can take over. Without the handover,
// an election would take longer.
const handOffTime = time.Second

// isolate ends a region, or the catalog, that has failed here. Another member takes over, the gateways are sent its
// name, and the group is closed. It runs in the actor's goroutine, after Run. It returns how the actor has ended in the
// end: a command that was still queued may have removed it.
func (o *opener) isolate(ctx context.Context, g placement.Group, ended actor.Ended) actor.Ended {
	info, f := ended.Info, ended.Fault
	o.executor.Fail(info, f)
	if next := o.supervisor.Successor(g); ended.Led && next != "" {
		ctx, cancel := context.WithTimeout(ctx, handOffTime)
		if err := o.supervisor.Transfer(ctx, g, next); err != nil {
			o.Logger.Warn("leadership of an isolated region not handed over", "region", info.ID, "peer", next, "error", err)
		}
		cancel()
	}
	return ended.DismissAll("the region failed on this node")
}

// openGroup opens the region's group. If it was not founded here and this node is one of its first members, it is
// founded. Later members are invited. But a first member that was away until the members had changed is neither founder
// nor learner, so nobody invites it: it joins as the replica that the catalog has.
func (o *opener) openGroup(ctx context.Context, info nodemsg.Region) (*replica.Group, error) {
	has, err := o.Replicas.Has(info.ID)
	if err != nil {
		return nil, fmt.Errorf("find region %d: %w", info.ID, err)
	}
	if !has && info.Epoch != actor.FirstEpoch {
		return o.joinLate(ctx, info)
	}
	founding := replica.Founding{Group: info.ID, Tables: landTables(info.ID)}
	for _, m := range info.Members {
		founding.Members = append(founding.Members, m.Peer)
	}
	var g *replica.Group
	if has {
		g, err = o.Replicas.Open(ctx, founding)
	} else {
		err = o.incarnations.create(info.ID, uint64(slices.Index(founding.Members, o.Self.Peer)+1), func() (err error) {
			if err = o.Registry.Put(info); err == nil {
				g, err = o.Replicas.Open(ctx, founding)
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
func (o *opener) joinLate(ctx context.Context, info nodemsg.Region) (*replica.Group, error) {
	if parent, awaited, err := o.splitter.Awaited(ctx, info); err != nil || awaited {
		if err == nil {
			_, err = o.Open(ctx, parent.ID, parent.Cell) // so that it catches up
		}
		return nil, cmp.Or(err, fmt.Errorf("join region %d: the split of region %d has not arrived here yet: %w", info.ID, parent.ID, actor.ErrNotHere))
	}
	join := replica.JoinInfo{Group: info.ID, Tables: landTables(info.ID)}
	for _, m := range info.Members {
		join.Members = append(join.Members, replica.Member{ID: m.Replica, Peer: m.Peer, Learner: m.Learner})
		if m.Peer == o.Self.Peer {
			join.ID = m.Replica
		}
	}
	if join.ID == 0 {
		return nil, fmt.Errorf("region %d no longer has its first members: %w", info.ID, actor.ErrNotHere)
	}
	var g *replica.Group
	err := o.incarnations.create(info.ID, join.ID, func() (err error) {
		if err = o.Registry.Put(info); err == nil {
			g, err = o.Replicas.Join(ctx, join)
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
