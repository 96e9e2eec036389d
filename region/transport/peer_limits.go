package transport

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// maxLimited bounds the nodes of which questions are counted: of those that asked last.
const maxLimited = 1024

// PeerLimits bounds how often each node may ask something. Any goroutine may use it.
type PeerLimits struct {
	limit rate.Limit
	burst int
	peers *lru.Cache[string, *rate.Limiter]
}

// NewPeerLimits returns limits of so many questions a second, and so many at once.
func NewPeerLimits(limit rate.Limit, burst int) *PeerLimits {
	peers, err := lru.New[string, *rate.Limiter](maxLimited)
	if err != nil {
		panic(err) // only if the size is not positive
	}
	return &PeerLimits{limit, burst, peers}
}

// Allow counts a question of a node, and reports whether it is answered.
func (p *PeerLimits) Allow(peer string) bool { return p.AllowN(peer, 1) }

// AllowN counts a question of a node as n, or not at all if it is not answered.
func (p *PeerLimits) AllowN(peer string, n int) bool {
	limit := rate.NewLimiter(p.limit, p.burst)
	if before, known, _ := p.peers.PeekOrAdd(peer, limit); known {
		limit = before
		p.peers.Get(peer) // it asked last
	}
	return limit.AllowN(time.Now(), n)
}
