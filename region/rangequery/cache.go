package rangequery

import lru "github.com/hashicorp/golang-lru/v2"

func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // cannot happen: the sizes are positive constants
	}
	return cache
}
