// Package split changes which regions there are. A Splitter splits regions: the children of a region that is split
// begin on this node, and are elected (docs/adr/0031). An AutoSplit has regions split that have too much load, and
// quiet halves merged (docs/adr/0032). A Vacater gives up regions on which nothing was ever built, and which nobody has
// watched for long (docs/adr/0097).
package split

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// electEvery is how often the node that led the parent stands for election in a child, and electTime for how long.
	// The other members take part when they have applied the split, too.
	electEvery = 50 * time.Millisecond
	electTime  = 5 * time.Second
	// storeAgain is the pause after the children could not be stored. The parent applies nothing meanwhile.
	storeAgain = 500 * time.Millisecond
)

// Splitter splits regions on one node.
type Splitter struct {
	integrity.Node
	// Follow opens a link to the region of a chunk, wherever it is led.
	Follow func(ctx context.Context, pos grid.ChunkPos) (transport.Link, nodemsg.Region, error)
	// Create creates a replica; see integrity.Incarnations.Create.
	Create func(group, id uint64, create func() error) error
	Pieces transport.Pieces
	Lands  func() []*actor.Land // the loaded regions
	// Passed returns the number of the last rollback that is complete in a region, or does not concern it; or an error
	// if one is left there.
	Passed      func(ctx context.Context, l *actor.Land) (int64, error)
	AskStatuses integrity.AskStatuses
	Metrics     *Metrics
	Askers      *transport.PeerLimits // of splits and merges, by other nodes

	proposed  sync.Map // regions whose split this node has proposed: id → time.Time
	merging   sync.Map // regions whose children this node is merging: id → nil
	failed    sync.Map // regions whose children this node could not merge, the last time: id → failedMerge
	resolving sync.Map // children whose merge is being resolved: id → nil
}

// Split splits the region of a cell between the halves of the cell, wherever it is led, because an operator wants it.
func (s *Splitter) Split(ctx context.Context, cell grid.Cell) error {
	err := s.split(ctx, cell)
	s.Metrics.CountSplit("manual", err)
	return err
}

// split asks the next leader if one stops or moves meanwhile.
func (s *Splitter) split(ctx context.Context, cell grid.Cell) error {
	return retry(ctx, func(again bool) error {
		area := cell.Area()
		_, err := s.Directory.FromCatalog(ctx, grid.ChunkPos{X: area.MinX, Z: area.MinZ})
		if errors.Is(err, directory.ErrNotFounded) { // find would found it
			return fmt.Errorf("split %v: there is no such region", cell)
		}
		if err != nil {
			return fmt.Errorf("split %v: %w", cell, err)
		}
		info, err := s.find(ctx, cell)
		if err != nil {
			return err
		}
		switch n := info.Cell.Label.Len(); {
		case n > cell.Label.Len() && again:
			return nil // the leader before has done it
		case n > cell.Label.Len():
			return fmt.Errorf("split %v: %w: its parts are regions of their own, such as %v", cell, actor.ErrSplit, info.Cell)
		case n < cell.Label.Len():
			return fmt.Errorf("split %v: it is part of the region %v: split that first", cell, info.Cell)
		case info.Leader == s.Self.Peer:
			return s.SplitHere(ctx, info.ID)
		}
		answer, err := s.Questions.Ask(ctx, info.Leader, nodemsg.Question{Split: &nodemsg.Release{Region: info.ID}})
		return unreached(answer, err)
	})
}

const (
	// retryTime is how long a split or a merge is begun again because the leader has stopped or moved, and retryPause
	// the pause before.
	retryTime  = 10 * time.Second
	retryPause = 200 * time.Millisecond
)

// retry calls do until it succeeds, or fails for another reason than that the region is led elsewhere. Again is set
// from the second call on.
func retry(ctx context.Context, do func(again bool) error) error {
	for began, again := time.Now(), false; ; again = true {
		err := do(again)
		if err == nil || !ledElsewhere(err) || time.Since(began) > retryTime {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
		}
	}
}

// errBusy is returned while a node merges the children of the region already.
var errBusy = errors.New("it is being merged already")

// ledElsewhere reports whether the error is that a region is led elsewhere, by now, or that its leader is busy. Of
// other nodes it is only a text.
func ledElsewhere(err error) bool {
	for _, passing := range []error{actor.ErrNotHere, errBusy} {
		if errors.Is(err, passing) || strings.Contains(err.Error(), passing.Error()) {
			return true
		}
	}
	return false
}

// unreached makes the error of a question that had no answer one that the region is led elsewhere: another member leads
// it soon.
func unreached(answer nodemsg.Answer, err error) error {
	if err != nil && answer.Error == "" {
		return fmt.Errorf("%w: %w", actor.ErrNotHere, err)
	}
	return err
}

// find returns the region of a cell's first chunk, with its leader. A route that is out of date costs an attempt.
func (s *Splitter) find(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	area := cell.Area()
	var failed error
	for range 3 {
		link, info, err := s.Follow(ctx, grid.ChunkPos{X: area.MinX, Z: area.MinZ})
		if err == nil {
			link.Close() //nolint:errcheck // it was opened only to find the leader
			return info, nil
		}
		failed = err
	}
	return nodemsg.Region{}, failed
}

// A node may have the regions that another one leads split or merged splitBurst times at once, and then once every
// splitPause: more than operators need, and too little to divide the world into single chunks before quiet halves are
// merged again, or to merge all that was split because of its load.
const (
	splitPause = 10 * time.Second
	splitBurst = 30
)

var errTooOften = fmt.Errorf("a node may have %d regions split or merged at once, then one every %v: wait, or enter the command on the node that leads it",
	splitBurst, splitPause)

// NewAskers returns the limits for Askers.
func NewAskers() *transport.PeerLimits {
	return transport.NewPeerLimits(rate.Every(splitPause), splitBurst)
}

// SplitFor is SplitHere because another node asks for it.
func (s *Splitter) SplitFor(ctx context.Context, peer string, id uint64) error {
	if l := s.Regions.Loaded(id); l != nil && l.Raft().Status().Self && !s.Askers.Allow(peer) {
		return fmt.Errorf("split %v: %w", l.Cell(), errTooOften)
	}
	return s.SplitHere(ctx, id)
}

// SplitHere splits a region that this node leads. A member that is down applies it later.
func (s *Splitter) SplitHere(ctx context.Context, id uint64) error {
	l := s.Regions.Loaded(id)
	if l == nil {
		return fmt.Errorf("split region %d: %w", id, actor.ErrNotHere)
	}
	s.proposed.Store(id, time.Now())
	defer s.proposed.Delete(id)
	if err := l.ProposeSplit(ctx); err != nil {
		return fmt.Errorf("split %v: %w", l.Cell(), err)
	}
	return nil
}

// Begin has the children of a split begin on this node, durably, and then calls done. If this node leads the parent, it
// stands for election in both children.
func (s *Splitter) Begin(of actor.Split, done func(error)) {
	start := time.Now()
	if proposed, here := s.proposed.Load(of.Region.ID); here {
		start = proposed.(time.Time) //nolint:forcetypeassert // nothing else is in it
	}
	s.Tasks.Start(func(ctx context.Context) {
		err := s.begin(ctx, of)
		if ctx.Err() != nil {
			return // the parent ends, too, and applies the entry again at the next start
		}
		done(err)
		if err != nil || !of.Led {
			return
		}
		var both sync.WaitGroup
		for _, child := range world.ChildrenOf(of.Region) {
			both.Go(func() {
				if err := s.elect(ctx, child, of.Crowd); err != nil {
					s.Logger.Warn("child of a split region not led here", "region", child.ID, "cell", child.Cell.String(), "error", err)
				}
			})
		}
		both.Wait()
		since(s.Metrics.splitSeconds, start)
	})
}

func (s *Splitter) begin(ctx context.Context, of actor.Split) error {
	for i, info := range world.ChildrenOf(of.Region) {
		row, err := nodemsg.EncodeRegion(info)
		if err != nil {
			return fmt.Errorf("split region %d: %w", of.Region.ID, err)
		}
		rows := append(of.Children[i].Rows, kv.Write{Table: directory.Table, Key: directory.Key(info.ID), Value: row})
		for {
			err := s.Create(info.ID, ownID(of.Forks[i], s.Self.Peer), func() error { return s.Replicas.Fork(of.Forks[i], rows...) })
			if err == nil || errors.Is(err, integrity.ErrForgotten) { // then the other members replace it
				break
			}
			if !errors.Is(err, replica.ErrStorage) && !errors.Is(err, integrity.ErrUnlisted) {
				return fmt.Errorf("split region %d: %w", of.Region.ID, err)
			}
			of.Stalled()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(storeAgain):
			}
		}
		if err := s.Registry.Reload(info.ID); err != nil {
			return err
		}
	}
	return nil
}

// ownID returns the replica id of the peer; 0 if it is not a member.
func ownID(f replica.Fork, peer string) uint64 {
	for _, m := range f.Members {
		if m.Peer == peer {
			return m.ID
		}
	}
	return 0
}

// elect opens a child and stands for election until the child has a leader. The child inherits its part of the crowd.
func (s *Splitter) elect(ctx context.Context, child nodemsg.Region, crowd []nodemsg.Body) error {
	ctx, cancel := context.WithTimeout(ctx, electTime)
	defer cancel()
	for {
		l, err := s.Regions.Open(ctx, child.ID, child.Cell)
		if err == nil {
			if len(crowd) > 0 {
				l.ShowAvatars(crowd)
				crowd = nil
			}
			if l.Raft().Status().Leader != "" {
				return nil
			}
			l.Raft().Campaign()
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(electEvery):
		}
	}
}

// Awaited returns the parent of a region that this node is to join, if this node is a member of the parent and its copy
// of that is not split into this region yet. It must apply the split first: if all members joined without the land, it
// would be lost. The error is actor.ErrNotHere if the region is none that the catalog lists: a copy of its parent that
// was merged since says nothing.
func (s *Splitter) Awaited(ctx context.Context, child nodemsg.Region) (parent nodemsg.Region, awaited bool, err error) {
	if child.Cell.Label.Len() <= grid.FoundingLabel {
		return nodemsg.Region{}, false, nil
	}
	parent, err = s.Directory.Exactly(ctx, child.Cell.Parent())
	if err == nil && !isChild(parent, child.ID) || errors.Is(err, directory.ErrNotFounded) {
		err = fmt.Errorf("region %d is none of the parts of %v: %w", child.ID, child.Cell.Parent(), actor.ErrNotHere)
	}
	if err != nil {
		return nodemsg.Region{}, false, err
	}
	has, err := s.Replicas.Has(parent.ID)
	if err != nil || !has {
		return nodemsg.Region{}, false, err
	}
	structure, err := world.StructureIn(s.Storage.Get, parent.ID)
	parent.Split = structure.Split
	return parent, err == nil && !isChild(parent, child.ID), err
}

// isChild reports whether the region with the id is a child of the region.
func isChild(parent nodemsg.Region, id uint64) bool {
	children := world.ChildrenOf(parent)
	return parent.Split != 0 && (children[0].ID == id || children[1].ID == id)
}
