package transport

import (
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A node has one stream of raft messages: a second one ends the first, and another node's goes on.
func TestOneRaftStreamOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server RaftServer
		begin := func(peer string) (far net.Conn, ended chan error) {
			near, far := net.Pipe()
			ended = make(chan error, 1)
			go func() { ended <- server.Serve(t.Context(), peer, near, func(nodemsg.RaftMessage) {}) }()
			synctest.Wait()
			return far, ended
		}
		runs := func(ended chan error) bool {
			synctest.Wait()
			return len(ended) == 0
		}
		_, first := begin("a")
		other, others := begin("b")
		again, second := begin("a")
		if runs(first) || !runs(second) || !runs(others) {
			t.Errorf("the first stream runs: %t, the second: %t, the other node's: %t", runs(first), runs(second), runs(others))
		}
		for _, far := range []io.Closer{again, other} {
			if err := far.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if runs(second) || runs(others) || len(server.streams) != 0 {
			t.Errorf("%d streams are left", len(server.streams))
		}
	})
}
