package dht

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
)

const (
	// MaxAsk is the most bytes that a question or an answer may have: 64 KiB.
	MaxAsk = wire.MaxAsk

	askTimeout    = 15 * time.Second // for the asker, when he sets no deadline; and for the one who answers
	maxAskFailure = 1 << 10          // bytes of an error text
	// nextQuestion is how long the one who answers waits for the next question on the same stream.
	nextQuestion = time.Minute
)

// The first byte of an answer.
const (
	answerGiven  = 0 // the answer follows
	answerFailed = 1 // an error text follows
)

// AnswerError is what a peer's answer function returned as an error.
type AnswerError struct{ Text string }

func (e *AnswerError) Error() string { return e.Text }

type answerFunc func(ctx context.Context, peer string, question []byte) ([]byte, error)

// bounded refuses to give an answer that the asker would not accept.
func (f answerFunc) bounded(ctx context.Context, peer string, question []byte) ([]byte, error) {
	body, err := f(ctx, peer, question)
	if err == nil && len(body) > MaxAsk {
		return nil, fmt.Errorf("the answer is too long: %d bytes", len(body))
	}
	return body, err
}

// HandleAsk answers questions of a protocol, those of each stream in a goroutine of its own. answer must not keep the question.
// Its error goes to the asker as text. The context ends after 15 s, or when the host is closed.
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

// answerAll answers one question of a stream after the other, until the asker ends the stream or has none for long.
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
		// Who asks no more is not to be suspected.
		if question, err = readBounded(patient{s}); err != nil {
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
	status := byte(answerGiven)
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

// Ask sends a question to a peer and returns its answer; at most 64 KiB each. Asking oneself is a plain call.
// Without a deadline in ctx it takes at most 15 s.
// The error wraps ErrNotServed when the peer does not answer this protocol, and *AnswerError when it refused.
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
	ctx, done := h.begin(ctx)
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

// askOther asks on the stream of an earlier question, if one is left; else, or if that has ended meanwhile, on a new one.
func (h *Host) askOther(ctx context.Context, peer, proto string, question []byte) ([]byte, error) {
	at := askedAt{peer, proto}
	if s := h.spare.take(at, time.Now()); s != nil {
		answer, err := h.askOn(ctx, at, s, question)
		if err == nil || !errors.Is(err, errEnded) {
			return answer, err
		}
	}
	s, err := h.open(ctx, peer, proto)
	if err != nil {
		return nil, err
	}
	return h.askOn(ctx, at, s, question)
}

// askOn asks on a stream, and keeps it for the next question if it was answered.
func (h *Host) askOn(ctx context.Context, at askedAt, s *Stream, question []byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, s.Reset)
	answer, err := exchange(s, deadline(ctx), question)
	var refused *AnswerError
	if whole := err == nil || errors.As(err, &refused); stop() && whole {
		h.spare.keep(at, s, time.Now())
		return answer, err
	}
	s.closeQuietly()
	var late net.Error
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &late) && late.Timeout():
		return nil, context.DeadlineExceeded // the stream's deadline is the context's; it is only noticed earlier
	}
	return answer, err
}

// errEnded says that the stream ended, or broke, before anything was answered.
var errEnded = errors.New("the stream ended before the answer")

func exchange(s *Stream, until time.Time, question []byte) ([]byte, error) {
	if err := s.SetDeadline(until); err != nil {
		return nil, fmt.Errorf("set deadline: %w", err)
	}
	if _, err := s.Write(frame(question)); err != nil {
		return nil, fmt.Errorf("send question: %w", ended(err))
	}
	var status [1]byte
	if _, err := io.ReadFull(s, status[:]); err != nil {
		return nil, fmt.Errorf("read answer: %w", ended(err))
	}
	body, err := readBounded(s)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	switch status[0] {
	case answerGiven:
		return body, nil
	case answerFailed:
		return nil, &AnswerError{Text: string(body)}
	}
	return nil, fmt.Errorf("read answer: unknown status %d", status[0])
}

// ended marks an error that says that the peer has ended the stream, or is gone: not one that says that it took too long.
func ended(err error) error {
	if late(err) || errors.Is(err, ErrNotServed) {
		return err
	}
	return fmt.Errorf("%w: %w", errEnded, err)
}

// frame puts the length before the bytes: 4 bytes, big-endian.
func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))), body...)
}

var errTooLong = errors.New("more than 64 KiB announced")

// readBounded reads a frame. It allocates only what was announced, and refuses to when that is too much.
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

// deadline is the context's deadline, or the zero time.
func deadline(ctx context.Context) time.Time {
	t, _ := ctx.Deadline()
	return t
}
