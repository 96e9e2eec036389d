package dht

import (
	"sync"
	"time"
)

// To open a stream for a question, and to close it, takes eight of yamux's frames, encrypted and written one by one; the question
// and its answer are two. So the stream of a question that was answered is kept for the next one.

const (
	// spareFor is how long a stream is kept: less than the one who answers waits for the next question (nextQuestion).
	spareFor = 40 * time.Second
	// sweepEvery is how often those that were kept for too long are looked for.
	sweepEvery = 10 * time.Second
)

// askedAt is whom questions are put to, and of which kind.
type askedAt struct{ peer, proto string }

// spare are the streams on which nothing is under way, one of each kind to a peer at most. Any goroutine may use it.
type spare struct {
	mu struct {
		sync.Mutex
		streams map[askedAt]kept
	}
}

type kept struct {
	stream *Stream
	since  time.Time
}

// take gives the stream that is left for such questions, or nil. It is the caller's.
func (s *spare) take(at askedAt, now time.Time) *Stream {
	s.mu.Lock()
	k := s.mu.streams[at]
	delete(s.mu.streams, at)
	s.mu.Unlock()
	if k.stream != nil && now.Sub(k.since) > spareFor {
		k.stream.closeQuietly()
		return nil
	}
	return k.stream
}

// keep takes a stream on which a question was answered. It replaces the one that is kept, if there is one.
func (s *spare) keep(at askedAt, stream *Stream, now time.Time) {
	s.mu.Lock()
	if s.mu.streams == nil {
		s.mu.streams = make(map[askedAt]kept)
	}
	old := s.mu.streams[at].stream
	s.mu.streams[at] = kept{stream, now}
	s.mu.Unlock()
	if old != nil {
		old.closeQuietly()
	}
}

// sweep closes the streams that were kept for too long.
func (s *spare) sweep(now time.Time) {
	var over []*Stream
	s.mu.Lock()
	for at, k := range s.mu.streams {
		if now.Sub(k.since) > spareFor {
			over = append(over, k.stream)
			delete(s.mu.streams, at)
		}
	}
	s.mu.Unlock()
	for _, stream := range over {
		stream.closeQuietly()
	}
}
