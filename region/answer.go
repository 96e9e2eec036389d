package region

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
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
	h.checkReturned(peer)
	var info wire.Region
	switch {
	case h.leaves() && (q.Describe != nil || q.Invite != nil):
		return wire.Answer{Error: "this node is about to end"}
	case q.Describe != nil:
		h.detector.NoteQuestion(peer)
		return wire.Answer{Member: &h.Self}
	case q.Introduce != nil:
		// Only a hint, and accepted only from the leader itself.
		if q.Introduce.Leader == peer {
			h.Directory.addHint(*q.Introduce)
		}
		return wire.Answer{}
	case q.Invite != nil:
		if err := h.accept(ctx, peer, *q.Invite); err != nil {
			answer := wire.Answer{Error: transport.Clip(err)}
			if errors.Is(err, replica.ErrTombstone) {
				answer.Replica = q.Invite.Replica
			}
			return answer
		}
		return wire.Answer{}
	case q.Sleep != nil:
		if err := h.acceptHibernation(ctx, peer, *q.Sleep); err != nil {
			return wire.Answer{Error: transport.Clip(err)}
		}
		return wire.Answer{}
	case q.Failure != nil:
		if err := h.applyRemoteFailure(peer, *q.Failure); err != nil {
			return wire.Answer{Error: transport.Clip(err)}
		}
		return wire.Answer{}
	case q.Release != nil:
		if err := h.releasedBy(peer, q.Release.Region); err != nil {
			return wire.Answer{Error: transport.Clip(err)}
		}
		return wire.Answer{}
	case q.Superseded != nil:
		if err := h.checkSuperseded(ctx, peer, q.Superseded.Region); err != nil {
			return wire.Answer{Error: transport.Clip(err)}
		}
		return wire.Answer{}
	case q.Status != nil:
		return wire.Answer{Statuses: h.statuses(*q.Status), Clock: time.Now().UnixMilli()}
	case q.Regions != nil:
		return h.answerCensus(ctx, *q.Regions)
	case q.Rejoin != nil:
		id, err := h.removeReplica(ctx, peer, q.Rejoin.Group)
		if err != nil {
			return wire.Answer{Error: transport.Clip(err)}
		}
		return wire.Answer{Replica: id}
	case q.Locate != nil:
		// Answer from known routes only: the asking node wants to avoid a DHT walk, so do not start one here.
		var ok bool
		if info, ok = h.Directory.known.Peek(grid.CellAt(q.Locate.Chunk, grid.FoundingLabel)); !ok {
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
	c := h.root()
	if c == nil {
		return wire.Answer{Region: &wire.Region{ID: world.CatalogID, Members: []wire.Member{h.Self}}}
	}
	var info wire.Region
	var err error
	switch {
	case q.Authority != nil && q.Authority.ID != 0:
		if info, err = c.find(ctx, q.Authority.ID); errors.Is(err, errNotFounded) {
			return wire.Answer{}
		}
	case q.Authority != nil:
		if info, err = c.locate(ctx, q.Authority.Chunk); errors.Is(err, errNotFounded) {
			return wire.Answer{}
		}
	case q.Found != nil:
		info, err = c.found(ctx, *q.Found)
	case q.Moved != nil:
		info, err = c.movedBy(ctx, peer, *q.Moved)
	default:
		return wire.Answer{Error: "unknown question; upgrade voxeld"}
	}
	if errors.Is(err, errCatalogElsewhere) {
		if info, err = c.where(ctx); !hasMember(info, info.Leader) {
			info.Leader = ""
		}
	}
	if err != nil {
		return wire.Answer{Error: transport.Clip(err)}
	}
	return wire.Answer{Region: &info}
}

// movedBy records a change of a region's members if the catalog lists the peer as a member of that region.
func (c *catalog) movedBy(ctx context.Context, peer string, moved wire.Region) (wire.Region, error) {
	known, err := c.find(ctx, moved.ID)
	if err != nil {
		return wire.Region{}, err
	}
	if !hasMember(known, peer) {
		return wire.Region{}, fmt.Errorf("%s is not a member of region %d", peer, moved.ID)
	}
	return c.moved(ctx, moved)
}

// introduce announces the leader of this cell to the leaders of adjacent cells and caches the routes to them (Walkad §IV-B,
// coordinator selection, steps 3 and 4).
func (d *Directory) introduce(ctx context.Context, info wire.Region) {
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
		if _, err := d.host.questions.Ask(ctx, there.Leader, wire.Question{Introduce: &info}); err != nil {
			d.host.Logger.Debug("introduce region", "peer", there.Leader, "error", err)
		}
	}
}
