package transport

import (
	"sync"
	"time"
)

// Opening and closing a stream for a question takes eight of yamux's frames, encrypted and written one by one; the
// question and its answer are two. So the stream of an answered question is kept for the next one.

const (
	// idleFor is how long a stream is kept. It is shorter than the answering side's wait for the next question
	// (nextQuestion).
	idleFor = 40 * time.Second
	// IdleSweepInterval is the time between two sweeps of expired streams.
	IdleSweepInterval = 10 * time.Second
)

// streamKey is a peer and a protocol of questions.
type streamKey struct{ peer, proto string }

// idleStreams holds idle streams, at most one per peer and protocol. Any goroutine may use it.
type idleStreams struct {
	mu struct {
		sync.Mutex
		streams map[streamKey]idleStream
	}
}

type idleStream struct {
	stream *Stream
	since  time.Time
}

// pop removes and returns the idle stream for such questions, or nil. The caller owns it.
func (s *idleStreams) pop(at streamKey, now time.Time) *Stream {
	s.mu.Lock()
	k := s.mu.streams[at]
	delete(s.mu.streams, at)
	s.mu.Unlock()
	if k.stream != nil && now.Sub(k.since) > idleFor {
		k.stream.closeQuietly()
		return nil
	}
	return k.stream
}

// put adds a stream on which a question was answered. It replaces an earlier one.
func (s *idleStreams) put(at streamKey, stream *Stream, now time.Time) {
	s.mu.Lock()
	if s.mu.streams == nil {
		s.mu.streams = make(map[streamKey]idleStream)
	}
	old := s.mu.streams[at].stream
	s.mu.streams[at] = idleStream{stream, now}
	s.mu.Unlock()
	if old != nil {
		old.closeQuietly()
	}
}

// sweep closes the streams that were kept for longer than idleFor.
func (s *idleStreams) sweep(now time.Time) {
	var over []*Stream
	s.mu.Lock()
	for at, k := range s.mu.streams {
		if now.Sub(k.since) > idleFor {
			over = append(over, k.stream)
			delete(s.mu.streams, at)
		}
	}
	s.mu.Unlock()
	for _, stream := range over {
		stream.closeQuietly()
	}
}
