package region

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// PieceProtocol names the streams on which nodes fetch digests, parts of land and bases from one another, without the world's
	// prefix: one nodemsg.Fetch, one nodemsg.Fetched.
	PieceProtocol = "/piece/1"

	// pieceTime bounds one request, at both ends.
	pieceTime = 15 * time.Second
	// maxPieces bounds how many requests are answered at the same time; the others wait.
	maxPieces = 4
)

// ServePiece answers one request of another node.
func (h *Host) ServePiece(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	ctx, cancel := context.WithTimeout(ctx, pieceTime)
	defer cancel()
	remote := newRemoteLink(stream)
	stop := context.AfterFunc(ctx, remote.abort)
	defer stop()
	request, err := wire.ReadFrame[nodemsg.Fetch](remote.in, wire.MaxHandshake)
	if err == nil {
		select {
		case h.serving <- struct{}{}:
			err = wire.WriteFrame(stream, h.fetched(ctx, peer, request))
			<-h.serving
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		h.Logger.Debug("piece not served", "peer", peer, "error", err)
		remote.abort()
		return
	}
	stream.Close() //nolint:errcheck // what was written arrives, or the peer is gone
}

func (h *Host) fetched(ctx context.Context, peer string, f nodemsg.Fetch) nodemsg.Fetched {
	switch {
	case f.Digests != nil:
		return h.askLoop(ctx, peer, f.Digests.Group, func(l *loop) nodemsg.Fetched { return l.reportScrub(f.Digests.Index) })
	case f.Part != nil:
		return h.askLoop(ctx, peer, f.Part.Group, func(l *loop) nodemsg.Fetched { return l.servePart(*f.Part) })
	case f.Base != nil:
		return h.serveBase(ctx, *f.Base)
	}
	return nodemsg.Fetched{Error: "unknown request; upgrade voxeld"}
}

// fetch requests a piece from another node, or from this one.
func (h *Host) fetch(ctx context.Context, peer string, f nodemsg.Fetch) (nodemsg.Fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, pieceTime)
	defer cancel()
	answer, err := h.ask(ctx, peer, f)
	if err != nil {
		return nodemsg.Fetched{}, fmt.Errorf("fetch from %s: %w", peer, err)
	}
	if answer.Error != "" {
		return nodemsg.Fetched{}, fmt.Errorf("fetch from %s: %w", peer, refusedPiece(answer.Error))
	}
	return answer, nil
}

// refusedPiece is the reason that a reachable node gave for not serving a piece.
type refusedPiece string

func (r refusedPiece) Error() string { return string(r) }

func (h *Host) ask(ctx context.Context, peer string, f nodemsg.Fetch) (nodemsg.Fetched, error) {
	if peer == h.Self.Peer {
		return h.fetched(ctx, peer, f), nil
	}
	stream, err := h.Peers.Open(ctx, peer, PieceProtocol)
	if err != nil {
		return nodemsg.Fetched{}, err
	}
	link := newRemoteLink(stream)
	stop := context.AfterFunc(ctx, link.abort)
	defer stop()
	defer stream.Close() //nolint:errcheck // the exchange is complete
	if err := wire.WriteFrame(stream, f); err != nil {
		link.abort()
		return nodemsg.Fetched{}, err
	}
	return wire.ReadFrame[nodemsg.Fetched](bufio.NewReader(link.in), wire.MaxFrame)
}

// offered decompresses and checks a part from a source, and digests it.
func offered(packed []byte) (partCopy, error) {
	data, err := nodemsg.UnpackPart(packed)
	if err != nil {
		return partCopy{}, err
	}
	rows, err := world.DecodeRows(data)
	if err != nil {
		return partCopy{}, err
	}
	o := partCopy{rows: rows}
	for _, row := range rows {
		o.digest.Add(row.Key, row.Value)
	}
	return o, nil
}
