// Package signature verifies the signatures of edits, those of many callers at once: a single one takes twice as long.
// A node verifies an edit once: on the leader of its region when it arrives, elsewhere when it is applied.
//
// What is valid is defined by ZIP 215 (https://zips.z.cash/zip-0215), so that verifying many signatures at once never
// has another result than verifying one: all members of a region must decide the same. Any goroutine may use a
// Verifier.
package signature

import (
	"crypto/rand"
	"runtime"
	"slices"
	"sync"

	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519/extra/cache"
	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// keys is how many players' keys are kept decoded, at about 1.5 kB each.
	keys = 1024
	// atOnce is how many signatures are verified together: 32 take half of the time that they take one by one, and more
	// hardly less. If one of them is wrong, all are verified again, one by one.
	atOnce = 32
)

var options = &ed25519.Options{Verify: ed25519.VerifyOptionsZIP_215}

// Verifier verifies signatures in one world.
type Verifier struct {
	world string
	keys  *cache.Verifier

	verifying sync.Mutex // held by a caller who verifies, for all who wait; locked before mu

	mu struct {
		sync.Mutex
		waiting []*request
	}
}

// request is the signatures of one caller.
type request struct {
	signatures []signature
	verified   bool // guarded by Verifier.verifying
}

// signature is the signature of an edit, and where its result goes.
type signature struct {
	*nodemsg.Intent
	signed *bool
}

// New returns a verifier for the world with the id.
func New(world string) *Verifier {
	return &Verifier{world: world, keys: cache.NewVerifier(cache.NewLRUCache(keys))}
}

// Signed reports of each edit with a key whether the key has signed it. Of edits without a key it reports false.
//
// Callers with few edits take turns: one verifies those of all who wait. Who has many gains nothing by that, and would
// let the others wait.
func (v *Verifier) Signed(edits []nodemsg.Intent) []bool {
	signed := make([]bool, len(edits))
	r := &request{}
	for i := range edits {
		if edits[i].Key != [len(edits[i].Key)]byte{} {
			r.signatures = append(r.signatures, signature{&edits[i], &signed[i]})
		}
	}
	if len(r.signatures) == 0 {
		return signed
	}
	if len(r.signatures) >= atOnce {
		v.verifyAll(r.signatures)
		return signed
	}
	v.mu.Lock()
	v.mu.waiting = append(v.mu.waiting, r)
	v.mu.Unlock()
	v.verifying.Lock()
	defer v.verifying.Unlock()
	if !r.verified {
		runtime.Gosched() // goroutines that the same commit, or the same round of the network, has made runnable may add some
		v.verifyWith(r)
	}
	return signed
}

// verifyWith verifies the signatures of a caller, and of others who wait, as many as take hardly longer together. The
// caller holds verifying.
func (v *Verifier) verifyWith(r *request) {
	together, all := []*request{r}, r.signatures
	v.mu.Lock()
	v.mu.waiting = slices.DeleteFunc(v.mu.waiting, func(other *request) bool {
		fits := other != r && len(all)+len(other.signatures) <= atOnce*runtime.GOMAXPROCS(0)
		if fits {
			together, all = append(together, other), append(all, other.signatures...)
		}
		return fits || other == r
	})
	v.mu.Unlock()
	v.verifyAll(all)
	for _, one := range together {
		one.verified = true
	}
}

// verifyAll verifies any number of signatures, on all cores.
func (v *Verifier) verifyAll(all []signature) {
	var parallel errgroup.Group
	parallel.SetLimit(runtime.GOMAXPROCS(0))
	for from := atOnce; from < len(all); from += atOnce {
		parallel.Go(func() error {
			v.verify(all[from:min(from+atOnce, len(all))])
			return nil
		})
	}
	v.verify(all[:min(atOnce, len(all))])
	parallel.Wait() //nolint:errcheck // always nil
}

// verify verifies signatures together.
func (v *Verifier) verify(some []signature) {
	texts := make([][]byte, len(some))
	for n, s := range some {
		texts[n] = s.SignedText(v.world)
	}
	if len(some) > 1 {
		batch := ed25519.NewBatchVerifierWithCapacity(len(some))
		for n, s := range some {
			v.keys.AddWithOptions(batch, s.Key[:], texts[n], s.Signature[:], options)
		}
		if batch.VerifyBatchOnly(rand.Reader) {
			for _, s := range some {
				*s.signed = true
			}
			return
		}
	}
	for n, s := range some {
		*s.signed = v.keys.VerifyWithOptions(s.Key[:], texts[n], s.Signature[:], options)
	}
}
