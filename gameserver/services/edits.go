package services

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"net/http"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/checks"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// maxEdits is the most edits of a request: a region recognises the 64 newest of an author.
	maxEdits = 64
	// seqAhead is how far the number of an edit may be ahead of this node's clock, as for players.
	seqAhead = 10 * time.Minute
)

// unanswered is the outcome of an edit that the land has not answered in time: it may be applied, or not.
const unanswered = "unanswered"

var errUnanswered = &Error{http.StatusGatewayTimeout, unanswered, "the land has not answered in time: send the same request again, with the same seq, to learn what became of it"}

type editsRequest struct {
	// Seq is the number of the first edit; those that follow have the next ones.
	Seq   uint64 `json:"seq"`
	Edits []edit `json:"edits"`
}

type edit struct {
	At    grid.Pos `json:"at"`
	Block string   `json:"block"`
	// From is what the block must be, for a bulk edit.
	From string `json:"from,omitempty"`
}

type editsAnswer struct {
	Seq     uint64       `json:"seq"`
	Results []editResult `json:"results"` // in the order of the edits
}

// editResult is the outcome of an edit: Error is empty if it is applied, and on the disks of a majority of the land's
// members; else a code of docs/protocol.md.
type editResult struct {
	Error string `json:"error,omitempty"`
}

// place checks where edits are, and returns their positions.
func (s *Server) place(c *call, edits []edit, most int) ([]grid.Pos, error) {
	if len(edits) == 0 || len(edits) > most {
		return nil, badRequest("%d edits: want 1 to %d", len(edits), most)
	}
	all := make([]grid.Pos, 0, len(edits))
	for _, e := range edits {
		pos := e.At
		if pos.Y < 0 || pos.Y >= s.World.Height() {
			return nil, badRequest("height %d: the world has the heights 0 to %d", pos.Y, s.World.Height()-1)
		}
		if !c.contains(grid.Box{Min: pos, Max: pos}) {
			return nil, errOutside
		}
		all = append(all, pos)
	}
	return all, nil
}

func (s *Server) postEdits(c *call) (any, error) {
	request, err := decode[editsRequest](c)
	if err != nil {
		return nil, err
	}
	positions, err := s.place(c, request.Edits, maxEdits)
	if err != nil {
		return nil, err
	}
	if err := checkSeq(request.Seq, len(positions), s.Wall()); err != nil {
		return nil, err
	}
	intents := make([]nodemsg.Intent, len(positions))
	for i, pos := range positions {
		if request.Edits[i].From != "" {
			return nil, badRequest("from: only bulk edits have it")
		}
		block, err := blockNamed(request.Edits[i].Block)
		if err != nil {
			return nil, err
		}
		intents[i] = nodemsg.Intent{Seq: request.Seq + uint64(i), Pos: pos, Block: block}
	}
	refusals, err := s.edit(c, positions, intents, func(v *view, i int, bodies []motion.Pose) (string, error) {
		there, err := v.block(positions[i])
		if err != nil || there == intents[i].Block {
			return "", err // it may have been applied already
		}
		return s.refuse(there, intents[i].Block, positions[i], bodies), nil
	})
	if err != nil {
		return nil, err
	}
	answer := editsAnswer{Seq: request.Seq}
	for _, why := range refusals {
		answer.Results = append(answer.Results, editResult{why})
	}
	return answer, nil
}

type bulkAnswer struct {
	Seq    uint64 `json:"seq"`
	Blocks int    `json:"blocks"`
}

// postBulk changes many blocks of a chunk: all of them, or none if one is not what the request says.
func (s *Server) postBulk(c *call) (any, error) {
	request, err := decode[editsRequest](c)
	if err != nil {
		return nil, err
	}
	positions, err := s.place(c, request.Edits, nodemsg.MaxBulkBlocks)
	if err != nil {
		return nil, err
	}
	if err := checkSeq(request.Seq, 1, s.Wall()); err != nil {
		return nil, err
	}
	bulk, err := bulkOf(request.Edits)
	if err != nil {
		return nil, err
	}
	at := positions[0].Chunk()
	refusals, err := s.edit(c, positions, []nodemsg.Intent{{Seq: request.Seq, Pos: at.Origin(), Bulk: bulk}},
		func(v *view, _ int, bodies []motion.Pose) (string, error) {
			for to, from := range bulk.All() {
				pos := to.At.Pos(at)
				there, err := v.block(pos)
				switch {
				case err != nil:
					return "", err
				case there == to.Block:
					continue
				case there != from:
					return wire.RefusedChanged, nil
				}
				if why := s.refuse(there, to.Block, pos, bodies); why != "" {
					return why, nil
				}
			}
			return "", nil
		})
	if err != nil {
		return nil, err
	}
	if why := refusals[0]; why != "" {
		return nil, conflict(why, "nothing was changed: "+why)
	}
	return bulkAnswer{request.Seq, len(positions)}, nil
}

// bulkOf returns the runs of edits in one chunk.
func bulkOf(edits []edit) (nodemsg.Bulk, error) {
	type single struct {
		at       chunk.Index
		from, to chunk.Block
	}
	all := make([]single, 0, len(edits))
	for _, e := range edits {
		to, err := blockNamed(e.Block)
		if err != nil {
			return "", err
		}
		from, err := blockNamed(e.From)
		if err != nil {
			return "", err
		}
		if e.At.Chunk() != edits[0].At.Chunk() {
			return "", badRequest("a bulk edit is in one chunk: of 32×32 blocks, from a multiple of 32")
		}
		all = append(all, single{chunk.At(e.At), from, to})
	}
	slices.SortFunc(all, func(a, b single) int { return cmp.Compare(a.at, b.at) })
	var runs []byte
	end := chunk.Index(0)
	for i := 0; i < len(all); {
		r := nodemsg.BulkRun{At: all[i].at, Count: 1, From: all[i].from, To: all[i].to}
		for i++; i < len(all) && all[i] == (single{r.At + chunk.Index(r.Count), r.From, r.To}); i++ { //nolint:gosec // at most 2,048
			r.Count++
		}
		if r.At < end {
			return "", badRequest("two edits are of the same block")
		}
		runs = nodemsg.AppendRun(runs, end, r)
		end = r.At + chunk.Index(r.Count) //nolint:gosec // likewise
	}
	bulk := nodemsg.Bulk(runs)
	if err := bulk.Valid(); err != nil {
		return "", badRequest("%v", err)
	}
	return bulk, nil
}

// refuse returns why a block may not be changed; empty if it may.
func (s *Server) refuse(there, block chunk.Block, pos grid.Pos, bodies []motion.Pose) string {
	if why := checks.BlockChange(there, block); why != "" {
		return why
	}
	if slices.ContainsFunc(bodies, func(p motion.Pose) bool { return checks.BodyReaches(p, pos, block) }) {
		return wire.RefusedInsidePlayer
	}
	return ""
}

// edit signs edits of a service, requests them of the land and waits for the answers: for each why it was refused, empty
// if it was committed. Check is called for each once the land is here, and returns why it is not requested. Whoever
// sends the same edits again, to any node, gets the same answer, as far as the land remembers them, and unless a check
// refuses them by now: what was applied may have been changed since.
func (s *Server) edit(c *call, positions []grid.Pos, intents []nodemsg.Intent, check func(v *view, i int, bodies []motion.Pose) (why string, err error)) ([]string, error) {
	chunks := chunksAt(positions)
	if len(chunks) > maxChunks {
		return nil, badRequest("the edits are in %d chunks: at most %d are allowed", len(chunks), maxChunks)
	}
	if err := c.author.editing.Acquire(c.Context(), 1); err != nil {
		return nil, errBusy
	}
	defer c.author.editing.Release(1)
	if !c.author.blocks.AllowN(time.Now(), len(positions)) {
		return nil, errRate
	}
	v, err := s.watch(c.Context(), c, chunks)
	if err != nil {
		return nil, err
	}
	defer v.close()
	if err := v.load(c.Context()); err != nil {
		return nil, err
	}
	results, seqs := make(chan nodemsg.EditResult, len(intents)), make([]uint64, len(intents))
	waited := c.author.waited()
	for i := range intents {
		seqs[i] = intents[i].Seq
	}
	if !c.author.await(seqs, results) {
		return nil, errBusy
	}
	defer c.author.leave(seqs)
	outcomes, waiting := slices.Repeat([]string{unanswered}, len(intents)), 0
	bodies := make(map[grid.ChunkPos][]motion.Pose)
	for _, at := range chunks {
		bodies[at] = s.bodies(at)
	}
	for i := range intents {
		e := &intents[i]
		at := e.Pos.Chunk()
		why, err := check(v, i, bodies[at])
		if err != nil {
			why = wire.RefusedUnavailable
		}
		if why != "" {
			if waited[e.Seq] {
				return nil, errUnanswered // it was requested before, and may be applied yet
			}
			c.author.forget(e.Seq)
			outcomes[i] = why
			continue
		}
		s.sign(c, e)
		v.subs[at].Edit(*e, c.author)
		waiting++
	}
	return outcomes, s.collect(c.Context(), intents[0].Seq, results, outcomes, waiting)
}

// sign makes an edit that of the service.
func (s *Server) sign(c *call, e *nodemsg.Intent) {
	e.Player = c.service.ID
	e.Key = [ed25519.PublicKeySize]byte(publicOf(c.key))
	e.Signature = [ed25519.SignatureSize]byte(ed25519.Sign(c.key, e.SignedText(s.World.ID())))
}

// collect waits for results, and sets the outcomes of the edits, which are numbered from first on.
func (s *Server) collect(ctx context.Context, first uint64, results <-chan nodemsg.EditResult, outcomes []string, waiting int) error {
	for ; waiting > 0; waiting-- {
		select {
		case r := <-results:
			outcomes[r.Seq-first] = r.Refused
		case <-ctx.Done():
			return errUnanswered
		}
	}
	for _, why := range outcomes {
		outcome := "applied"
		if why != "" {
			outcome = refused
		}
		s.metrics.edits.WithLabelValues(outcome).Inc()
	}
	return nil
}
