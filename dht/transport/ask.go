package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The first byte of an answer.
const (
	answerOK     = 0 // the answer follows
	answerFailed = 1 // an error text follows
)

// AnswerError is an error that a peer's answer function returned.
type AnswerError struct{ Text string }

func (e *AnswerError) Error() string { return e.Text }

// HandleAsk answers questions of a protocol, each stream in a goroutine of its own. answer must not retain the
// question. Its error is sent to the asker as text. The context ends after 15 s, or when the host is closed.
func (h *Host) HandleAsk(proto string, answer func(ctx context.Context, peer string, question []byte) ([]byte, error)) {
	h.mu.Lock()
	h.mu.answers[proto] = answer
	h.mu.Unlock()
	h.handle(proto, func(ctx context.Context, peer string, s *Stream) {
		if err := h.answerAll(ctx, peer, s, answer); err != nil {
			h.logger.Debug("question not answered", "protocol", proto, "peer", peer, "error", err)
			s.Reset()
		}
	})
}

// answerAll answers the questions of a stream one after the other, until the asker ends the stream or pauses for longer
// than nextQuestion.
func (h *Host) answerAll(ctx context.Context, peer string, s *Stream, answer answerFunc) error {
	if err := s.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	question, err := readBounded(s)
	for err == nil {
		if err := h.answer(ctx, peer, s, answer, question); err != nil {
			return err
		}
		if err := s.SetDeadline(time.Now().Add(nextQuestion)); err != nil {
			return fmt.Errorf("set deadline: %w", err)
		}
		// A peer that asks nothing more is not a reason to check the connection.
		if question, err = readBounded(uncheckedReader{s}); err != nil {
			return nil
		}
	}
	return fmt.Errorf("read question: %w", err)
}

func (h *Host) answer(ctx context.Context, peer string, s *Stream, answer answerFunc, question []byte) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := s.SetDeadline(deadline(ctx)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	status := byte(answerOK)
	body, err := answer.bounded(ctx, peer, question)
	if err != nil {
		status, body = answerFailed, []byte(err.Error())
		body = body[:min(len(body), maxAskFailure)]
	}
	out := append([]byte{status}, frame(body)...)
	if _, err := s.Write(out); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// Ask sends a question to a peer and returns its answer, of at most 64 KiB each. Asking oneself is a plain call.
// Without a deadline in ctx it takes at most 15 s.
// The error wraps ErrNotServed when the peer does not serve this protocol, and *AnswerError when the peer's answer
// function failed.
func (h *Host) Ask(ctx context.Context, peer, proto string, question []byte) ([]byte, error) {
	if len(question) > MaxAsk {
		return nil, fmt.Errorf("ask %s: the question is too long: %d bytes", proto, len(question))
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askTimeout)
		defer cancel()
	}
	var answer []byte
	var err error
	if peer == h.PeerID() {
		answer, err = h.askSelf(ctx, proto, question)
	} else {
		answer, err = h.askOther(ctx, peer, proto, question)
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s of %s: %w", proto, peer, err)
	}
	return answer, nil
}

func (h *Host) askSelf(ctx context.Context, proto string, question []byte) ([]byte, error) {
	h.mu.Lock()
	answer := h.mu.answers[proto]
	h.mu.Unlock()
	if answer == nil {
		return nil, ErrNotServed
	}
	ctx, done := h.beginHandler(ctx)
	if done == nil {
		return nil, ErrClosed
	}
	defer done()
	body, err := answer.bounded(ctx, h.PeerID(), question)
	if err != nil {
		return nil, &AnswerError{Text: err.Error()}
	}
	return body, nil
}

// askOther asks on the stream of an earlier question if one is open. Otherwise, or if that stream has ended meanwhile,
// it opens a new one.
func (h *Host) askOther(ctx context.Context, peer, proto string, question []byte) ([]byte, error) {
	at := streamKey{peer, proto}
	if s := h.idle.pop(at, time.Now()); s != nil {
		answer, err := h.askOn(ctx, at, s, question)
		if err == nil || !errors.Is(err, errStreamEnded) {
			return answer, err
		}
	}
	s, err := h.open(ctx, peer, proto)
	if err != nil {
		return nil, err
	}
	return h.askOn(ctx, at, s, question)
}

// askOn asks on a stream, and keeps the stream for the next question if an answer came.
func (h *Host) askOn(ctx context.Context, at streamKey, s *Stream, question []byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, s.Reset)
	answer, err := exchange(s, deadline(ctx), question)
	var refused *AnswerError
	if whole := err == nil || errors.As(err, &refused); stop() && whole {
		h.idle.put(at, s, time.Now())
		return answer, err
	}
	s.closeQuietly()
	var late net.Error
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &late) && late.Timeout():
		return nil, context.DeadlineExceeded // the stream's deadline is the context's, but may be noticed earlier
	}
	return answer, err
}

// errStreamEnded means that the stream ended, or broke, before any byte of an answer arrived.
var errStreamEnded = errors.New("the stream ended before the answer")

func exchange(s *Stream, until time.Time, question []byte) ([]byte, error) {
	if err := s.SetDeadline(until); err != nil {
		return nil, fmt.Errorf("set deadline: %w", err)
	}
	if _, err := s.Write(frame(question)); err != nil {
		return nil, fmt.Errorf("send question: %w", wrapStreamEnded(err))
	}
	var status [1]byte
	if _, err := io.ReadFull(s, status[:]); err != nil {
		return nil, fmt.Errorf("read answer: %w", wrapStreamEnded(err))
	}
	body, err := readBounded(s)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	switch status[0] {
	case answerOK:
		return body, nil
	case answerFailed:
		return nil, &AnswerError{Text: string(body)}
	}
	return nil, fmt.Errorf("read answer: unknown status %d", status[0])
}

// wrapStreamEnded wraps an error with errStreamEnded if the peer has ended the stream or is gone. Timeouts are not
// wrapped.
func wrapStreamEnded(err error) error {
	if isTimeout(err) || errors.Is(err, ErrNotServed) {
		return err
	}
	return fmt.Errorf("%w: %w", errStreamEnded, err)
}

// frame prepends the length: 4 bytes, big-endian.
func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))), body...)
}

var errTooLong = errors.New("more than 64 KiB announced")

// readBounded reads a frame. It allocates only the announced size, and fails if that exceeds the bound.
func readBounded(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxAsk {
		return nil, errTooLong
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	return body, nil
}

// deadline returns the context's deadline, or the zero time.
func deadline(ctx context.Context) time.Time {
	t, _ := ctx.Deadline()
	return t
}

// CloseIdleStreams closes streams that were kept for another question, and for too long. To be called every
// IdleSweepInterval.
func (h *Host) CloseIdleStreams() { h.idle.sweep(time.Now()) }
