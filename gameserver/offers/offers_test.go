package offers

import (
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
)

// The data of a chunk is sent once for each hash, if it is requested.
func TestChunks(t *testing.T) {
	at := grid.ChunkPos{X: 1, Z: 2}
	var off Chunks
	if off.Offer(at) || off.Request(at) {
		t.Error("a client that does not understand hashes is offered one")
	}
	o := Chunks{On: true}
	steps := []struct {
		name string
		do   func() bool
		want bool
	}{
		{"request before an offer", func() bool { return o.Request(at) }, false},
		{"offer", func() bool { return o.Offer(at) }, true},
		{"a newer offer", func() bool { return o.Offer(at) }, true},
		{"request", func() bool { return o.Request(at) }, true},
		{"request twice", func() bool { return o.Request(at) }, false},
		{"send the data", func() bool { return o.Offer(at) }, false},
		{"request what was sent", func() bool { return o.Request(at) }, false},
		{"offer what has changed", func() bool { return o.Offer(at) }, true},
		{"out of view", func() bool { o.Remove(at); return o.Request(at) }, false},
	}
	for _, step := range steps {
		if got := step.do(); got != step.want {
			t.Errorf("%s: %t, want %t", step.name, got, step.want)
		}
	}
	if len(o.requested) != 0 {
		t.Errorf("%d chunks are kept after they have left the view", len(o.requested))
	}
}
