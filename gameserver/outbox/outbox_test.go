package outbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// sinkFunc is a sink that does not buffer.
type sinkFunc func([]byte) error

func (f sinkFunc) Send(data []byte) error { return f(data) }
func (f sinkFunc) Flush() error           { return nil }

// written drains an ended outbox.
func written(o *Outbox) (messages []string, err error) {
	err = o.Drain(sinkFunc(func(data []byte) error {
		messages = append(messages, string(data))
		return nil
	}))
	return messages, err
}

func TestOutboxComposesFrames(t *testing.T) {
	o := New(func() {})
	defer o.MarkClosed()
	o.Piece(3, []byte(`{"a":1}`))
	o.Piece(4, []byte(`{"b":2}`))
	o.Put([]byte("chunk"))
	o.Piece(5, []byte(`{"c":3}`))
	o.Put([]byte("ack"))
	o.Put([]byte("pong"))
	o.End(sessionmsg.Notice{Text: "bye"})
	o.Put([]byte("too late"))
	o.End(sessionmsg.Notice{Text: "bye again"})
	got, err := written(o)
	want := []string{
		`{"type":"frame","tick":4,"chunks":[{"a":1},{"b":2}]}`, "chunk",
		`{"type":"frame","tick":5,"chunks":[{"c":3}]}`, "ack", "pong", `{"type":"notice","text":"bye"}`,
	}
	if !slices.Equal(got, want) || !errors.Is(err, ErrEnded) {
		t.Errorf("written %q (%v), want %q", got, err, want)
	}
}

func TestFramesAreBounded(t *testing.T) {
	o := New(func() {})
	defer o.MarkClosed()
	piece := []byte(`"` + strings.Repeat("x", frameLimit/3) + `"`)
	for range 7 {
		o.Piece(1, piece)
	}
	o.Piece(2, bytes.Repeat(piece, 5)) // a piece is never split
	o.End(nil)
	frames, _ := written(o)
	if len(frames) != 5 {
		t.Errorf("%d frames, want 5: four with two pieces or less, and the large one", len(frames))
	}
	for i, f := range frames[:4] {
		if len(f) > frameLimit+100 {
			t.Errorf("frame %d has %d bytes", i, len(f))
		}
	}
}

// What was written does not count against a client, however much it becomes.
func TestReadingClientIsNeverSlow(t *testing.T) {
	o := New(func() {})
	defer o.MarkClosed()
	var d Writer
	for i := range 3 * outboxLimit >> 20 {
		o.Put(make([]byte, 1<<20-100))
		o.Piece(1, make([]byte, 100))
		if err := d.WriteNext(o, sinkFunc(func([]byte) error { return nil })); err != nil {
			t.Fatalf("ended after %d MiB: %v", i+1, err)
		}
	}
}

func TestSlowClientGetsAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := false
		o := New(func() { cut = true })
		block := make([]byte, 1<<20)
		for range outboxLimit/len(block) - 1 {
			o.Put(block)
		}
		// What the writer has taken counts until it is written.
		stuck, goOn := make(chan struct{}), make(chan struct{})
		var got []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer o.MarkClosed()
			if err := o.Drain(sinkFunc(func(data []byte) error {
				if len(got) == 0 {
					close(stuck)
					<-goOn
				}
				got = append(got, string(data[:min(len(data), 60)]))
				return nil
			})); !errors.Is(err, ErrEnded) {
				t.Error(err)
			}
		}()
		<-stuck
		o.Put(block)
		o.Put([]byte("one byte too many, or more"))
		o.Put([]byte("after the end"))
		close(goOn)
		<-done
		if len(got) != 2 || !strings.Contains(got[1], wire.FailSlow) {
			t.Errorf("written %d messages, the last %q; want the one under way, and why", len(got), got[len(got)-1])
		}
		time.Sleep(2 * CloseTimeout)
		synctest.Wait()
		if cut {
			t.Error("cut although it was closed in order")
		}
	})
}

// Whole chunks wait until the client has accepted the earlier ones; motion does not wait behind them.
func TestLandDelaysNothing(t *testing.T) {
	w := newWatcher()
	o := w.o
	defer o.MarkClosed()
	for x := range int32(30) {
		w.watch(t, grid.ChunkPos{X: x})
	}
	w.m.BuildQueued()
	if got := o.mu.chunkBytes; got < chunkWindow || got > chunkWindow+chunkBytes {
		t.Fatalf("%d bytes of land are on their way, want %d", got, chunkWindow)
	}
	if o.refill() != nil {
		t.Error("more land before the first is taken")
	}
	o.PutMotion(1, func(dst []byte, _ bool) []byte { return sessionmsg.AppendMotionChunk(dst, grid.ChunkPos{}) })
	var d Writer
	before := 0
	if err := d.WriteNext(o, sinkFunc(func(data []byte) error {
		if data[0] != sessionmsg.TickFrame {
			before += len(data)
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if before > chunkWindow+chunkBytes {
		t.Errorf("%d bytes of land before the motion", before)
	}
	if got := len(o.refill()); got != refillChunks {
		t.Errorf("%d chunks are asked for again, want %d", got, refillChunks)
	}
}

// Land that is not watched any more does not wait, and the rest keeps its order. All of it is sent although nothing else is, also if
// the chunks for which there was room again are the ones that are not watched any more.
func TestLandOutOfViewDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher()
		var left, kept []grid.ChunkPos
		for x := range int32(100) {
			pos := grid.ChunkPos{X: x}
			if w.watch(t, pos); x%10 == 9 {
				kept = append(kept, pos)
			} else {
				left = append(left, pos)
			}
		}
		w.m.BuildQueued()
		onTheirWay := len(w.o.mu.items)
		written, goOn := 0, make(chan struct{})
		var got []grid.ChunkPos
		var ended sync.WaitGroup
		ended.Go(func() {
			defer w.o.MarkClosed()
			err := w.o.Drain(sinkFunc(func(data []byte) error {
				<-goOn
				if len(data) == chunkBytes {
					if written++; written > onTheirWay {
						got = append(got, grid.ChunkPos{X: int32(binary.LittleEndian.Uint32(data))})
					}
				}
				return nil
			}))
			if !errors.Is(err, ErrEnded) {
				t.Error(err)
			}
		})
		for range onTheirWay {
			goOn <- struct{}{}
		}
		synctest.Wait() // there is room again, and no builder yet
		for _, pos := range left {
			w.unwatch(pos)
		}
		var waiting []grid.ChunkPos
		for e := w.o.mu.waiting.order.Front(); e != nil; e = e.Next() {
			waiting = append(waiting, e.Value.(*mirror.Chunk).At())
		}
		if want := kept[1:]; !slices.Equal(waiting, want) { // the first one is among those for which there is room
			t.Errorf("%v wait, want %v", waiting, want)
		}
		for x := range int32(50) {
			pos := grid.ChunkPos{X: 1000 + x}
			w.watch(t, pos)
			kept = append(kept, pos)
		}
		close(goOn)
		ctx, stop := context.WithCancel(t.Context())
		ended.Go(func() { w.m.Build(ctx) })
		synctest.Wait()
		if slices.SortFunc(got, grid.ChunkPos.Compare); !slices.Equal(got, kept) {
			t.Errorf("sent %v, want %v", got, kept)
		}
		if order, at := w.o.mu.waiting.order.Len(), len(w.o.mu.waiting.at); order+at != 0 {
			t.Errorf("%d and %d chunks still wait", order, at)
		}
		stop()
		w.o.End(nil)
		ended.Wait()
	})
}

// Moves in a chunk that is not in view any more are not missed.
func TestMovesOutOfViewAreNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher()
		defer w.o.MarkClosed()
		pos := grid.ChunkPos{X: 3}
		w.watch(t, pos)
		w.m.BuildQueued()
		w.o.next(batch{})
		time.Sleep(time.Second)
		if !w.o.Behind(w.last) || len(w.o.missedChunks()) != 1 {
			t.Fatal("the client is not behind")
		}
		if w.unwatch(pos); len(w.o.missedChunks()) != 0 {
			t.Error("moves of a chunk that is not in view are missed")
		}
	})
}

// watcher is a subscriber with an outbox, in a mirror without regions.
type watcher struct {
	mirror.Subscriber // nil: what else a subscriber is sent is not expected
	o                 *Outbox
	m                 *mirror.Mirror
	subs              map[grid.ChunkPos]*mirror.Subscription
	last              *mirror.Chunk // that was sent
}

const chunkBytes = 5000 // of each chunk that a watcher is sent

func newWatcher() *watcher {
	w := &watcher{o: New(func() {}), subs: make(map[grid.ChunkPos]*mirror.Subscription)}
	w.o.Owner = w
	w.o.SetCodec(codec.CBOR)
	land, err := terrain.New(terrain.Params{Seed: 7, Sections: 1, Version: terrain.Version})
	if err != nil {
		panic(err)
	}
	w.m = mirror.New(mirror.Options{
		Terrain: land, Interest: interest.New(interest.Options{Budget: 1000}), Overlay: noOverlay{}, Height: grid.ChunkSize,
		Now: func() time.Duration { return 0 }, Run: func(func(context.Context)) bool { return true },
		Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		Ticked: func(*mirror.Subscription) {},
	})
	return w
}

// watch watches a chunk, and lets its region send it.
func (w *watcher) watch(t *testing.T, pos grid.ChunkPos) {
	t.Helper()
	w.subs[pos] = w.m.Watch(pos, w)
	state := nodemsg.ChunkDelta{Chunk: pos, State: &nodemsg.ChunkState{}}
	if err := w.subs[pos].Apply(nodemsg.FromRegion{Chunks: []nodemsg.ChunkDelta{state}}); err != nil {
		t.Fatal(err)
	}
}

func (w *watcher) unwatch(pos grid.ChunkPos) {
	w.subs[pos].Unwatch(pos, w)
	delete(w.subs, pos)
	w.o.RemoveChunk(pos)
}

func (w *watcher) HasRoom(c *mirror.Chunk) bool { return w.o.HasRoom(c) }
func (w *watcher) WantsEveryMove() bool         { return false }

func (w *watcher) SendChunk(c *mirror.Chunk, _ bool) {
	w.last = c
	data := make([]byte, chunkBytes)
	binary.LittleEndian.PutUint32(data, uint32(c.At().X))
	w.o.PutChunk(data)
}

// noOverlay is an overlay that is not enabled.
type noOverlay struct{ mirror.Overlay }

func (noOverlay) Enabled() bool       { return false }
func (noOverlay) Clear(grid.ChunkPos) {}

// Results are written directly to the socket, in their place among pieces and motion, as the writer would write them.
func TestAnswersAreWrittenAtOnce(t *testing.T) {
	var got, want bytes.Buffer
	short := New(func() {})
	short.Direct = &recorder{to: &got}
	long := New(func() {})
	var p FrameWriter
	for _, o := range []*Outbox{short, long} {
		o.SetCodec(codec.CBOR)
		o.PutMotion(3, func(dst []byte, _ bool) []byte { return append(dst, "motion"...) })
		o.PutDeferred([]byte("early"))
		o.Piece(3, []byte("one"))
		o.Piece(3, []byte("two"))
		o.PutDeferred([]byte("late"))
	}
	select {
	case <-short.wake:
		t.Error("the writer was woken")
	default:
	}
	p.Deliver(short)
	var d Writer
	if err := d.WriteNext(long, sinkFunc(func(data []byte) error {
		want.Write(sessionmsg.AppendMessage(nil, data))
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if got.Len() == 0 || !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("written %q, the writer writes %q", got.Bytes(), want.Bytes())
	}
	if p.messages != 4 || short.mu.bytes != 0 || len(short.mu.items)+len(short.mu.motion) != 0 {
		t.Errorf("%d messages counted, %d bytes and %d items left", p.messages, short.mu.bytes, len(short.mu.items))
	}
	// A full socket keeps its writer busy, and what comes then waits for the writer.
	short.Direct = &recorder{to: &got, full: true}
	short.PutDeferred([]byte("more"))
	p.Deliver(short)
	short.PutDeferred([]byte("and more"))
	p.Deliver(short)
	if len(short.mu.items) != 1 || !short.mu.busy || len(short.wake) != 1 {
		t.Errorf("%d items wait, busy %v", len(short.mu.items), short.mu.busy)
	}
}

// recorder is a socket that accepts everything, or nothing.
type recorder struct {
	to   *bytes.Buffer
	full bool
}

func (r *recorder) TryWrite(data []byte) (rest []byte, err error) {
	if r.full {
		return data, nil
	}
	_, err = r.to.Write(data)
	return nil, err
}

func (r *recorder) AppendHead(dst []byte, size int) []byte {
	return binary.AppendUvarint(dst, uint64(size))
}
func (r *recorder) WriteLater([]byte) {}

// A client that is sent motion at a slower pace is sent several ticks of it at once, and other changes with the next tick.
func TestPace(t *testing.T) {
	o := New(func() {})
	o.SetCodec(codec.CBOR)
	o.Pace = 2
	motion := func(dst []byte, _ bool) []byte { return sessionmsg.AppendMotionChunk(dst, grid.ChunkPos{}) }
	var d Writer
	frames := 0
	write := func() {
		t.Helper()
		if err := d.WriteNext(o, sinkFunc(func([]byte) error { frames++; return nil })); err != nil {
			t.Fatal(err)
		}
	}
	o.PutMotion(1, motion)
	if o.Woken() {
		t.Error("the writer is woken for one tick")
	}
	o.PutMotion(2, motion)
	if write(); frames != 1 {
		t.Errorf("%d frames of two ticks", frames)
	}
	o.Piece(3, []byte{1})
	o.PutMotion(3, motion)
	if write(); frames != 2 {
		t.Errorf("%d frames after a change", frames)
	}
}
