package minecraft

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"

	"github.com/voxelpopuli/voxeld/wire"
)

const (
	// maxPacket is the longest packet that a client may send, in bytes; the client's own bound for what it is sent is 2
	// MiB.
	maxPacket = 64 << 10
	// compressFrom is the size from which packets are deflated, in bytes.
	compressFrom = 512
)

// frameReader reads the packets of a client. Its buffers are reused.
type frameReader struct {
	in     *bufio.Reader
	frame  []byte
	plain  []byte
	zipped io.ReadCloser // nil until it is needed
}

func newFrameReader(c io.Reader) *frameReader { return &frameReader{in: bufio.NewReaderSize(c, 4<<10)} }

func errTooLong(n uint64) error {
	return wire.Refuse(wire.FailBadValue, "Your client sent a packet of %d bytes; at most %d are read.", n, maxPacket)
}

// next waits for a frame: a packet, which may be deflated. It is valid until the next call.
func (r *frameReader) next() ([]byte, error) {
	size, err := binary.ReadUvarint(r.in)
	switch {
	case err != nil:
		return nil, err
	case size == 0:
		return nil, wire.Refuse(wire.FailBadValue, "Your client sent an empty packet.")
	case size > maxPacket:
		return nil, errTooLong(size)
	}
	r.frame = append(r.frame[:0], make([]byte, size)...)
	_, err = io.ReadFull(r.in, r.frame)
	return r.frame, err
}

// inflate returns the packet in a frame of a connection that is compressed.
func (r *frameReader) inflate(frame []byte) ([]byte, error) {
	size, n := binary.Uvarint(frame)
	switch {
	case n <= 0:
		return nil, wire.Refuse(wire.FailBadValue, "Your client sent a packet without its size.")
	case size == 0:
		return frame[n:], nil
	case size > maxPacket:
		return nil, errTooLong(size)
	}
	if err := r.reset(frame[n:]); err != nil {
		return nil, err
	}
	r.plain = append(r.plain[:0], make([]byte, size)...)
	if _, err := io.ReadFull(r.zipped, r.plain); err != nil {
		return nil, wire.Refuse(wire.FailBadValue, "Your client sent a packet that cannot be inflated.")
	}
	return r.plain, nil
}

func (r *frameReader) reset(deflated []byte) (err error) {
	if again, ok := r.zipped.(zlib.Resetter); ok {
		err = again.Reset(bytes.NewReader(deflated), nil)
	} else {
		r.zipped, err = zlib.NewReader(bytes.NewReader(deflated))
	}
	if err != nil {
		return wire.Refuse(wire.FailBadValue, "Your client sent a packet that cannot be inflated.")
	}
	return nil
}

// deflaters are shared by all connections: each takes some hundred KiB.
var deflaters = sync.Pool{New: func() any {
	w, err := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return w
}}

// appendFrame appends the frame of a packet.
func appendFrame(to []byte, p packet, compressed bool) []byte {
	switch {
	case !compressed:
		return append(packet(to).varint(len(p)), p...)
	case len(p) < compressFrom:
		return append(packet(to).varint(len(p)+1).u8(0), p...)
	}
	var deflated bytes.Buffer
	w := deflaters.Get().(*zlib.Writer)
	w.Reset(&deflated)
	w.Write(p) //nolint:errcheck // into memory
	w.Close()  //nolint:errcheck // into memory
	deflaters.Put(w)
	size := packet{}.varint(len(p))
	to = packet(to).varint(len(size) + deflated.Len())
	return append(append(to, size...), deflated.Bytes()...)
}
