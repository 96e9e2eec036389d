package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
)

// PackChunk deflates (raw, RFC 1951) a chunk in the chunk codec, for ChunkData.Data.
func PackChunk(encoded []byte) ([]byte, error) { return NewDeflater().Deflate(encoded) }

// Deflater packs one chunk after another, and keeps the half megabyte that deflating needs.
type Deflater struct{ w *flate.Writer }

// packLevel is a compromise for natural land, measured per section and chunk: level 5 has 580 bytes in 0.13 ms, level 1
// 690 in 0.1 ms, level 6 560 in 0.17 ms. The standard library at the same level has 570 bytes in 0.24 ms.
const packLevel = 5

// NewDeflater returns a new packer.
func NewDeflater() *Deflater {
	w, err := flate.NewWriter(nil, packLevel)
	if err != nil {
		panic(err) // the level is valid
	}
	return &Deflater{w: w}
}

// Deflate deflates like PackChunk.
func (p *Deflater) Deflate(encoded []byte) ([]byte, error) {
	var b bytes.Buffer
	p.w.Reset(&b)
	if _, err := p.w.Write(encoded); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	if err := p.w.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return bytes.Clone(b.Bytes()), nil
}

// DeflateFast returns a writer that deflates (raw) what is written to it, as fast as possible; for much that is used
// once.
func DeflateFast(to io.Writer) io.WriteCloser {
	w, err := flate.NewWriter(to, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return w
}

// UnpackChunk is the inverse of PackChunk. It stops with an error if the result would exceed MaxChunkBytes.
func UnpackChunk(data []byte) ([]byte, error) { return Inflate("chunk", data, MaxChunkBytes) }

// Inflate inflates what a Packer has packed; the result has at most most bytes.
func Inflate(what string, data []byte, most int64) ([]byte, error) {
	r := flate.NewReader(bytes.NewReader(data))
	plain, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, Refuse(FailBadValue, "unpack %s: %v", what, err)
	}
	if int64(len(plain)) > most {
		return nil, Refuse(FailTooLong, "unpack %s: more than %d bytes", what, most)
	}
	if err := r.Close(); err != nil && !errors.Is(err, io.EOF) {
		return nil, Refuse(FailBadValue, "unpack %s: %v", what, err)
	}
	return plain, nil
}
