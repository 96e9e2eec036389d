package games

import (
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// maxBuilding is how much is built at the same time: each takes a core for up to a tenth of a second.
const maxBuilding = 2

// Shared keeps what was built of the land, for clients that are sent the same: those who stand in one place.
type Shared[K comparable] struct {
	largest  int // bytes
	building chan struct{}
	kept     *lru.Cache[K, func() ([][]byte, error)]
}

// NewShared returns a Shared that keeps the last so many, but none that has more than so many bytes.
func NewShared[K comparable](most, largest int) *Shared[K] {
	kept, err := lru.New[K, func() ([][]byte, error)](most)
	if err != nil {
		panic(fmt.Sprintf("keep %d of what is shared: %v", most, err)) // not positive
	}
	return &Shared[K]{largest: largest, building: make(chan struct{}, maxBuilding), kept: kept}
}

// Get returns what was built for a key, or builds it while few others do so. What has no key is built for one client only.
// The caller must not change it.
func (s *Shared[K]) Get(key K, has bool, build func() ([][]byte, error)) ([][]byte, error) {
	bounded := func() ([][]byte, error) {
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
	all, err := result()
	built = true
	size := 0
	for _, part := range all {
		size += len(part)
	}
	if size > s.largest || err != nil {
		s.kept.Remove(key)
	}
	return all, err
}
