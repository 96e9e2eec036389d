package region

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A node that hangs is detected soon by a gateway that edits, however often it does, and somewhat later by one that only watches.
func TestSilentRegionIsGivenUp(t *testing.T) {
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
						if l.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(uint64(i + 1))}}) != nil {
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

// A region sends empty frames three times as often while a player edits.
func TestCalmRegionSendsFewAliveFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		stream := a.greeted("X")
		in := bufio.NewReader(stream)
		alive := func(until time.Duration) (n int) {
			for end := time.Now().Add(until); time.Now().Before(end); {
				f, err := wire.ReadFrame[nodemsg.FromRegion](in, wire.MaxFrame)
				if err != nil {
					t.Fatal(err)
				}
				if f.Alive {
					n++
				}
			}
			return n
		}
		alive(2 * time.Second) // the greeting, and the acceptance
		if n := alive(6 * calmEvery); n != 6 {
			t.Errorf("it said %d times that it lives in %v", n, 6*calmEvery)
		}
		write(t, stream, nodemsg.ToRegion{Watch: []grid.ChunkPos{here}, Edits: []nodemsg.Intent{stone(1)}})
		alive(time.Second) // the answer
		if n := alive(6 * aliveEvery); n != 6 {
			t.Errorf("after an edit it said %d times that it lives in %v", n, 6*aliveEvery)
		}
		alive(2 * eagerFor)
		if n := alive(6 * calmEvery); n != 6 {
			t.Errorf("long after the edit it said %d times that it lives in %v", n, 6*calmEvery)
		}
	})
}
