package transport

import (
	"bufio"
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Nodes that request many pieces, and read none of the answers, do not keep others waiting, and few answers are held in
// memory for them.
func TestUnreadPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan string, 100)
		p := NewPieceServer(func(_ context.Context, peer string, _ nodemsg.Fetch) nodemsg.Fetched {
			answers <- peer
			return nodemsg.Fetched{Data: []byte("land")}
		})
		request := func(peer string) (far net.Conn, ended chan error) {
			near, far := net.Pipe()
			ended = make(chan error, 1)
			go func() { ended <- p.Serve(t.Context(), peer, near) }()
			if err := wire.WriteFrame(far, nodemsg.Fetch{Base: &nodemsg.BaseOf{}}); err != nil {
				t.Fatal(err)
			}
			return far, ended
		}
		var unread []chan error
		for range 20 {
			for _, peer := range []string{"M", "N", "O"} {
				_, ended := request(peer)
				unread = append(unread, ended)
			}
		}
		synctest.Wait()
		if n := len(answers); n != 3*maxOfPeer {
			t.Errorf("%d answers are held for three nodes that read none", n)
		}
		start := time.Now()
		far, ended := request("honest")
		got, err := wire.ReadFrame[nodemsg.Fetched](bufio.NewReader(far), wire.MaxFrame)
		if took := time.Since(start); err != nil || string(got.Data) != "land" || took > 0 {
			t.Errorf("another node gets %q after %v, %v", got.Data, took, err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, ended := range unread {
			if err := <-ended; err == nil {
				t.Error("an answer that nobody read was sent")
			}
		}
		if took := time.Since(start); took > pieceTime || len(p.mu.peers) != 0 {
			t.Errorf("after %v, requests of %d nodes are left", took, len(p.mu.peers))
		}
	})
}
