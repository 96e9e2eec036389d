package games

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
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
	// maxLast is the size of the largest message that ends a session, beyond which it is not looked for.
	maxLast = 4 << 10

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

// account is a client whose player may have a key: it answers challenges and signs for the game. When the player logs in, the session of the
// guest ends, and another one begins on the same connection.
type account struct {
	Client
	accounts *Accounts
	name     string // under which the client came
	attempts int    // to log in
	names    int    // that were tried for the guest

	// Set before a session begins.
	join    sessionmsg.Join
	key     ed25519.PrivateKey // nil for a guest
	command string             // the first one of the session; empty for none
	told    string             // to the player, when they have arrived

	challenges chan sessionmsg.Challenge
	arrived    chan struct{}      // closed when the session has welcomed the player, or has ended; the rest is set before
	arrive     func()             // closes it
	welcome    sessionmsg.Welcome // of this session
	world      string             // of the challenge
	lastSeq    uint64             // of a signed command
	state      atomic.Int32       // lastSession, anotherSession or closed
}

// The states of an account.
const (
	lastSession    = iota // the connection ends with the session
	anotherSession        // another one follows it
	closed                // the connection ends
)

func newAccount(c Client, accounts *Accounts, join sessionmsg.Join) *account {
	a := &account{Client: c, accounts: accounts, name: join.Name, join: join}
	a.told = "You are a guest. /register PASSWORD keeps your name for you, /login PASSWORD makes you who you were."
	return a
}

// next reports whether another session follows.
func (a *account) next() bool { return a.state.CompareAndSwap(anotherSession, lastSession) }

// begin prepares a session.
func (a *account) begin() sessionmsg.Join {
	arrived := make(chan struct{})
	a.challenges, a.arrived = make(chan sessionmsg.Challenge, 1), arrived
	a.arrive = sync.OnceFunc(func() { close(arrived) })
	a.welcome = sessionmsg.Welcome{}
	return a.join
}

// Read waits for the client's next message, which is signed if it must be.
func (a *account) Read() ([]byte, error) {
	select {
	case c := <-a.challenges:
		a.world = c.World
		return sessionmsg.EncodeClientCBOR(sessionmsg.Prove{Signature: a.sign(player.ProofText(c.Nonce, c.World))})
	case <-a.arrived:
	}
	if text := a.command; text != "" {
		a.command = ""
		return sessionmsg.EncodeClientCBOR(a.signed(text))
	}
	for {
		data, err := a.Client.Read()
		if err != nil || data[0] == sessionmsg.ClientMove {
			return data, err
		}
		m, err := sessionmsg.DecodeClientCBOR(data)
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case sessionmsg.Edit:
			if a.key == nil || !a.welcome.Signed {
				return data, nil
			}
			m.Signature = a.sign(player.EditText(a.world, m.Seq, grid.Pos{X: m.X, Y: m.Y, Z: m.Z}, m.Block, m.Text))
			return sessionmsg.EncodeClientCBOR(m)
		case sessionmsg.Command:
			answer, mine := a.logIn(m.Text)
			switch {
			case a.state.Load() != lastSession:
				return nil, io.EOF // the guest's session ends
			case mine:
				if a.attempts++; a.attempts >= maxAttempts {
					return nil, wire.Refuse(wire.FailNotAllowed, "You have tried to log in too often.")
				}
				if err := a.tell(answer); err != nil {
					return nil, err
				}
			case a.key == nil:
				return data, nil
			default:
				return sessionmsg.EncodeClientCBOR(a.signed(m.Text))
			}
		default:
			return data, nil
		}
	}
}

// logIn prepares another session if a command is /login or /register with a password, or returns why it does not.
func (a *account) logIn(text string) (answer string, mine bool) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return "", false
	}
	register, login := strings.EqualFold(words[0], "register"), strings.EqualFold(words[0], "login")
	if !login && (!register || a.key != nil) {
		return "", false
	}
	name, password := a.name, words[len(words)-1]
	switch {
	case a.key != nil:
		return "You are logged in.", true
	case len(words) == 3 && !register:
		name = words[1]
	case len(words) != 2:
		return "Type /register PASSWORD or /login PASSWORD: one word that nobody else knows.", true
	}
	if len(password) < minPassword || len(password) > maxPassword {
		return fmt.Sprintf("A password has at least %d characters, and at most %d. Longer is safer.", minPassword, maxPassword), true
	}
	owner, registered := a.accounts.owner(name)
	switch {
	case register && registered:
		return fmt.Sprintf("The name %s is registered. If it is yours, type /login PASSWORD.", name), true
	case !register && !registered:
		return fmt.Sprintf("The name %s is registered to nobody: /register PASSWORD makes it yours.", name), true
	}
	key := a.accounts.key(name, password)
	if key == nil {
		return "Too many players are logging in. Try again in a few seconds.", true
	}
	public := key.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented
	if registered && owner != player.IDOf(public) {
		return fmt.Sprintf("That is not the password of %s. A name that was registered in a browser can be used there only.", name), true
	}
	a.key, a.told = key, "You are logged in as "+name+"."
	a.join.Name, a.join.Key = name, hex.EncodeToString(public)
	if register {
		a.command, a.told = "register", ""
	}
	a.state.CompareAndSwap(lastSession, anotherSession) // unless the session ends just now
	return "", true
}

func (a *account) sign(text []byte) string { return hex.EncodeToString(ed25519.Sign(a.key, text)) }

// signed returns a command with the player's signature.
func (a *account) signed(text string) sessionmsg.Command {
	a.lastSeq = max(a.lastSeq+1, uint64(time.Now().UnixMicro())) //nolint:gosec // positive
	act := nodemsg.Act{Seq: a.lastSeq, Name: a.welcome.Name, Text: text}
	return sessionmsg.Command{Text: text, Seq: act.Seq, Signature: a.sign(policy.SignedText(a.world, act))}
}

// tell shows the player a text.
func (a *account) tell(text string) error {
	if text == "" {
		return nil
	}
	notice, err := sessionmsg.EncodeServerCBOR(sessionmsg.Notice{Text: text})
	if err != nil {
		return err
	}
	if err := a.Client.Send(notice); err != nil {
		return err
	}
	return a.Flush()
}

// Send sends a session's message, except what it says before the player has arrived.
func (a *account) Send(message []byte) error {
	if a.welcome.Player != "" && (message[0] == sessionmsg.TickFrame || len(message) > maxLast) {
		return a.Client.Send(message)
	}
	m, err := sessionmsg.DecodeServerCBOR(message)
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case sessionmsg.Challenge:
		a.challenges <- m // the session waits for the answer before it sends another one
		return nil
	case sessionmsg.Welcome:
		if err := a.Client.Send(message); err != nil {
			return err
		}
		a.welcome = m
		text := a.told // before the reader goes on
		a.arrive()
		return a.tell(text)
	case sessionmsg.Failure:
		if a.welcome.Player == "" && m.Code == wire.FailNameTaken && a.key == nil && a.names < maxNames {
			a.names++
			a.join.Name = player.Namesake(a.name, rand.Text(), a.names)
			a.told = fmt.Sprintf("The name %s is taken: you are the guest %s. If it is yours, type /login PASSWORD.", a.name, a.join.Name)
			a.state.CompareAndSwap(lastSession, anotherSession)
			return nil
		}
		a.state.Store(closed)
	case sessionmsg.Reconnect:
		a.state.Store(closed)
	}
	return a.Client.Send(message)
}

// Close ends the connection in order, unless another session follows.
func (a *account) Close() error {
	a.arrive()
	if a.state.Load() == anotherSession {
		return nil
	}
	a.state.Store(closed)
	return a.Client.Close()
}

// Cut ends the connection at once.
func (a *account) Cut() {
	a.state.Store(closed)
	a.arrive()
	a.Client.Cut()
}
