package games

import (
	"crypto/ed25519"
	"strings"
	"sync"

	"golang.org/x/crypto/argon2"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/player"
)

// This file lets players of other games have a key (docs/adr/0070).

const (
	// All players of a node may log in so often, each second and at once.
	keyRate, keysAtOnce = 4, 20
	// What making a key costs: some 60 ms of a core.
	keyPasses, keyMemory = 3, 32 << 10 // KiB
)

// Accounts are the players of a world who have a name and a password.
type Accounts struct {
	world  string // its id
	owner  func(name string) (owner player.ID, registered bool)
	rate   *rate.Limiter
	making sync.Mutex // keys, which take memory: one at a time
}

// NewAccounts returns the accounts of a world. Owner returns the player to whom a name is registered.
func NewAccounts(world string, owner func(name string) (owner player.ID, registered bool)) *Accounts {
	return &Accounts{world: world, owner: owner, rate: rate.NewLimiter(keyRate, keysAtOnce)}
}

// key returns the key that a name and a password stand for, or nil if too many are asked for.
func (a *Accounts) key(name, password string) ed25519.PrivateKey {
	if !a.rate.Allow() {
		return nil
	}
	a.making.Lock()
	defer a.making.Unlock()
	salt := "voxeld password 1\n" + a.world + "\n" + strings.ToLower(name)
	return ed25519.NewKeyFromSeed(argon2.IDKey([]byte(password), []byte(salt), keyPasses, keyMemory, 1, ed25519.SeedSize))
}
