package transport

import (
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A node that hangs is detected soon by a gateway that edits, however often it does, and somewhat later by one that
// only watches.
func TestSilentLinkTimesOut(t *testing.T) {
	for name, c := range map[string]struct {
		accepted bool          // the subscription has been accepted
		edits    int           // one every 100 ms, after a second
		want     time.Duration // until the link is given up
	}{
		"not accepted yet": {false, 0, silenceTimeout},
		"nobody edits":     {true, 0, calmTimeout},
		"one edit":         {true, 1, time.Second + silenceTimeout},
		"edit after edit":  {true, 50, time.Second + silenceTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				go io.Copy(io.Discard, far) //nolint:errcheck // until the end
				l := newRemoteLink(near)
				var region sync.WaitGroup
				region.Go(func() {
					if c.accepted {
						if err := wire.WriteFrame(far, nodemsg.FromRegion{Tick: 1}); err != nil {
							t.Error(err)
						}
					}
				})
				if c.accepted {
					if _, err := l.Receive(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				region.Wait()
				began := time.Now()
				var editor sync.WaitGroup
				editor.Go(func() {
					<-time.After(time.Second)
					for i := range c.edits {
						if l.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{{Seq: uint64(i + 1), Block: chunk.Stone}}}) != nil {
							return
						}
						<-time.After(100 * time.Millisecond)
					}
				})
				_, err := l.Receive(t.Context())
				if took := time.Since(began); err == nil || took != c.want {
					t.Errorf("given up after %v (%v), want %v", took, err, c.want)
				}
				editor.Wait()
				if err := far.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
