// Package signature verifies the signatures of edits, many at once, and remembers the results: a node meets an edit of
// a region that it leads when the edit arrives, and again when the edit is applied.
//
// What is valid is defined by ZIP 215 (https://zips.z.cash/zip-0215), so that verifying many signatures at once never
// has another result than verifying one: all members of a region must decide the same. Any goroutine may use a
// Verifier.
package signature

import (
	"crypto/rand"
	"runtime"
	"sync"

	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519/extra/cache"
	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// remembered is how many results a Verifier remembers at least: those of the edits that are under way in a node's
	// regions. It holds up to twice as many, at about 200 bytes each.
	remembered = 16384
	// keys is how many players' keys are kept decoded, at about 1.5 kB each.
	keys = 1024
	// atOnce is how many signatures are verified together: 64 take half of the time that they take one by one, and more
	// hardly less.
	atOnce = 64
)

var options = &ed25519.Options{Verify: ed25519.VerifyOptionsZIP_215}

// Verifier verifies signatures in one world.
type Verifier struct {
	world string
	keys  *cache.Verifier

	mu struct {
		sync.Mutex
		results, older map[nodemsg.Intent]bool // at most remembered each
	}
}

// New returns a verifier for the world with the id.
func New(world string) *Verifier {
	v := &Verifier{world: world, keys: cache.NewVerifier(cache.NewLRUCache(keys))}
	v.mu.results = make(map[nodemsg.Intent]bool)
	return v
}

// Signed reports of each edit with a key whether the key has signed it. Of edits without a key it reports false.
func (v *Verifier) Signed(edits []nodemsg.Intent) []bool {
	signed := make([]bool, len(edits))
	unknown := v.recall(edits, signed)
	var parallel errgroup.Group
	parallel.SetLimit(runtime.GOMAXPROCS(0))
	for from := atOnce; from < len(unknown); from += atOnce {
		some := unknown[from:min(from+atOnce, len(unknown))]
		parallel.Go(func() error {
			v.verify(edits, some, signed)
			return nil
		})
	}
	v.verify(edits, unknown[:min(atOnce, len(unknown))], signed)
	parallel.Wait() //nolint:errcheck // always nil
	v.remember(edits, unknown, signed)
	return signed
}

// recall sets the results that are remembered, and returns the numbers of the other edits that have a key.
func (v *Verifier) recall(edits []nodemsg.Intent, signed []bool) (unknown []int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range edits {
		if edits[i].Key == [len(edits[i].Key)]byte{} {
			continue
		}
		result, found := v.mu.results[edits[i]]
		if !found {
			result, found = v.mu.older[edits[i]]
		}
		if signed[i] = result; !found {
			unknown = append(unknown, i)
		}
	}
	return unknown
}

func (v *Verifier) remember(edits []nodemsg.Intent, numbers []int, signed []bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, i := range numbers {
		if len(v.mu.results) >= remembered {
			v.mu.older, v.mu.results = v.mu.results, make(map[nodemsg.Intent]bool)
		}
		v.mu.results[edits[i]] = signed[i]
	}
}

// verify verifies the edits with the numbers.
func (v *Verifier) verify(edits []nodemsg.Intent, numbers []int, signed []bool) {
	texts := make([][]byte, len(numbers))
	for n, i := range numbers {
		texts[n] = edits[i].SignedText(v.world)
	}
	if len(numbers) > 1 {
		batch := ed25519.NewBatchVerifierWithCapacity(len(numbers))
		for n, i := range numbers {
			v.keys.AddWithOptions(batch, edits[i].Key[:], texts[n], edits[i].Signature[:], options)
		}
		if batch.VerifyBatchOnly(rand.Reader) {
			for _, i := range numbers {
				signed[i] = true
			}
			return
		}
	}
	for n, i := range numbers {
		signed[i] = v.keys.VerifyWithOptions(edits[i].Key[:], texts[n], edits[i].Signature[:], options)
	}
}
