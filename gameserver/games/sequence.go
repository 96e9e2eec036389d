package games

import "time"

// sequenceEvery is how often the numbers of edits catch up with the time.
const sequenceEvery = time.Minute

// Sequence numbers a client's edits. Signed ones must be numbered near the time (docs/adr/0045), in microseconds, however long the client plays.
// The client's lock guards it.
type Sequence struct {
	first, next uint64
	begun       time.Time
}

// NewSequence returns the sequence of a session that begins, which has the number of the first edit.
func NewSequence(first uint64, now time.Time) Sequence {
	return Sequence{first: first, next: first, begun: now}
}

// Next returns the number of the next edit.
func (s *Sequence) Next(now time.Time) uint64 {
	played := now.Sub(s.begun).Truncate(sequenceEvery)
	number := max(s.next, s.first+uint64(played.Microseconds())) //nolint:gosec // positive
	s.next = number + 1
	return number
}
