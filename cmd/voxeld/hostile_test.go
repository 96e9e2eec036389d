package main

import (
	"bytes"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	regiontransport "github.com/voxelpopuli/voxeld/region/transport"
	kit "github.com/voxelpopuli/voxeld/testkit/daemon"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A node that sends nearly all of a large frame on each of 80 streams costs a bounded amount of memory, its streams end soon, and a
// player builds meanwhile. The world is open, so the node is admitted.
func TestHalfSentFrames(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, kit.Options{})
	if err := d.Init(t.Context(), "--seed", "33", "--open"); err != nil {
		t.Fatal(err)
	}
	d.start()
	alice := join(t, d.Game, "alice", 1)
	const memory = "go_memstats_heap_inuse_bytes"
	before := d.metric(memory)
	host, peer := strangerHost(t, d)
	half := append([]byte{0, 0x3f, 0xff, 0xff}, make([]byte, 0x3ffffe)...)
	var hello bytes.Buffer
	for _, r := range d.regions() {
		if r.Bodies == 0 {
			continue
		}
		id, err := strconv.ParseUint(r.ID, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		cell, err := grid.ParseCell(r.Cell)
		if err != nil {
			t.Fatal(err)
		}
		if err := wire.WriteFrame(&hello, nodemsg.Hello{Region: id, Cell: cell}); err != nil {
			t.Fatal(err)
		}
	}

	var crew sync.WaitGroup
	turns := make(chan struct{}, 4) // so that the connection goes on answering
	send := func(protocol string, data []byte) {
		crew.Go(func() {
			s, err := host.Open(t.Context(), peer, "/voxeld/"+d.Status.WorldID[:16]+protocol)
			if err != nil {
				t.Error(err)
				return
			}
			turns <- struct{}{}
			s.Write(data) //nolint:errcheck // the node may end the stream
			<-turns
			io.Copy(io.Discard, s) //nolint:errcheck // until the node ends the stream
		})
	}
	for range 40 {
		send(regiontransport.RaftProtocol, half)
		send(regiontransport.LinkProtocol, append(bytes.Clone(hello.Bytes()), half...))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		crew.Wait()
	}()
	most := 0.0
	for waiting, late := true, time.After(patience); waiting; {
		select {
		case <-ended:
			waiting = false
		case <-late:
			t.Fatal("the node does not end the streams")
		case <-time.After(200 * time.Millisecond):
		}
		most = max(most, d.metric(memory))
		alice.edit(under(alice, 2, 1, 1), chunk.Brick)
	}
	t.Logf("heap: %.0f MiB, before %.0f", most/(1<<20), before/(1<<20))
	if most-before > 128<<20 {
		t.Errorf("the node grew by %.0f MiB", (most-before)/(1<<20))
	}
}
