package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// A peer is searched for at most once in searchEvery.
func TestSearchesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(Host)
		h.mu.searched = make(map[peer.ID]time.Time)
		for range 3 {
			if !h.maySearch("a") || !h.maySearch("b") {
				t.Error("not searched for")
			}
			if h.maySearch("a") || h.maySearch("b") {
				t.Error("searched for twice")
			}
			<-time.After(searchEvery + time.Millisecond)
		}
	})
}
