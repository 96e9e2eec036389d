package split

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// mergeTime bounds an attempt to merge, and stepTime a question of it, or its end.
	mergeTime = 10 * time.Second
	stepTime  = 3 * time.Second
	// maxMerge bounds the land of both children, packed: it must fit into one log entry.
	maxMerge = 1 << 20 * 9 / 10
	// mergePause is how long after an attempt that failed no other one is made because another node asks for it:
	// players cannot edit the children during an attempt.
	mergePause = 30 * time.Second
)

// Merge merges the children of a cell's region again, because an operator wants it.
func (s *Splitter) Merge(ctx context.Context, cell grid.Cell) error {
	return s.MergeBecause(ctx, cell, "manual")
}

// MergeBecause is Merge for another reason, which the metrics show.
func (s *Splitter) MergeBecause(ctx context.Context, cell grid.Cell, trigger string) error {
	err := s.merge(ctx, cell)
	s.Metrics.merges.WithLabelValues(trigger, result(err)).Inc()
	return err
}

// merge begins again if a leader stops or moves meanwhile.
func (s *Splitter) merge(ctx context.Context, cell grid.Cell) error {
	return retry(ctx, func(again bool) error {
		parent, err := s.Directory.Exactly(ctx, cell)
		if err == nil && parent.Split == 0 { // the catalog may be a little behind
			var now nodemsg.Region
			now, err = s.askStructure(ctx, parent, 0)
			parent.Split = now.Split
		}
		switch {
		case errors.Is(err, directory.ErrNotFounded):
			return fmt.Errorf("merge %v: there is no such region", cell)
		case err != nil:
			return fmt.Errorf("merge %v: %w", cell, err)
		case parent.Split == 0 && again:
			return nil
		case parent.Split == 0:
			return fmt.Errorf("merge %v: it is not split", cell)
		}
		_, err = s.askMembers(ctx, parent, nodemsg.Question{Merge: &nodemsg.Release{Region: parent.ID}},
			func() (nodemsg.Answer, error) { return nodemsg.Answer{}, s.MergeHere(ctx, s.Self.Peer, parent.ID) })
		return err
	})
}

// askMembers asks the region's members, until one of them leads it and answers. Here answers for this node. If a member
// refuses for another reason than that it does not lead the region, that is the error.
func (s *Splitter) askMembers(ctx context.Context, info nodemsg.Region, q nodemsg.Question, here func() (nodemsg.Answer, error)) (nodemsg.Answer, error) {
	var elsewhere, refused error
	for _, m := range info.Members {
		var answer nodemsg.Answer
		var err error
		if m.Peer == s.Self.Peer {
			answer, err = here()
		} else {
			answer, err = s.Questions.Ask(ctx, m.Peer, q)
			err = unreached(answer, err)
		}
		switch {
		case err == nil:
			return answer, nil
		case ledElsewhere(err):
			elsewhere = errors.Join(elsewhere, err)
		default:
			refused = errors.Join(refused, err)
		}
	}
	return nodemsg.Answer{}, cmp.Or(refused, elsewhere)
}

// failedMerge is an attempt to merge that was abandoned.
type failedMerge struct {
	at  time.Time
	why error
}

// MergeHere merges the children of a region of which this node is a member. The peer asks for it: another node than
// this one must not ask too often, nor soon after an attempt that failed.
func (s *Splitter) MergeHere(ctx context.Context, peer string, id uint64) error {
	if value, failed := s.failed.Load(id); failed && peer != s.Self.Peer {
		last := value.(failedMerge) //nolint:forcetypeassert // nothing else is in it
		if again := mergePause - time.Since(last.at); again > 0 {
			return fmt.Errorf("merge region %d: it has just failed: %w; try again in %v, or enter the command on the node that leads it", id, last.why, again.Round(time.Second))
		}
	}
	if _, busy := s.merging.LoadOrStore(id, nil); busy {
		return fmt.Errorf("merge region %d: %w", id, errBusy)
	}
	defer s.merging.Delete(id)
	ctx, cancel := context.WithTimeout(ctx, mergeTime)
	defer cancel()
	l, err := s.Lead(ctx, id)
	if err != nil {
		return err
	}
	parent, structure, err := l.Structure(ctx)
	if err == nil && structure.Split == 0 {
		err = errors.New("it is not split")
	}
	if err == nil && peer != s.Self.Peer && !s.Askers.Allow(peer) {
		err = errTooOften
	}
	if err == nil {
		s.failed.Delete(id)
		err = s.attempt(ctx, l, parent, structure.Attempt)
	}
	if err != nil {
		return fmt.Errorf("merge %v: %w", l.Cell(), err)
	}
	return nil
}

// attempt freezes both children, and merges them. If that fails, it abandons the attempt, so that they thaw.
func (s *Splitter) attempt(ctx context.Context, l *actor.Land, parent nodemsg.Region, attempt uint64) error {
	children := world.ChildrenOf(parent)
	var leaders [2]string
	for half, child := range children {
		info, err := s.find(ctx, child.Cell)
		if err == nil && info.ID != child.ID {
			err = fmt.Errorf("%v is split itself: merge that first", child.Cell)
		}
		if err == nil {
			err = s.confirmLeader(ctx, child, info.Leader)
		}
		if err != nil {
			return err
		}
		leaders[half] = info.Leader
	}
	start := time.Now()
	defer func() {
		for half, child := range children {
			s.inform(ctx, child, leaders[half])
		}
	}()
	var rows [2][]byte
	var freezing errgroup.Group
	for half, child := range children {
		freezing.Go(func() error {
			var err error
			rows[half], err = s.freezeOn(ctx, leaders[half], nodemsg.Freeze{Group: child.ID, Attempt: attempt})
			return err
		})
	}
	err := freezing.Wait()
	if size := len(rows[0]) + len(rows[1]); err == nil && size > maxMerge {
		err = fmt.Errorf("too much was built there: %d bytes, at most %d can be merged", size, maxMerge)
	}
	if err == nil {
		err = checkOrders(rows)
	}
	if err == nil {
		err = l.ProposeMerge(ctx, attempt, rows)
	}
	if err != nil {
		if !ledElsewhere(err) {
			s.failed.Store(parent.ID, failedMerge{time.Now(), err})
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTime)
		defer cancel()
		if abandoned := l.ProposeAbandon(ctx, attempt); abandoned != nil {
			s.Logger.Warn("merge not abandoned; the regions thaw when another node has done so", "region", parent.ID, "error", abandoned)
		}
		return err
	}
	since(s.Metrics.mergeSeconds, start)
	return nil
}

// checkOrders returns an error unless the same orders have arrived, and the same rollbacks are complete, in both
// halves. Otherwise the merged region would undo what was built since in one of them.
func checkOrders(rows [2][]byte) error {
	lower, err := world.OrdersOf(rows[0])
	if err != nil {
		return err
	}
	upper, err := world.OrdersOf(rows[1])
	if err == nil && !bytes.Equal(lower, upper) {
		err = errors.New("only one half knows of the last rollback or claim: try again later")
	}
	return err
}

// inform has the leader of a child find out at once that the attempt is over. Otherwise it would ask within a second,
// while edits wait.
func (s *Splitter) inform(ctx context.Context, child nodemsg.Region, leader string) {
	if leader == s.Self.Peer {
		s.ResolveHere(child.ID)
		return
	}
	s.Tasks.Start(func(context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTime)
		defer cancel()
		if _, err := s.Questions.Ask(ctx, leader, nodemsg.Question{Resolve: &nodemsg.Release{Region: child.ID}}); err != nil {
			s.Logger.Debug("leader of a frozen region not informed", "region", child.ID, "peer", leader, "error", err)
		}
	})
}

// ResolveHere has a child that is frozen here find out what has become of the merge.
func (s *Splitter) ResolveHere(id uint64) {
	if l := s.Regions.Loaded(id); l != nil {
		l.ResolveFreeze()
	}
}

// freezeOn freezes a child on the node that leads it, which may be this one.
func (s *Splitter) freezeOn(ctx context.Context, leader string, f nodemsg.Freeze) (rows []byte, err error) {
	if leader == s.Self.Peer {
		l := s.Regions.Loaded(f.Group)
		if l == nil {
			return nil, actor.ErrNotHere
		}
		return s.freeze(ctx, l, leader, f.Attempt)
	}
	got, err := s.Pieces.Fetch(ctx, leader, nodemsg.Fetch{Freeze: &f})
	return got.Data, err
}

// FreezeHere freezes a child that this node leads, because a member of its parent merges it. The parent must have come
// to that attempt: a child that is frozen for one to come would not thaw.
func (s *Splitter) FreezeHere(ctx context.Context, peer string, f nodemsg.Freeze) nodemsg.Fetched {
	l := s.Regions.Loaded(f.Group)
	if l == nil {
		return nodemsg.Fetched{Error: actor.ErrNotHere.Error()}
	}
	rows, err := s.freeze(ctx, l, peer, f.Attempt)
	if err != nil {
		return nodemsg.Fetched{Error: err.Error()}
	}
	return nodemsg.Fetched{Data: rows}
}

func (s *Splitter) freeze(ctx context.Context, l *actor.Land, peer string, attempt uint64) ([]byte, error) {
	structure, err := l.StructureHere(ctx)
	if err == nil && structure.Parent == 0 {
		err = fmt.Errorf("region %d is no part of another one", l.ID())
	}
	if err != nil {
		return nil, err
	}
	listed, err := s.Directory.Exactly(ctx, l.Cell().Parent())
	switch {
	case err != nil:
		return nil, err
	case listed.ID != structure.Parent:
		return nil, errBehind
	case !actor.HasMember(listed, peer):
		return nil, fmt.Errorf("%s is not a member of region %d, of which this is a part", peer, listed.ID)
	}
	if s.await(ctx, listed, func(of statement) bool { return of.split == structure.ParentSplit && of.attempt >= attempt }) < 0 {
		return nil, fmt.Errorf("most members of region %d do not know of this attempt to merge", listed.ID)
	}
	passed, err := s.Passed(ctx, l)
	if err != nil {
		return nil, err
	}
	return l.Freeze(ctx, attempt, passed)
}

// StructureHere returns a region that this node leads, or comes to lead, and the number of its attempt to merge its
// children; or what the copy here has of it: the id of the region is 0 if there is none.
func (s *Splitter) StructureHere(ctx context.Context, q nodemsg.StructureRequest) (nodemsg.Region, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	if q.Copy {
		info, attempt := s.copyHere(ctx, q.Region)
		return info, attempt, nil
	}
	l, err := s.Lead(ctx, q.Region)
	if err != nil {
		return nodemsg.Region{}, 0, err
	}
	info, structure, err := l.Structure(ctx)
	if _, busy := s.merging.Load(q.Region); err != nil || busy || q.Abandon <= structure.Attempt {
		return info, structure.Attempt, err
	}
	// One attempt at a time: a number that nobody has reached must not end all attempts to come.
	if err := l.ProposeAbandon(ctx, structure.Attempt); err != nil {
		return nodemsg.Region{}, 0, err
	}
	info, structure, err = l.Structure(ctx)
	return info, structure.Attempt, err
}

// Resolve finds out what has become of the merge for which a child is frozen here. If the child was merged, its copy
// here is deleted; if the attempt was abandoned, and this node leads the child, it is thawed.
func (s *Splitter) Resolve(l *actor.Land, structure world.Structure, leads bool) {
	if _, busy := s.resolving.LoadOrStore(l.ID(), nil); busy {
		return
	}
	s.Tasks.Start(func(ctx context.Context) {
		defer s.resolving.Delete(l.ID())
		ctx, cancel := context.WithTimeout(ctx, mergeTime)
		defer cancel()
		if err := s.resolve(ctx, l, structure, leads); err != nil {
			s.Logger.Debug("merge not resolved", "region", l.ID(), "cell", l.Cell().String(), "error", err)
		}
	})
}

func (s *Splitter) resolve(ctx context.Context, l *actor.Land, structure world.Structure, leads bool) error {
	cell := l.Cell().Parent()
	listed, err := s.Directory.Exactly(ctx, cell)
	if err == nil && listed.ID == structure.Parent {
		return s.resolveWith(ctx, l, listed, structure, leads)
	}
	if err != nil && !errors.Is(err, directory.ErrNotFounded) {
		return err
	}
	// The parent was itself merged, or is not listed yet.
	if live, err := s.live(ctx, structure.Parent, cell, false); err != nil || live {
		return err
	}
	l.EndMerged(nil)
	return nil
}

// resolveWith asks the parent of a frozen child.
func (s *Splitter) resolveWith(ctx context.Context, l *actor.Land, listed nodemsg.Region, structure world.Structure, leads bool) error {
	abandon := uint64(0)
	if leads {
		abandon = structure.Frozen
	}
	answered, err := s.askStructure(ctx, listed, abandon)
	if err != nil {
		return err
	}
	abandoned := func(of statement) bool { return of.split == structure.ParentSplit && of.attempt >= structure.Frozen }
	switch s.await(ctx, listed, undone(structure.ParentSplit), abandoned) {
	case 0:
		if to := s.Regions.Loaded(listed.ID); to != nil {
			l.PassAvatars(to)
		}
		if listed.Split == structure.ParentSplit { // the catalog is a little behind
			listed.Split, listed.Merged = 0, structure.ParentSplit+1
		}
		if actor.HasMember(listed, answered.Leader) {
			listed.Leader = answered.Leader
		}
		l.EndMerged(&listed)
	case 1:
		if leads {
			return l.ProposeThaw(ctx, structure.Frozen-1)
		}
	}
	return nil
}

// askStructure asks a region's leader what the region is now, and to end attempts to merge before a number. Other
// members say what they know afterwards: the region is open then. The members are asked in any order, so that one that
// misleads is not always the first.
func (s *Splitter) askStructure(ctx context.Context, listed nodemsg.Region, abandon uint64) (nodemsg.Region, error) {
	q := nodemsg.StructureRequest{Region: listed.ID, Abandon: abandon}
	listed.Members = slices.Clone(listed.Members)
	rand.Shuffle(len(listed.Members), func(i, j int) { listed.Members[i], listed.Members[j] = listed.Members[j], listed.Members[i] })
	answer, err := s.askMembers(ctx, listed, nodemsg.Question{Structure: &q}, func() (nodemsg.Answer, error) {
		info, _, err := s.StructureHere(ctx, q)
		return nodemsg.Answer{Region: &info}, err
	})
	if err == nil && (answer.Region == nil || answer.Region.ID != listed.ID) {
		err = errors.New("the answer is about another region")
	}
	if err != nil {
		return nodemsg.Region{}, err
	}
	return *answer.Region, nil
}

// errBehind is returned while the catalog does not list what the regions' own logs say.
var errBehind = errors.New("the catalog is behind")

// errUnsure is returned while too few members say what has become of a region.
var errUnsure = errors.New("too few members of the region above say what has become of it")

// live reports whether the region of the cell exists: whether the log of its parent says so, and that of the parent's
// parent, and so on up to the region that the catalog has founded. Otherwise it was merged. It exists as long as one
// member says so, since others may be behind. Empty means that no land is lost if it exists and others have not noticed
// yet.
func (s *Splitter) live(ctx context.Context, id uint64, cell grid.Cell, empty bool) (bool, error) {
	if cell.Label.Len() == grid.FoundingLabel {
		founded, err := s.Directory.Exactly(ctx, cell)
		return founded.ID == id, err
	}
	above := cell.Parent()
	listed, err := s.Directory.Exactly(ctx, above)
	direct := err == nil
	for errors.Is(err, directory.ErrNotFounded) && above.Label.Len() > grid.FoundingLabel {
		above = above.Parent()
		listed, err = s.Directory.Exactly(ctx, above)
	}
	if err != nil {
		return false, err
	}
	if exists, err := s.live(ctx, listed.ID, above, empty); err != nil || !exists {
		return false, cmp.Or(err, errBehind)
	}
	if _, err := s.askStructure(ctx, listed, 0); err != nil {
		return false, err
	}
	all := s.poll(ctx, listed, func(statements) bool { return false })
	split := func(of statement) bool { return of.split != 0 && !all.most(undone(of.split)) } // others are behind
	child := func(of statement) bool {
		above := listed
		above.Split = of.split
		return split(of) && isChild(above, id)
	}
	switch {
	case !direct && all.anybody(split):
		return false, errBehind
	case all.anybody(child):
		return true, nil
	case all.most(func(of statement) bool { return of.split != 0 || of.merged != 0 || empty || !of.learner }):
		return false, nil // it is another region's land: a voter has applied the splits that led to the copy
	}
	return false, errUnsure
}
