package games

import (
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// maxBuilding is how much is built at the same time: each takes a core for up to a tenth of a second.
const maxBuilding = 2

// Shared keeps what was built of the land, for clients that are sent the same: those who stand in one place.
type Shared[K comparable, V any] struct {
	largest  int         // bytes
	size     func(V) int // bytes
	building chan struct{}
	kept     *lru.Cache[K, func() (V, error)]
}

// SizeOf returns how many bytes parts have.
func SizeOf(parts [][]byte) (size int) {
	for _, part := range parts {
		size += len(part)
	}
	return size
}

// NewShared returns a Shared that keeps the last so many, but none that has more than so many bytes.
func NewShared[K comparable, V any](most, largest int, size func(V) int) *Shared[K, V] {
	kept, err := lru.New[K, func() (V, error)](most)
	if err != nil {
		panic(fmt.Sprintf("keep %d of what is shared: %v", most, err)) // not positive
	}
	return &Shared[K, V]{largest: largest, size: size, building: make(chan struct{}, maxBuilding), kept: kept}
}

// Get returns what was built for a key, or builds it while few others do so. What has no key is built for one client
// only. The caller must not change it.
func (s *Shared[K, V]) Get(key K, has bool, build func() (V, error)) (V, error) {
	bounded := func() (V, error) {
		s.building <- struct{}{}
		defer func() { <-s.building }()
		return build()
	}
	if !has {
		return bounded()
	}
	result, known := s.kept.Get(key)
	if !known {
		result = sync.OnceValues(bounded)
		if other, known, _ := s.kept.PeekOrAdd(key, result); known {
			result = other
		}
	}
	built := false
	defer func() {
		if !built { // it panics: the next one tries again
			s.kept.Remove(key)
		}
	}()
	v, err := result()
	built = true
	if err != nil || s.size(v) > s.largest {
		s.kept.Remove(key)
	}
	return v, err
}
