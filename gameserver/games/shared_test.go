package games

import (
	"errors"
	"sync"
	"testing"
)

// What many clients ask for at once is built once, and what is too large, or fails, is not kept.
func TestShared(t *testing.T) {
	s := NewShared[int](2, 10, SizeOf)
	built := 0
	var mu sync.Mutex
	get := func(key, size int, fails error) {
		got, err := s.Get(key, key > 0, func() ([][]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			built++
			return [][]byte{make([]byte, size/2), make([]byte, size-size/2)}, fails
		})
		if !errors.Is(err, fails) || len(got) != 2 || len(got[0])+len(got[1]) != size {
			t.Errorf("%d is %v, %v", key, got, err)
		}
	}
	var clients sync.WaitGroup
	for range 10 {
		clients.Go(func() { get(1, 10, nil) })
	}
	clients.Wait()
	if built != 1 {
		t.Errorf("built %d times", built)
	}
	for _, c := range []struct {
		key, size int
		fails     error
	}{{0, 5, nil}, {2, 11, nil}, {3, 5, errors.ErrUnsupported}} {
		built = 0
		get(c.key, c.size, c.fails)
		get(c.key, c.size, c.fails)
		if built != 2 {
			t.Errorf("%+v is built %d times", c, built)
		}
	}
	if s.kept.Len() > 2 {
		t.Errorf("%d are kept", s.kept.Len())
	}
}
