package raftgroup

import (
	"log/slog"
	"testing"

	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// A panic while writes are staged is an error.
func TestStagingPanics(t *testing.T) {
	r := &Replica{logger: slog.New(slog.DiscardHandler), log: &raftlog.Log{}, node: &Node{}}
	r.members.unstored = []*raftlog.Configuration{nil}
	if _, _, err := r.Stage(nil); err == nil {
		t.Fatal("staged")
	}
}
