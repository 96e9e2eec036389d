package transport

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// pieceTime bounds one request, at both ends.
	pieceTime = 15 * time.Second
	// maxPieces bounds how many answers are prepared at the same time, and maxOfPeer how many requests of one node are
	// served: it may be slow to read the answer. The others wait.
	maxPieces = 4
	maxOfPeer = 2
)

// AnswerPiece answers a request. Any goroutine may call it.
type AnswerPiece func(ctx context.Context, peer string, f nodemsg.Fetch) nodemsg.Fetched

// PieceServer answers the requests of other nodes for digests, parts of land and bases. Any goroutine may use it.
type PieceServer struct {
	answer AnswerPiece
	slots  chan struct{} // holds a token for each answer that is being prepared

	mu struct {
		sync.Mutex
		peers map[string]*peerRequests // no empty ones
	}
}

// peerRequests are the requests of one node.
type peerRequests struct {
	slots chan struct{} // holds a token for each request that is being served
	all   int           // those that wait, too
}

// NewPieceServer returns a server.
func NewPieceServer(answer AnswerPiece) *PieceServer {
	p := &PieceServer{answer: answer, slots: make(chan struct{}, maxPieces)}
	p.mu.peers = make(map[string]*peerRequests)
	return p
}

// Serve answers one request of another node.
func (p *PieceServer) Serve(ctx context.Context, peer string, stream io.ReadWriteCloser) error {
	ctx, cancel := context.WithTimeout(ctx, pieceTime)
	defer cancel()
	s := newPeerStream(stream)
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()
	request, err := wire.ReadFrame[nodemsg.Fetch](s.in, wire.MaxHandshake)
	if err == nil {
		err = p.serve(ctx, peer, s, request)
	}
	if err != nil {
		s.abort()
		return err
	}
	return s.Close() // what was written arrives, or the peer is gone
}

// serve answers a request when few others are served. While the answer is written, it only holds up those of the same
// node.
func (p *PieceServer) serve(ctx context.Context, peer string, out io.Writer, request nodemsg.Fetch) error {
	of := p.begin(peer)
	defer p.end(peer, of)
	if err := acquire(ctx, of.slots); err != nil {
		return err
	}
	defer func() { <-of.slots }()
	answer, err := p.prepare(ctx, peer, request)
	if err != nil {
		return err
	}
	return wire.WriteFrame(out, answer)
}

func (p *PieceServer) prepare(ctx context.Context, peer string, request nodemsg.Fetch) (nodemsg.Fetched, error) {
	if err := acquire(ctx, p.slots); err != nil {
		return nodemsg.Fetched{}, err
	}
	defer func() { <-p.slots }()
	return p.answer(ctx, peer, request), nil
}

func acquire(ctx context.Context, slots chan<- struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *PieceServer) begin(peer string) *peerRequests {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.mu.peers[peer]
	if of == nil {
		of = &peerRequests{slots: make(chan struct{}, maxOfPeer)}
		p.mu.peers[peer] = of
	}
	of.all++
	return of
}

func (p *PieceServer) end(peer string, of *peerRequests) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of.all--; of.all == 0 {
		delete(p.mu.peers, peer)
	}
}

// Pieces requests digests, parts of land and bases from other nodes. Any goroutine may use it.
type Pieces struct{ Peers Peers }

// Fetch requests a piece from another node. The error is a Refusal if the node was reached and did
// not serve it.
func (p Pieces) Fetch(ctx context.Context, peer string, f nodemsg.Fetch) (nodemsg.Fetched, error) {
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

func (p Pieces) ask(ctx context.Context, peer string, f nodemsg.Fetch) (nodemsg.Fetched, error) {
	s, stop, err := openStream(ctx, p.Peers, peer, PieceProtocol)
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
