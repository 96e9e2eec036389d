package dht

import (
	"sync"
	"time"
)

// Opening and closing a stream for a question takes eight of yamux's frames, encrypted and written one by one; the
// question and its answer are two. So the stream of an answered question is kept for the next one.

const (
	// spareFor is how long a stream is kept. It is shorter than the answering side's wait for the next question
	// (nextQuestion).
	spareFor = 40 * time.Second
	// sweepEvery is the time between two sweeps of expired streams.
	sweepEvery = 10 * time.Second
)

// questionKind is a peer and a protocol of questions.
type questionKind struct{ peer, proto string }

// spare holds idle streams, at most one per peer and protocol. Any goroutine may use it.
type spare struct {
	mu struct {
		sync.Mutex
		streams map[questionKind]kept
	}
}

type kept struct {
	stream *Stream
	since  time.Time
}

// pop removes and returns the idle stream for such questions, or nil. The caller owns it.
func (s *spare) pop(at questionKind, now time.Time) *Stream {
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

// put adds a stream on which a question was answered. It replaces an earlier one.
func (s *spare) put(at questionKind, stream *Stream, now time.Time) {
	s.mu.Lock()
	if s.mu.streams == nil {
		s.mu.streams = make(map[questionKind]kept)
	}
	old := s.mu.streams[at].stream
	s.mu.streams[at] = kept{stream, now}
	s.mu.Unlock()
	if old != nil {
		old.closeQuietly()
	}
}

// sweep closes the streams that were kept for longer than spareFor.
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
