package health

import (
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// maxContradicted bounds how many nodes Contradictions remembers, and contradictedFor for how long.
	maxContradicted = 64
	contradictedFor = 24 * time.Hour
)

// Contradictions remembers the nodes whose reports others contradicted. Honest nodes are not among them. Its methods
// may be called from any goroutine.
type Contradictions struct {
	mu    sync.Mutex
	nodes *lru.Cache[string, contradicted]
}

type contradicted struct {
	reports int
	what    string // the last one
	at      time.Time
}

// NewContradictions returns an empty memory.
func NewContradictions() *Contradictions {
	nodes, err := lru.New[string, contradicted](maxContradicted)
	if err != nil {
		panic(err) // cannot happen: the size is positive
	}
	return &Contradictions{nodes: nodes}
}

// Add notes that a node's report was contradicted. What says what it had reported.
func (c *Contradictions) Add(peer, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, _ := c.nodes.Get(peer)
	c.nodes.Add(peer, contradicted{before.reports + 1, what, time.Now()})
}

// each calls visit with each node, and what is known of it, for people.
func (c *Contradictions) each(visit func(peer, what string)) {
	for _, peer := range c.nodes.Keys() {
		n, known := c.nodes.Peek(peer)
		if !known || time.Since(n.at) > contradictedFor {
			continue
		}
		times := fmt.Sprintf("%d times", n.reports)
		if n.reports == 1 {
			times = "once"
		}
		visit(peer, fmt.Sprintf("other nodes contradicted it %s, last at %s: it reported that %s", times, n.at.UTC().Format(time.RFC3339), n.what))
	}
}
