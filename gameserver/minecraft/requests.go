package minecraft

import (
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
)

// requests are the client's changes of blocks. It numbers them, and shows what it has asked for until they are acknowledged: by the highest
// number up to which all are answered.
type requests struct {
	seqs    games.Sequence // of the session's edits
	pending map[uint64]request
	highest int32 // number
	acked   int32
}

type request struct {
	number int32
	pos    grid.Pos
}

func newRequests() requests {
	return requests{pending: make(map[uint64]request), highest: -1, acked: -1}
}

// add notes a request that the session is to answer, and returns its seq.
func (r *requests) add(number int32, pos grid.Pos, now time.Time) (seq uint64) {
	seq = r.seqs.Next(now)
	r.pending[seq] = request{number, pos}
	r.highest = max(r.highest, number)
	return seq
}

// answer takes a request from those that wait for the session.
func (r *requests) answer(seq uint64) (pos grid.Pos, waits bool) {
	q, waits := r.pending[seq]
	delete(r.pending, seq)
	return q.pos, waits
}

// acknowledge returns the number up to which all are answered, if it has not been acknowledged.
func (r *requests) acknowledge() (number int32, is bool) {
	number = r.highest
	for _, q := range r.pending {
		number = min(number, q.number-1)
	}
	if number <= r.acked {
		return 0, false
	}
	r.acked = number
	return number, true
}
