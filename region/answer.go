package region

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
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
	h.checkReturned(peer)
	var info nodemsg.Region
	switch {
	case h.leaves() && (q.Describe != nil || q.Invite != nil):
		return nodemsg.Answer{Error: "this node is about to end"}
	case q.Describe != nil:
		h.detector.NoteQuestion(peer)
		return nodemsg.Answer{Member: &h.Self}
	case q.Introduce != nil:
		// Only a hint, and accepted only from the leader itself.
		if q.Introduce.Leader == peer {
			h.Directory.addHint(*q.Introduce)
		}
		return nodemsg.Answer{}
	case q.Invite != nil:
		if err := h.accept(ctx, peer, *q.Invite); err != nil {
			answer := nodemsg.Answer{Error: transport.Clip(err)}
			if errors.Is(err, replica.ErrTombstone) {
				answer.Replica = q.Invite.Replica
			}
			return answer
		}
		return nodemsg.Answer{}
	case q.Sleep != nil:
		if err := h.acceptHibernation(ctx, peer, *q.Sleep); err != nil {
			return nodemsg.Answer{Error: transport.Clip(err)}
		}
		return nodemsg.Answer{}
	case q.Failure != nil:
		if err := h.applyRemoteFailure(peer, *q.Failure); err != nil {
			return nodemsg.Answer{Error: transport.Clip(err)}
		}
		return nodemsg.Answer{}
	case q.Release != nil:
		if err := h.releasedBy(peer, q.Release.Region); err != nil {
			return nodemsg.Answer{Error: transport.Clip(err)}
		}
		return nodemsg.Answer{}
	case q.Superseded != nil:
		if err := h.checkSuperseded(ctx, peer, q.Superseded.Region); err != nil {
			return nodemsg.Answer{Error: transport.Clip(err)}
		}
		return nodemsg.Answer{}
	case q.Status != nil:
		return nodemsg.Answer{Statuses: h.statuses(*q.Status), Clock: time.Now().UnixMilli()}
	case q.Regions != nil:
		return h.answerCensus(ctx, *q.Regions)
	case q.Rejoin != nil:
		id, err := h.removeReplica(ctx, peer, q.Rejoin.Group)
		if err != nil {
			return nodemsg.Answer{Error: transport.Clip(err)}
		}
		return nodemsg.Answer{Replica: id}
	case q.Locate != nil:
		// Answer from known routes only: the asking node wants to avoid a DHT walk, so do not start one here.
		var ok bool
		if info, ok = h.Directory.known.Peek(grid.CellAt(q.Locate.Chunk, grid.FoundingLabel)); !ok {
			return nodemsg.Answer{}
		}
	default:
		return h.answerAsCatalog(ctx, peer, q)
	}
	return nodemsg.Answer{Region: &info}
}

// answerAsCatalog answers the questions that only the catalog can answer. A member that does not lead the catalog returns the
// catalog's own region instead.
func (h *Host) answerAsCatalog(ctx context.Context, peer string, q nodemsg.Question) nodemsg.Answer {
	c := h.root()
	if c == nil {
		return nodemsg.Answer{Region: &nodemsg.Region{ID: world.CatalogID, Members: []nodemsg.Member{h.Self}}}
	}
	var info nodemsg.Region
	var err error
	switch {
	case q.Authority != nil && q.Authority.ID != 0:
		if info, err = c.find(ctx, q.Authority.ID); errors.Is(err, errNotFounded) {
			return nodemsg.Answer{}
		}
	case q.Authority != nil:
		if info, err = c.locate(ctx, q.Authority.Chunk); errors.Is(err, errNotFounded) {
			return nodemsg.Answer{}
		}
	case q.Found != nil:
		info, err = c.found(ctx, *q.Found)
	case q.Moved != nil:
		info, err = c.movedBy(ctx, peer, *q.Moved)
	default:
		return nodemsg.Answer{Error: "unknown question; upgrade voxeld"}
	}
	if errors.Is(err, errCatalogElsewhere) {
		if info, err = c.where(ctx); !hasMember(info, info.Leader) {
			info.Leader = ""
		}
	}
	if err != nil {
		return nodemsg.Answer{Error: transport.Clip(err)}
	}
	return nodemsg.Answer{Region: &info}
}

// movedBy records a change of a region's members if the catalog lists the peer as a member of that region.
func (c *catalog) movedBy(ctx context.Context, peer string, moved nodemsg.Region) (nodemsg.Region, error) {
	known, err := c.find(ctx, moved.ID)
	if err != nil {
		return nodemsg.Region{}, err
	}
	if !hasMember(known, peer) {
		return nodemsg.Region{}, fmt.Errorf("%s is not a member of region %d", peer, moved.ID)
	}
	return c.moved(ctx, moved)
}

// introduce announces the leader of this cell to the leaders of adjacent cells and caches the routes to them (Walkad §IV-B,
// coordinator selection, steps 3 and 4).
func (d *Directory) introduce(ctx context.Context, info nodemsg.Region) {
	for _, next := range info.Cell.Adjacent() {
		there, ok := d.known.Peek(next)
		if !ok {
			var err error
			if there, err = d.host.Records.Region(ctx, next); err != nil || !usable(there, next) {
				continue
			}
			d.addHint(there)
		}
		if there.Leader == d.host.Self.Peer {
			continue
		}
		if _, err := d.host.questions.Ask(ctx, there.Leader, nodemsg.Question{Introduce: &info}); err != nil {
			d.host.Logger.Debug("introduce region", "peer", there.Leader, "error", err)
		}
	}
}
