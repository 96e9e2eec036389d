package region

import (
	"context"
	"io"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// ServePiece answers one request of another node.
func (h *Host) ServePiece(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	if err := h.pieces.Serve(ctx, peer, stream); err != nil {
		h.Logger.Debug("piece not served", "peer", peer, "error", err)
	}
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
