package store

import (
	"errors"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// A disk that hangs while bbolt ends a checkpoint keeps nobody waiting whose reads are bounded, and is read again when
// it answers.
func TestBoundedReads(t *testing.T) {
	db := run(t, Options{Path: newPath(t)})
	mustCommit(t, db, put1("t", "k", "v")...)
	if err := db.flush(func() error { return nil }); err != nil { // else the overlay has it
		t.Fatal(err)
	}
	lock := (*sync.Mutex)(unsafe.Pointer(reflect.ValueOf(db.tables.bolt).Elem().FieldByName("metalock").UnsafeAddr())) //nolint:gosec // as bbolt holds it
	b := NewBounded(db)
	read := func(want error, limit time.Duration) {
		t.Helper()
		began := time.Now()
		value, err := b.Get("t", []byte("k"))
		if !errors.Is(err, want) || want == nil && string(value) != "v" {
			t.Errorf("read %q, %v; want %v", value, err, want)
		}
		if took := time.Since(began); took > limit {
			t.Errorf("a read took %v", took)
		}
	}
	read(nil, readWithin)
	lock.Lock()
	read(ErrSlow, 5*readWithin)
	for range 100 {
		read(ErrSlow, readWithin/2)
	}
	lock.Unlock()
	for b.overdue.Load() > 0 {
		runtime.Gosched()
	}
	read(nil, readWithin)
}
