package games

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file lets players of other games have a key (docs/adr/0070).

const (
	minPassword, maxPassword = 8, 64
	maxAttempts              = 6 // to log in, by a connection
	maxNames                 = 3 // that are tried for a guest
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

// logIn prepares another session if a command is /login or /register with a password, or returns why it does not.
func (c *Conn) logIn(text string) (answer string, mine bool) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return "", false
	}
	register, login := strings.EqualFold(words[0], "register"), strings.EqualFold(words[0], "login")
	if !login && (!register || c.key != nil) {
		return "", false
	}
	name, password := c.name, words[len(words)-1]
	switch {
	case c.key != nil:
		return "You are logged in.", true
	case len(words) == 3 && !register:
		name = words[1]
	case len(words) != 2:
		return "Type /register PASSWORD or /login PASSWORD: one word that nobody else knows.", true
	}
	if len(password) < minPassword || len(password) > maxPassword {
		return fmt.Sprintf("A password has at least %d characters, and at most %d. Longer is safer.", minPassword, maxPassword), true
	}
	owner, registered := c.accounts.owner(name)
	switch {
	case register && registered:
		return fmt.Sprintf("The name %s is registered. If it is yours, type /login PASSWORD.", name), true
	case !register && !registered:
		return fmt.Sprintf("The name %s is registered to nobody: /register PASSWORD makes it yours.", name), true
	}
	key := c.accounts.key(name, password)
	if key == nil {
		return "Too many players are logging in. Try again in a few seconds.", true
	}
	public := key.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented
	if registered && owner != player.IDOf(public) {
		return fmt.Sprintf("That is not the password of %s. A name that was registered in a browser can be used there only.", name), true
	}
	c.key, c.told = key, "You are logged in as "+name+"."
	c.join.Name, c.join.Key = name, hex.EncodeToString(public)
	if register {
		c.command, c.told = "register", ""
	}
	c.state.CompareAndSwap(lastSession, anotherSession) // unless the session ends just now
	return "", true
}

func (c *Conn) sign(text []byte) string { return hex.EncodeToString(ed25519.Sign(c.key, text)) }

// signed returns a command with the player's signature.
func (c *Conn) signed(text string) sessionmsg.Command {
	c.lastSeq = max(c.lastSeq+1, uint64(time.Now().UnixMicro())) //nolint:gosec // positive
	act := nodemsg.Act{Seq: c.lastSeq, Name: c.welcome.Name, Text: text}
	return sessionmsg.Command{Text: text, Seq: act.Seq, Signature: c.sign(policy.SignedText(c.world, act))}
}
