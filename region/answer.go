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
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// AnswerQuestion answers a question of another node. It returns an error if the question is malformed.
func (h *Host) AnswerQuestion(ctx context.Context, peer string, question []byte) ([]byte, error) {
	q, err := wire.DecodeQuestion(question)
	if err != nil {
		return nil, fmt.Errorf("question from %s: %w", peer, err)
	}
	return wire.EncodeAnswer(h.answer(ctx, peer, q))
}

func (h *Host) answer(ctx context.Context, peer string, q wire.Question) wire.Answer {
	if q.Leaving != nil {
		h.detector.MarkLeaving(peer)
		return wire.Answer{}
	}
	h.supervisor.CheckReturned(peer)
	var info wire.Region
	switch {
	case h.supervisor.Leaves() && (q.Describe != nil || q.Invite != nil):
		return wire.Answer{Error: "this node is about to end"}
	case q.Describe != nil:
		h.detector.NoteQuestion(peer)
		return wire.Answer{Member: &h.Self}
	case q.Introduce != nil:
		// Only a hint, and accepted only from the leader itself.
		if q.Introduce.Leader == peer {
			h.Directory.AddHint(*q.Introduce)
		}
		return wire.Answer{}
	case q.Invite != nil:
		if err := h.regions.accept(ctx, peer, *q.Invite); err != nil {
			answer := wire.Answer{Error: transport.Clip(err)}
			if errors.Is(err, replica.ErrTombstone) {
				answer.Replica = q.Invite.Replica
			}
			return answer
		}
		return wire.Answer{}
	case q.Sleep != nil:
		if err := h.hibernation.accept(ctx, peer, *q.Sleep); err != nil {
			return wire.Answer{Error: transport.Clip(err)}
		}
		return wire.Answer{}
	case q.Failure != nil:
		if err := h.quarantine.ApplyRemoteFailure(peer, *q.Failure); err != nil {
			return wire.Answer{Error: transport.Clip(err)}
		}
		return wire.Answer{}
	case q.Release != nil:
		if err := h.quarantine.ReleasedBy(peer, q.Release.Region); err != nil {
			return wire.Answer{Error: transport.Clip(err)}
		}
		return wire.Answer{}
	case q.Superseded != nil:
		if err := h.supersession.Check(ctx, peer, q.Superseded.Region); err != nil {
			return wire.Answer{Error: transport.Clip(err)}
		}
		return wire.Answer{}
	case q.Status != nil:
		return wire.Answer{Statuses: h.regions.statuses(*q.Status), Clock: time.Now().UnixMilli()}
	case q.Regions != nil:
		return h.answerCensus(ctx, *q.Regions)
	case q.Rejoin != nil:
		id, err := h.reseeder.RemoveReplica(ctx, peer, q.Rejoin.Group)
		if err != nil {
			return wire.Answer{Error: transport.Clip(err)}
		}
		return wire.Answer{Replica: id}
	case q.Locate != nil:
		// Answer from known routes only: the asking node wants to avoid a DHT walk, so do not start one here.
		var ok bool
		if info, ok = h.Directory.Known(grid.CellAt(q.Locate.Chunk, grid.FoundingLabel)); !ok {
			return wire.Answer{}
		}
	default:
		return h.answerAsCatalog(ctx, peer, q)
	}
	return wire.Answer{Region: &info}
}

// answerAsCatalog answers the questions that only the catalog can answer. A member that does not lead the catalog returns the
// catalog's own region instead.
func (h *Host) answerAsCatalog(ctx context.Context, peer string, q wire.Question) wire.Answer {
	c := h.regions.Catalog()
	if c == nil {
		return wire.Answer{Region: &wire.Region{ID: world.CatalogID, Members: []wire.Member{h.Self}}}
	}
	var info wire.Region
	var err error
	switch {
	case q.Authority != nil && q.Authority.ID != 0:
		if info, err = c.Find(ctx, q.Authority.ID); errors.Is(err, directory.ErrNotFounded) {
			return wire.Answer{}
		}
	case q.Authority != nil:
		if info, err = c.Locate(ctx, q.Authority.Chunk); errors.Is(err, directory.ErrNotFounded) {
			return wire.Answer{}
		}
	case q.Found != nil:
		info, err = c.Found(ctx, *q.Found)
	case q.Moved != nil:
		info, err = c.MovedBy(ctx, peer, *q.Moved)
	default:
		return wire.Answer{Error: "unknown question; upgrade voxeld"}
	}
	if errors.Is(err, ErrNotHere) {
		if info, err = c.Info(ctx); !actor.HasMember(info, info.Leader) {
			info.Leader = ""
		}
	}
	if err != nil {
		return wire.Answer{Error: transport.Clip(err)}
	}
	return wire.Answer{Region: &info}
}

// answerCensus lists a page of the founded regions, if this node is a member of the catalog.
func (h *Host) answerCensus(ctx context.Context, q wire.RegionsRequest) wire.Answer {
	c := h.regions.Catalog()
	if c == nil {
		return wire.Answer{Error: "this node does not hold the catalog"}
	}
	page, err := c.Page(ctx, q.After)
	if err != nil {
		return wire.Answer{Error: transport.Clip(err)}
	}
	return wire.Answer{Regions: page}
}
