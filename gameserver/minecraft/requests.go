package minecraft

import (
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// requests are the client's changes of blocks. It numbers them, and shows what it has asked for until they are
// acknowledged: by the highest number up to which all are answered. A request may be several edits: both halves of a
// door.
type requests struct {
	edits   games.Edits
	numbers map[uint64]int32 // of requests, by those of edits that wait for their answers
	highest int32            // number of a request
	acked   int32
}

func newRequests() requests { return requests{highest: -1, acked: -1} }

// begin begins a session, whose first edit has a number.
func (r *requests) begin(first uint64, now time.Time) {
	r.edits.Begin(first, now)
	r.numbers = make(map[uint64]int32)
}

// add adds the edits of a request.
func (r *requests) add(number int32, changes []games.Change, now time.Time) error {
	for _, c := range changes {
		seq, err := r.edits.Add(c, now)
		if err != nil {
			return err
		}
		r.numbers[seq] = number
	}
	r.highest = max(r.highest, number)
	return nil
}

// answer takes an edit from those that wait for the session. It reports whether the edit was that of a click.
func (r *requests) answer(m sessionmsg.Ack, now time.Time) (c games.Change, clicked, waits bool) {
	_, clicked = r.numbers[m.Seq]
	delete(r.numbers, m.Seq)
	c, waits = r.edits.Answer(m, now)
	return c, clicked, waits
}

// acknowledge returns the number up to which all are answered, if it has not been acknowledged.
func (r *requests) acknowledge() (number int32, is bool) {
	number = r.highest
	for _, waiting := range r.numbers {
		number = min(number, waiting-1)
	}
	if number <= r.acked {
		return 0, false
	}
	r.acked = number
	return number, true
}
