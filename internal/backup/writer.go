package backup

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/voxelpopuli/voxeld/wire"
)

// Writer writes a backup.
type Writer struct {
	zip     *zstd.Encoder
	sum     hash.Hash
	summary Summary
	problem bool
}

// NewWriter begins a backup.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	if _, err := w.Write(magic); err != nil {
		return nil, fmt.Errorf("write backup: %w", err)
	}
	zip, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("write backup: %w", err)
	}
	out := &Writer{zip: zip, sum: sha256.New()}
	return out, out.Write(Record{Header: &h})
}

// Write adds a record. Records that come from another node are checked by their Reader.
func (w *Writer) Write(r Record) error {
	var frame bytes.Buffer
	if err := wire.WriteFrame(&frame, r); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	if r.Summary == nil {
		w.sum.Write(frame.Bytes())
	}
	switch {
	case r.Group != nil:
		w.summary.Groups++
		w.problem = w.problem || r.Group.Problem != ""
	case r.End != nil:
		w.summary.Rows += r.End.Rows
	}
	if _, err := w.zip.Write(frame.Bytes()); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	return nil
}

// Flush sends what was written so far to the underlying writer.
func (w *Writer) Flush() error { return w.zip.Flush() }

// AddRows counts rows of a table.
func (w *Writer) AddRows(n int) { w.summary.Rows += uint64(n) }

// Problem records that something could not be read that belongs to no region.
func (w *Writer) Problem(text string) {
	w.problem = true
	if len(w.summary.Problems) < maxProblems {
		w.summary.Problems = append(w.summary.Problems, text)
	}
}

// Certify adds what tells whose the attestations are: the charters since the genesis, in order, and certificates of
// nodes.
func (w *Writer) Certify(charters, certificates [][]byte) {
	w.summary.Charters, w.summary.Certificates = charters, certificates[:min(len(certificates), maxNodes)]
}

// Complete reports whether nothing is missing so far.
func (w *Writer) Complete() bool { return !w.problem }

// Close ends the backup. It does not close the underlying writer.
func (w *Writer) Close() error {
	w.summary.Sum = ID(w.sum.Sum(nil))
	if err := w.Write(Record{Summary: &w.summary}); err != nil {
		return err
	}
	if err := w.zip.Close(); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	return nil
}
