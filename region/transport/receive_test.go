package transport

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

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

// A node that sends a snapshot byte by byte does not take up its place for longer than the first part may take. A slow
// link may take as long as it needs.
func TestSnapshotRate(t *testing.T) {
	for name, c := range map[string]struct {
		bytes, parts int
		pause        time.Duration
		whole        bool
	}{
		"bytes":     {1, 200, snapshotTime - time.Second, false},
		"slow link": {64 << 10, 200, 5 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				ended := make(chan error, 1)
				go func() {
					ended <- ServeSnapshot(t.Context(), near, func(_ context.Context, _ uint64, in io.Reader) error {
						_, err := io.CopyN(io.Discard, in, int64(c.bytes*c.parts))
						return err
					})
				}()
				start := time.Now()
				_, err := far.Write(make([]byte, 8)) // the group
				for i := 0; i < c.parts && err == nil; i++ {
					time.Sleep(c.pause)
					_, err = far.Write(make([]byte, c.bytes))
				}
				if took := time.Since(start); (err == nil) != c.whole || !c.whole && took > 2*snapshotTime {
					t.Errorf("after %v: %v", took, err)
				}
				if c.whole {
					if _, err := io.ReadFull(far, make([]byte, 1)); err != nil {
						t.Error(err)
					}
				}
				if err := <-ended; (err == nil) != c.whole {
					t.Errorf("it ends with %v", err)
				}
			})
		})
	}
}
