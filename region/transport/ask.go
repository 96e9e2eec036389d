package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

const (
	// AskTimeout bounds one question.
	AskTimeout = 5 * time.Second
	// describeTime bounds the time that a live node takes to describe itself.
	describeTime = 1500 * time.Millisecond
)

// Questions asks other nodes. Any goroutine may use it.
type Questions struct{ Peers Peers }

// Ask sends a question to another node. If the node refuses it, the error contains the node's reason.
func (s Questions) Ask(ctx context.Context, peer string, q nodemsg.Question) (nodemsg.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	question, err := nodemsg.EncodeQuestion(q)
	if err != nil {
		return nodemsg.Answer{}, err
	}
	reply, err := s.Peers.Ask(ctx, peer, AskProtocol, question)
	if err != nil {
		return nodemsg.Answer{}, err
	}
	answer, err := nodemsg.DecodeAnswer(reply)
	if err != nil {
		return nodemsg.Answer{}, fmt.Errorf("answer from %s: %w", peer, err)
	}
	switch {
	case answer.Error == "":
		return answer, nil
	case answer.Why != nil:
		return answer, *answer.Why
	}
	return answer, errors.New(answer.Error)
}

// Refused returns the answer that a question is refused.
func Refused(err error) nodemsg.Answer {
	plain := nodemsg.Answer{Error: Clip(err)}
	if why, is := errors.AsType[notice.Notice](err); is {
		if said := (nodemsg.Answer{Error: plain.Error, Why: &why}); said.Valid() == nil {
			return said
		}
	}
	return plain
}

// Describe asks a node for the Member under which it can be recorded, which also shows whether it is alive.
func (s Questions) Describe(ctx context.Context, peer string) (nodemsg.Member, error) {
	answer, err := s.Description(ctx, peer)
	if err != nil {
		return nodemsg.Member{}, err
	}
	return *answer.Member, nil
}

// Description is Describe with everything that the node says of itself. The answer's Member is never nil.
func (s Questions) Description(ctx context.Context, peer string) (nodemsg.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	answer, err := s.Ask(ctx, peer, nodemsg.Question{Describe: &nodemsg.Describe{}})
	if err != nil {
		return nodemsg.Answer{}, err
	}
	if answer.Member == nil || answer.Member.Peer != peer {
		return nodemsg.Answer{}, fmt.Errorf("%s describes another node", peer)
	}
	return answer, nil
}
