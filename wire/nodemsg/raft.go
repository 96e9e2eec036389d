package nodemsg

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/voxelpopuli/voxeld/wire"
)

// RaftFrame holds messages of one node's raft groups to another node. Many groups share a frame. Each pair of nodes has
// one stream per direction; frames have the form of link frames (4-byte length, CBOR).
type RaftFrame struct {
	Messages []RaftMessage `cbor:"1,keyasint"`
}

// RaftMessage is one message of a group, in the encoding of package replica.
type RaftMessage struct {
	Group uint64 `cbor:"1,keyasint"`
	Data  []byte `cbor:"2,keyasint"`
}

// MaxRaftMessages bounds the messages of one frame.
const MaxRaftMessages = 1 << 14

// Valid returns an error if the frame is invalid. It does not check the content of the messages; package replica does.
func (f RaftFrame) Valid() error {
	if len(f.Messages) == 0 || len(f.Messages) > MaxRaftMessages {
		return wire.Refuse(wire.FailBadValue, "a frame has 1 to %d messages, not %d", MaxRaftMessages, len(f.Messages))
	}
	return nil
}

// Busy nodes exchange thousands of raft frames per second. They are encoded and decoded without reflection, in reused
// memory.

// RaftWriter writes raft frames to a stream, each as WriteFrame would. The zero value with W set is ready to use.
type RaftWriter struct {
	W      io.Writer
	buffer []byte
}

// Write writes one frame, in one Write.
func (w *RaftWriter) Write(f RaftFrame) error {
	if err := f.Valid(); err != nil {
		return fmt.Errorf("encode %T: %w", f, err)
	}
	b := append(w.buffer[:0], 0, 0, 0, 0)
	b = appendRaftFrame(b, f)
	if len(b)-4 > wire.MaxFrame {
		return fmt.Errorf("encode %T: %w", f, wire.Refuse(wire.FailTooLong, "%d bytes; at most %d are allowed", len(b)-4, wire.MaxFrame))
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	w.buffer = nil
	if cap(b) <= MaxKept {
		w.buffer = b
	}
	if _, err := w.W.Write(b); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// MaxKept is the most memory, in bytes, that a RaftReader keeps for the next frame.
const MaxKept = 1 << 18

func appendRaftFrame(b []byte, f RaftFrame) []byte {
	b = append(b, wire.CBORMap|1, 1)
	b = wire.AppendCBORHead(b, wire.CBORArray, uint64(len(f.Messages)))
	for _, m := range f.Messages {
		b = wire.AppendCBORHead(append(b, wire.CBORMap|2, 1), wire.CBORUnsigned, m.Group)
		b = append(wire.AppendCBORHead(append(b, 2), wire.CBORBytes, uint64(len(m.Data))), m.Data...)
	}
	return b
}

// RaftReader reads what RaftWriter wrote. The zero value with R set is ready to use.
type RaftReader struct {
	R        *bufio.Reader
	Guard    wire.Guard
	buffer   []byte
	messages []RaftMessage
}

// Read reads one frame, with the errors of ReadFrame. The messages are valid until the next Read.
func (r *RaftReader) Read() ([]RaftMessage, error) {
	size, err := wire.ReadFrameSize(r.R, wire.MaxFrame)
	if err != nil {
		return nil, err
	}
	if cap(r.buffer) > MaxKept {
		r.buffer, r.messages = nil, nil
	}
	if r.buffer, err = r.Guard.ReadBody(r.R, r.buffer, size); err != nil {
		return nil, fmt.Errorf("read frame: %w", err)
	}
	var ok bool
	if r.messages, ok = parseRaftFrame(r.buffer, r.messages[:0]); ok {
		return r.messages, nil
	}
	// This version does not write such a frame; another one may.
	f, err := wire.DecodeCBOR[RaftFrame](r.buffer, wire.MaxFrame)
	return f.Messages, err
}

// parseRaftFrame decodes what appendRaftFrame wrote, and nothing else. The messages share b's memory.
func parseRaftFrame(b []byte, messages []RaftMessage) (all []RaftMessage, ok bool) {
	if len(b) < 2 || b[0] != wire.CBORMap|1 || b[1] != 1 {
		return messages, false
	}
	n, b, ok := wire.CutCBORHead(b[2:], wire.CBORArray)
	if !ok || n == 0 || n > MaxRaftMessages {
		return messages, false
	}
	for range n {
		if len(b) < 2 || b[0] != wire.CBORMap|2 || b[1] != 1 {
			return messages, false
		}
		var m RaftMessage
		if m.Group, b, ok = wire.CutCBORHead(b[2:], wire.CBORUnsigned); !ok || len(b) == 0 || b[0] != 2 {
			return messages, false
		}
		var size uint64
		if size, b, ok = wire.CutCBORHead(b[1:], wire.CBORBytes); !ok || size > uint64(len(b)) {
			return messages, false
		}
		m.Data, b = b[:size:size], b[size:]
		messages = append(messages, m)
	}
	return messages, len(b) == 0
}
