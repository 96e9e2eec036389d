package raftlog

import (
	"errors"
	"testing"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// A group with a log but no state was stored here once: it must not be founded again.
func TestLogWithoutStateIsDamage(t *testing.T) {
	d := make(kv.Tables)
	for _, group := range []uint64{7, 8} {
		if _, conf, err := LoadState(d, group); err != nil || conf != nil {
			t.Fatalf("nothing is stored: %v %v", conf, err)
		}
	}
	if err := d.Commit([]kv.Write{{Table: TableLog, Key: LogKey(7, 2), Value: make([]byte, entryHead)}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := LoadState(d, 7); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("a log without a state: %v", err)
	}
	if _, conf, err := LoadState(d, 8); err != nil || conf != nil {
		t.Errorf("another group: %v %v", conf, err)
	}
}

// A group that is restored twice from the same origin goes on at different indexes, beyond all that it may have used
// since.
func TestRestoresDiffer(t *testing.T) {
	from := Origin{Index: 100, Term: 3, Next: 4, Recovered: 1}
	seen := make(map[uint64]bool)
	for range 3 {
		conf, writes, err := Restore(kv.Tables{}, "me", 7, from)
		if err != nil {
			t.Fatal(err)
		}
		if conf.Recovered != 2 || conf.Own < from.Next+restoreGap || conf.Index < from.Index+restoreGap || seen[conf.Index] {
			t.Errorf("restored as %+v, after %v", conf, seen)
		}
		seen[conf.Index] = true
		m := kv.Tables{}
		if err := m.Commit(writes); err != nil {
			t.Fatal(err)
		}
		if s, stored, err := LoadState(m, 7); err != nil || s.Applied != conf.Index || stored.Own != conf.Own {
			t.Errorf("stored %+v, %+v, %v", s, stored, err)
		}
	}
}
