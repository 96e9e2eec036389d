// Package wake wakes goroutines that have something to do.
package wake

// Signal wakes one goroutine, which receives from it. It holds a token while there is something to do.
type Signal chan struct{}

// NewSignal returns a signal that is not set.
func NewSignal() Signal { return make(Signal, 1) }

// Set puts a token into the signal, unless it holds one already. Any goroutine may call it.
func (s Signal) Set() {
	select {
	case s <- struct{}{}:
	default:
	}
}
