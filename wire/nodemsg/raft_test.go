package nodemsg

import (
	"bufio"
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/wire"
)

func anyRaftFrame(t *rapid.T) RaftFrame {
	return RaftFrame{Messages: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) RaftMessage {
		return RaftMessage{
			Group: rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 300)).Draw(t, "group"),
			Data:  rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data"),
		}
	}), 1, 30).Draw(t, "messages")}
}

// RaftWriter writes the same bytes as WriteFrame, and RaftReader reads them back.
func TestRaftFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.SliceOfN(rapid.Custom(anyRaftFrame), 1, 4).Draw(t, "frames")
		var got, want bytes.Buffer
		w := RaftWriter{W: &got}
		for _, f := range frames {
			if err := w.Write(f); err != nil {
				t.Fatal(err)
			}
			if err := wire.WriteFrame(&want, f); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatalf("written\n%x, canonical is\n%x", got.Bytes(), want.Bytes())
		}
		r := RaftReader{R: bufio.NewReader(&got)}
		for _, f := range frames {
			messages, err := r.Read()
			if err != nil || len(messages) != len(f.Messages) {
				t.Fatalf("%d messages of %d, %v", len(messages), len(f.Messages), err)
			}
			for i, m := range messages {
				if m.Group != f.Messages[i].Group || !bytes.Equal(m.Data, f.Messages[i].Data) {
					t.Fatalf("message %d is %v, was %v", i, m, f.Messages[i])
				}
			}
		}
	})
}

func TestRaftWriterRefuses(t *testing.T) {
	var out bytes.Buffer
	w := RaftWriter{W: &out}
	if err := w.Write(RaftFrame{}); err == nil {
		t.Error("a frame without messages was written")
	}
	if err := w.Write(RaftFrame{Messages: []RaftMessage{{Data: make([]byte, wire.MaxFrame)}}}); err == nil {
		t.Error("a frame that is too long was written")
	}
	if out.Len() > 0 {
		t.Errorf("%d bytes of refused frames", out.Len())
	}
}

// FuzzReadRaftFrame checks that RaftReader and ReadFrame accept and refuse the same input.
func FuzzReadRaftFrame(f *testing.F) {
	f.Add(appendRaftFrame(nil, RaftFrame{Messages: []RaftMessage{{Group: 1 << 40, Data: []byte("vote")}, {Group: 3}}}))
	f.Add([]byte{0xa1, 1, 0x81, 0xa1, 1, 7})                // a message without data
	f.Add([]byte{0xa1, 1, 0x81, 0xa2, 1, 0x18, 7, 2, 0x40}) // not canonical
	f.Add([]byte{0xa2, 1, 0x81, 0xa2, 1, 7, 2, 0x40, 9, 9}) // a field of another version
	f.Add([]byte{0xa1, 1, 0x9b, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		frame := append([]byte{byte(len(b) >> 24), byte(len(b) >> 16), byte(len(b) >> 8), byte(len(b))}, b...)
		want, wantErr := wire.ReadFrame[RaftFrame](bufio.NewReader(bytes.NewReader(frame)), wire.MaxFrame)
		r := RaftReader{R: bufio.NewReader(bytes.NewReader(frame))}
		got, err := r.Read()
		if (err == nil) != (wantErr == nil) || len(got) != len(want.Messages) {
			t.Fatalf("%x: %d messages, %v; ReadFrame: %d, %v", b, len(got), err, len(want.Messages), wantErr)
		}
		for i, m := range got {
			if m.Group != want.Messages[i].Group || !bytes.Equal(m.Data, want.Messages[i].Data) {
				t.Fatalf("%x: message %d is %v, with ReadFrame %v", b, i, m, want.Messages[i])
			}
		}
	})
}
