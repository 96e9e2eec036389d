package store

import (
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// Bounds of one record or transaction. It takes whole commits until it reaches one of them; a single commit may exceed
// them.
const (
	maxBatchBytes  = 4 << 20
	maxBatchWrites = 4096
)

// request is a caller that waits for its writes.
type request struct {
	writes []kv.Write
	bytes  int
	answer chan error // buffered: the sender never waits
}

func (r *request) apply(tx *bbolt.Tx) error {
	for _, w := range r.writes {
		if err := put(tx, w); err != nil {
			return fmt.Errorf("write to table %s: %w", w.Table, err)
		}
	}
	return nil
}

// batchLen returns how many requests from the head of the queue share the next transaction: at least one.
func batchLen(queue []*request) int {
	bytes, writes := 0, 0
	for i, r := range queue {
		bytes += r.bytes
		writes += len(r.writes)
		if i > 0 && (bytes > maxBatchBytes || writes > maxBatchWrites) {
			return i
		}
	}
	return len(queue)
}

func answer(requests []*request, err error) {
	for _, r := range requests {
		r.answer <- err
	}
}
