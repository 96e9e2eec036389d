package transport

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// pieceTime bounds one request, at both ends.
	pieceTime = 15 * time.Second
	// maxPieces bounds how many requests are answered at the same time; the others wait.
	maxPieces = 4
)

// Pieces exchanges digests, parts of land and bases with other nodes. Any goroutine may use it.
type Pieces struct {
	self   string
	peers  Peers
	answer func(ctx context.Context, peer string, f nodemsg.Fetch) nodemsg.Fetched
	slots  chan struct{} // holds a token for each request that is being answered
}

// NewPieces returns an exchange for the node self. Answer answers a request; any goroutine may call it.
func NewPieces(self string, peers Peers, answer func(ctx context.Context, peer string, f nodemsg.Fetch) nodemsg.Fetched) *Pieces {
	return &Pieces{self: self, peers: peers, answer: answer, slots: make(chan struct{}, maxPieces)}
}

// Serve answers one request of another node.
func (p *Pieces) Serve(ctx context.Context, peer string, stream io.ReadWriteCloser) error {
	ctx, cancel := context.WithTimeout(ctx, pieceTime)
	defer cancel()
	s := newPeerStream(stream)
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()
	request, err := wire.ReadFrame[nodemsg.Fetch](s.in, wire.MaxHandshake)
	if err == nil {
		select {
		case p.slots <- struct{}{}:
			err = wire.WriteFrame(s, p.answer(ctx, peer, request))
			<-p.slots
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		s.abort()
		return err
	}
	return s.Close() // what was written arrives, or the peer is gone
}

// Fetch requests a piece from another node, or from this one. The error is a Refusal if the node was reached and did not serve it.
func (p *Pieces) Fetch(ctx context.Context, peer string, f nodemsg.Fetch) (nodemsg.Fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, pieceTime)
	defer cancel()
	answer, err := p.ask(ctx, peer, f)
	if err == nil && answer.Error != "" {
		err = Refusal(answer.Error)
	}
	if err != nil {
		return nodemsg.Fetched{}, fmt.Errorf("fetch from %s: %w", peer, err)
	}
	return answer, nil
}

func (p *Pieces) ask(ctx context.Context, peer string, f nodemsg.Fetch) (nodemsg.Fetched, error) {
	if peer == p.self {
		return p.answer(ctx, peer, f), nil
	}
	s, stop, err := openStream(ctx, p.peers, peer, PieceProtocol)
	if err != nil {
		return nodemsg.Fetched{}, err
	}
	defer stop()
	defer s.Close() //nolint:errcheck // the exchange is complete
	if err := wire.WriteFrame(s, f); err != nil {
		s.abort()
		return nodemsg.Fetched{}, err
	}
	return wire.ReadFrame[nodemsg.Fetched](s.in, wire.MaxFrame)
}

// Refusal is the reason that a reachable node gave for not serving a piece.
type Refusal string

func (r Refusal) Error() string { return string(r) }
