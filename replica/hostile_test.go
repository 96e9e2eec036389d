package replica

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

var frames = flag.Int("frames", 20_000, "how many frames TestHostileFrames sends; 10 million take minutes")

// forger creates frames that resemble raft's, and others.
type forger struct {
	*rand.Rand
	message raftpb.Message
	numbers [8]uint64
	buffer  []byte
}

// number returns a small number, or one near which arithmetic overflows.
func (f *forger) number() *uint64 {
	n := &f.numbers[f.IntN(len(f.numbers))]
	switch f.IntN(6) {
	case 0:
		*n = f.Uint64()
	case 1:
		*n = 1<<f.IntN(64) - uint64(f.IntN(3))
	case 2:
		return nil
	default:
		*n = f.Uint64N(8)
	}
	return n
}

// frame returns a frame that is valid until the next call.
func (f *forger) frame(from, to uint64) []byte {
	if f.IntN(16) == 0 {
		f.buffer = f.buffer[:0]
		for range f.IntN(64) {
			f.buffer = append(f.buffer, byte(f.Uint32()))
		}
		return f.buffer
	}
	m := &f.message
	proto.Reset(m)
	m.Type = raftpb.MessageType(f.IntN(24)).Enum()
	if f.IntN(8) > 0 {
		m.From, m.To = &from, &to
	} else {
		m.From, m.To = f.number(), f.number()
	}
	m.Term, m.LogTerm, m.Index, m.Commit = f.number(), f.number(), f.number(), f.number()
	switch f.IntN(8) {
	case 0:
		m.Reject, m.RejectHint = new(true), f.number()
	case 1:
		m.Context = []byte(raftframe.CampaignTransfer)
	case 2:
		m.Context = binary.LittleEndian.AppendUint64(nil, f.Uint64())
	case 3:
		m.Snapshot = &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: f.number(), Term: f.number()}}
	case 4:
		m.Responses = []*raftpb.Message{{Type: raftpb.MsgApp.Enum()}}
	default:
		for i := range f.IntN(3) {
			e := &raftpb.Entry{Index: f.number(), Term: f.number(), Data: []byte("forged")}
			if m.Index != nil && m.LogTerm != nil && f.IntN(3) > 0 {
				e.Index, e.Term = new(*m.Index+uint64(i)+1), m.LogTerm
			}
			if f.IntN(4) == 0 {
				e.Type = raftpb.EntryType(f.IntN(3)).Enum()
				c := raftlog.Change{Kind: raftpb.ConfChangeType(f.IntN(4)), ID: f.Uint64N(8), Peer: "z"[:f.IntN(2)]}
				e.Data, _ = proto.Marshal(c.Raft()) // of known types: no error
			}
			m.Entries = append(m.Entries, e)
		}
	}
	var err error
	if f.buffer, err = (proto.MarshalOptions{}).MarshalAppend(f.buffer[:0], m); err != nil {
		panic(err)
	}
	return f.buffer
}

// TestHostileFrames sends forged frames from a non-member, from a member of another group, and in the name of this
// node: no panic, and no change of state, neither of raft nor on the disk. Then from members, which may change
// anything: no panic, and no group ends. -frames=10000000 is the full proof.
func TestHostileFrames(t *testing.T) {
	began := time.Now()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	f := forger{Rand: rand.New(rand.NewPCG(seed, 1))}
	h, d := gated(t)
	before := stateText(h, d)
	strangers := []struct {
		peer     string
		group    uint64
		from, to uint64
	}{
		{"z", 1, 2, 1}, {"z", 1, 4, 1}, {"z", 3, 1, 2}, // no Member of anything
		{"x", 1, 2, 1}, {"b", 3, 1, 2}, {"y", 1, 3, 1}, {"b", 2, 1, 1}, // members of another group
		{"me", 1, 1, 1}, {"", 1, 2, 1}, {"b", 9, 2, 1},
	}
	for i := range *frames {
		s := &strangers[i%len(strangers)]
		frame := f.frame(s.from, s.to)
		if h.Receive(s.peer, s.group, frame) == nil {
			t.Fatalf("frame %d of %q for group %d was taken: %x", i, s.peer, s.group, frame)
		}
		if i%1000 == 0 || i == *frames-1 {
			pump(h)
			if after := stateText(h, d); after != before {
				t.Fatalf("after frame %d changed\n%s\nto\n%s", i, before, after)
			}
		}
	}
	// Snapshots come on streams: those of non-members are refused before anything is read.
	for _, s := range strangers {
		if err := h.ReceiveSnapshot(t.Context(), s.peer, s.group, nil); err == nil {
			t.Fatalf("a snapshot of %q for group %d was taken", s.peer, s.group)
		}
	}
	t.Logf("%d frames of strangers in %v", *frames, time.Since(began).Round(time.Millisecond))

	began = time.Now()
	taken := 0
	members := []struct {
		peer     string
		group    uint64
		from, to uint64
	}{{"b", 1, 2, 1}, {"c", 1, 3, 1}, {"x", 3, 1, 2}, {"y", 3, 3, 2}}
	for i := range *frames / 10 {
		if i%100 == 0 { // forged configurations can make a group lose its members: start again
			h, _ = gated(t)
		}
		s := &members[i%len(members)]
		if h.Receive(s.peer, s.group, f.frame(s.from, s.to)) == nil {
			taken++
		}
		if i%3 == 0 {
			pump(h)
		}
		if i%100 == 99 {
			pump(h)
			if len(h.groups.replicas) != 3 {
				t.Fatalf("after frame %d a group has ended", i)
			}
		}
	}
	t.Logf("%d frames of members, %d of them let in, in %v", *frames/10, taken, time.Since(began).Round(time.Millisecond))
	if taken == 0 {
		t.Error("no forged frame of a member looks honest: the test is too weak")
	}
}
