package region

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// AnswerQuestion answers a question of another node. It returns an error if the question is malformed.
func (h *Host) AnswerQuestion(ctx context.Context, peer string, question []byte) ([]byte, error) {
	q, err := nodemsg.DecodeQuestion(question)
	if err != nil {
		return nil, fmt.Errorf("question from %s: %w", peer, err)
	}
	return nodemsg.EncodeAnswer(h.answer(ctx, peer, q))
}

func (h *Host) answer(ctx context.Context, peer string, q nodemsg.Question) nodemsg.Answer {
	if q.Leaving != nil {
		h.detector.MarkLeaving(peer)
		return nodemsg.Answer{}
	}
	h.supervisor.CheckReturned(peer)
	var answer nodemsg.Answer
	var err error
	switch {
	case h.supervisor.Leaves() && (q.Describe != nil || q.Invite != nil):
		err = errors.New("this node is about to end")
	case q.Describe != nil:
		h.detector.NoteQuestion(peer)
		answer = h.observer.description()
	case q.Introduce != nil:
		return h.Directory.AnswerIntroduce(peer, *q.Introduce)
	case q.Invite != nil:
		if err = h.opener.accept(ctx, peer, *q.Invite); errors.Is(err, replica.ErrTombstone) {
			answer.Replica = q.Invite.Replica
		}
	case q.Forget != nil:
		err = h.forgetFor(peer, q.Forget.Peer)
	case q.Sleep != nil:
		err = h.hibernation.accept(ctx, peer, *q.Sleep)
	case q.Split != nil:
		err = h.Splitter.SplitFor(ctx, peer, q.Split.Region)
	case q.Merge != nil:
		err = h.Splitter.MergeHere(ctx, peer, q.Merge.Region)
	case q.Structure != nil:
		var info nodemsg.Region
		if info, answer.Attempt, err = h.Splitter.StructureHere(ctx, *q.Structure); err == nil && info.ID != 0 {
			answer.Region = &info
		}
	case q.Resolve != nil:
		h.Splitter.ResolveHere(q.Resolve.Region)
	case q.Release != nil:
		err = h.executor.ReleasedBy(peer, q.Release.Region)
	case q.Superseded != nil:
		err = h.executor.CheckSucceeded(ctx, q.Superseded.Region, peer)
	case q.Status != nil:
		answer.Statuses, answer.Clock = h.reporter.statuses(*q.Status), time.Now().UnixMilli()
	case q.Range != nil:
		return h.Ranges.Answer(ctx, peer, *q.Range)
	case q.History != nil:
		return h.History.Answer(ctx, peer, *q.History)
	case q.Regions != nil:
		return h.answerCensus(ctx, *q.Regions)
	case q.Rejoin != nil:
		var removed uint64
		if removed, err = h.executor.RemoveReplica(ctx, peer, q.Rejoin.Group); err == nil {
			answer.Replica = removed
		}
	case q.Locate != nil:
		return h.Directory.AnswerLocate(*q.Locate)
	default:
		return h.answerAsCatalog(ctx, peer, q)
	}
	if err != nil {
		refused := transport.Refused(err)
		refused.Replica = answer.Replica
		return refused
	}
	return answer
}

// answerAsCatalog answers the questions that only the catalog can answer. A member that does not lead the catalog
// returns the catalog's own region instead.
func (h *Host) answerAsCatalog(ctx context.Context, peer string, q nodemsg.Question) nodemsg.Answer {
	c := h.regions.Catalog()
	if c == nil {
		return nodemsg.Answer{Region: &nodemsg.Region{ID: world.CatalogID, Members: []nodemsg.Member{h.Self}}}
	}
	var info nodemsg.Region
	var err error
	switch {
	case q.Authority != nil && q.Authority.ID != 0:
		if info, err = c.Find(ctx, q.Authority.ID); errors.Is(err, directory.ErrNotFounded) {
			return nodemsg.Answer{}
		}
	case q.Authority != nil && q.Authority.Label != 0:
		if info, err = c.At(ctx, grid.CellAt(q.Authority.Chunk, q.Authority.Label)); errors.Is(err, directory.ErrNotFounded) {
			return nodemsg.Answer{}
		}
	case q.Authority != nil:
		if info, err = c.Locate(ctx, q.Authority.Chunk); errors.Is(err, directory.ErrNotFounded) {
			return nodemsg.Answer{}
		}
	case q.Acts != nil:
		acts, err := c.Acts(ctx, *q.Acts)
		if errors.Is(err, actor.ErrOtherActs) {
			return nodemsg.Answer{OtherActs: true}
		}
		if err != nil {
			return transport.Refused(err)
		}
		return nodemsg.Answer{Acts: acts}
	case q.Act != nil:
		var number uint64
		if number, err = h.Policy.AnswerEnter(ctx, peer, c, *q.Act); err == nil {
			return nodemsg.Answer{Number: number}
		}
	case q.Found != nil && !h.foundings.Allow(peer):
		err = fmt.Errorf("a node may found %d regions a second, %d at once", foundRate, foundBurst)
	case q.Found != nil:
		info, err = c.Found(ctx, *q.Found)
	case q.Moved != nil:
		if info, err = c.At(ctx, q.Moved.Cell); err == nil {
			err = h.consent.moved(ctx, peer, info, *q.Moved)
		}
		if err == nil {
			info, err = c.Moved(ctx, *q.Moved)
		}
	case q.Vacated != nil:
		if info, err = h.consent.vacated(ctx, peer, c, *q.Vacated); errors.Is(err, directory.ErrNotFounded) {
			return nodemsg.Answer{}
		}
	default:
		return nodemsg.Answer{Error: "unknown question; upgrade voxeld"}
	}
	if errors.Is(err, ErrNotHere) {
		if info, err = c.Info(ctx); !actor.HasMember(info, info.Leader) {
			info.Leader = ""
		}
	}
	if err != nil {
		return transport.Refused(err)
	}
	return nodemsg.Answer{Region: &info}
}

// answerCensus lists a page of the founded regions, if this node is a member of the catalog.
func (h *Host) answerCensus(ctx context.Context, q nodemsg.RegionsRequest) nodemsg.Answer {
	c := h.regions.Catalog()
	if c == nil {
		return nodemsg.Answer{Error: "this node does not hold the catalog"}
	}
	page, err := c.Page(ctx, q.After)
	if err != nil {
		return transport.Refused(err)
	}
	return nodemsg.Answer{Regions: page}
}
