package transport

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// exportTime bounds one export, at both ends.
const exportTime = 2 * time.Minute

// FetchExport requests an export from another node, and has read read what follows. The error is a Refusal if the node
// was reached and did not serve it.
func FetchExport(ctx context.Context, peers Peers, peer string, e nodemsg.Export, read func(*bufio.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, exportTime)
	defer cancel()
	s, stop, err := openStream(ctx, peers, peer, ExportProtocol)
	if err != nil {
		return fmt.Errorf("fetch from %s: %w", peer, err)
	}
	defer stop()
	defer s.abort()
	var answer nodemsg.Fetched
	if err = wire.WriteFrame(s, e); err == nil {
		answer, err = wire.ReadFrame[nodemsg.Fetched](s.in, wire.MaxHandshake)
	}
	if err == nil && answer.Error != "" {
		err = Refusal(answer.Error)
	}
	if err == nil {
		err = read(s.in)
	}
	if err != nil {
		return fmt.Errorf("fetch from %s: %w", peer, err)
	}
	return nil
}

// ServeExport answers one request for an export. Export returns what writes the records, or why there are none.
func ServeExport(ctx context.Context, stream io.ReadWriteCloser, export func(context.Context, nodemsg.Export) (func(io.Writer) error, error)) error {
	ctx, cancel := context.WithTimeout(ctx, exportTime)
	defer cancel()
	s := newPeerStream(stream)
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()
	request, err := wire.ReadFrame[nodemsg.Export](s.in, wire.MaxHandshake)
	if err != nil {
		s.abort()
		return err
	}
	write, refused := export(ctx, request)
	if refused != nil {
		err = wire.WriteFrame(s, nodemsg.Fetched{Error: Clip(refused)})
	} else if err = wire.WriteFrame(s, nodemsg.Fetched{}); err == nil {
		err = write(s)
	}
	if err != nil {
		s.abort()
		return err
	}
	return s.Close() // what was written arrives, or the peer is gone
}
