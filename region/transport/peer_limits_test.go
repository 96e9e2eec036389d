package transport

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Each node has a limit of its own, and as many of them as there may be take a bounded amount of memory.
func TestPeerLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := NewPeerLimits(2, 5)
		asks := func(peer string) (n int) {
			for limits.Allow(peer) {
				n++
			}
			return n
		}
		if a, again, b := asks("a"), asks("a"), asks("b"); a != 5 || again != 0 || b != 5 {
			t.Errorf("a asks %d times, then %d, and b %d", a, again, b)
		}
		time.Sleep(time.Second)
		if n := asks("a"); n != 2 {
			t.Errorf("a asks %d times a second later", n)
		}
		for i := range 2 * maxLimited {
			limits.Allow(fmt.Sprint(i))
		}
		if n := limits.peers.Len(); n != maxLimited {
			t.Errorf("%d nodes are remembered", n)
		}
	})
}
