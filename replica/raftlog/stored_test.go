package raftlog

import (
	"errors"
	"testing"

	"github.com/voxelpopuli/voxeld/kv"
)

// A group with a log but no state was stored here once: it must not be founded again.
func TestLogWithoutStateIsDamage(t *testing.T) {
	d := make(tables)
	for _, group := range []uint64{7, 8} {
		if _, conf, err := LoadState(d, group); err != nil || conf != nil {
			t.Fatalf("nothing is stored: %v %v", conf, err)
		}
	}
	d.commit([]kv.Write{{Table: TableLog, Key: LogKey(7, 2), Value: make([]byte, entryHead)}})
	if _, _, err := LoadState(d, 7); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("a log without a state: %v", err)
	}
	if _, conf, err := LoadState(d, 8); err != nil || conf != nil {
		t.Errorf("another group: %v %v", conf, err)
	}
}
