package games

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	minPassword, maxPassword = 8, 64
	maxAttempts              = 6 // to log in, by a connection
	maxNames                 = 3 // that are tried for a guest
)

// Conn is the connection of a client to its session. The player may have a key: Conn answers challenges and signs for
// the game. When the player logs in, the session of the guest ends, and another one begins on the same connection.
type Conn struct {
	Client
	ticks    ticks
	message  []byte // the last result of Read, if it is a move
	accounts *Accounts
	mayLogIn func() bool // counts an attempt
	opening  Opening
	attempts int // to log in
	names    int // that were tried for the guest

	// Set before a session begins.
	join    sessionmsg.Join
	key     ed25519.PrivateKey // nil for a guest
	command string             // the first one of the session; empty for none
	told    string             // to the player, when they have arrived

	challenges chan sessionmsg.Challenge
	arrived    chan struct{}      // closed when the session has welcomed the player, or has ended; the rest is set before
	arrive     func()             // closes it
	welcome    sessionmsg.Welcome // of this session
	welcomed   time.Time
	world      string // of the challenge
	lastSeq    uint64 // of a signed command
	fill       fill
	state      atomic.Int32 // lastSession, anotherSession or closed
}

// The states of a Conn.
const (
	lastSession    = iota // the connection ends with the session
	anotherSession        // another one follows it
	closed                // the connection ends
)

func newConn(client Client, accounts *Accounts, mayLogIn func() bool, opening Opening) *Conn {
	join := opening.Join
	join.Version, join.Encoding = sessionmsg.SessionVersion, sessionmsg.EncodingCBOR
	c := &Conn{Client: client, ticks: newTicks(), accounts: accounts, mayLogIn: mayLogIn, opening: opening, join: join}
	c.fill.looks = rate.NewLimiter(1, 5)
	c.told = "You are a guest. /register PASSWORD keeps your name for you, /login PASSWORD makes you who you were."
	return c
}

// Verifier returns the verifier of the password that the client has proved to know, or has chosen, for the guest of the
// session that begins; nil if there is none.
func (c *Conn) Verifier() *player.Verifier {
	if c.key != nil || c.join.Name != c.opening.Name {
		return nil
	}
	return c.opening.Verifier
}

// follows reports whether another session follows.
func (c *Conn) follows() bool { return c.state.CompareAndSwap(anotherSession, lastSession) }

// begin prepares a session.
func (c *Conn) begin() sessionmsg.Join {
	arrived := make(chan struct{})
	c.challenges, c.arrived = make(chan sessionmsg.Challenge, 1), arrived
	c.arrive = sync.OnceFunc(func() { close(arrived) })
	c.welcome = sessionmsg.Welcome{}
	c.fill.end()
	return c.join
}

// Read waits for the client's next message, which is signed if it must be. The message is valid until the next Read.
func (c *Conn) Read() ([]byte, error) {
	m, err := c.next()
	if err != nil {
		return nil, err
	}
	if move, ok := m.(sessionmsg.Move); ok { // up to 20 a second
		c.message = sessionmsg.AppendMove(c.message[:0], move.Pose)
		return c.message, nil
	}
	return sessionmsg.EncodeClientCBOR(m)
}

// next waits for the client's next message to the session.
func (c *Conn) next() (sessionmsg.FromClient, error) {
	select {
	case m := <-c.challenges:
		c.world = m.World
		return sessionmsg.Prove{Signature: c.sign(player.ProofText(m.Nonce, m.World))}, nil
	case <-c.arrived:
	}
	if c.state.Load() != lastSession { // nothing is read: the player may not have been welcomed yet
		return nil, io.EOF
	}
	if text := c.command; text != "" {
		c.command = ""
		return c.signed(text), nil
	}
	for {
		if m, is := c.nextBulk(); is {
			return m, nil
		}
		read, err := c.Client.Read()
		if err != nil {
			return nil, err
		}
		switch m := read.(type) {
		case sessionmsg.Edit:
			if c.key != nil && c.welcome.Signed {
				m.Signature = c.sign(player.EditText(c.world, m.Seq, grid.Pos{X: m.X, Y: m.Y, Z: m.Z}, m.Block, m.Text))
			}
			return m, nil
		case sessionmsg.Command:
			if answer, mine := c.fillCommand(m.Text); mine {
				if err := c.tell(answer); err != nil {
					return nil, err
				}
				continue
			}
			answer, mine := c.logIn(m.Text)
			switch {
			case c.state.Load() != lastSession:
				return nil, io.EOF // the guest's session ends
			case !mine && c.key != nil:
				return c.signed(m.Text), nil
			case !mine:
				return m, nil
			}
			if c.attempts++; c.attempts >= maxAttempts {
				return nil, wire.Refuse(wire.FailNotAllowed, "You have tried to log in too often.")
			}
			if err := c.tell(answer); err != nil {
				return nil, err
			}
		default:
			return m, nil
		}
	}
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
	name, password := c.opening.Name, words[len(words)-1]
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
	if player.CheckName(name) != nil { // in lower case it may be somebody's all the same
		return fmt.Sprintf("A name has 1 to %d letters, digits, _ and -.", player.MaxName), true
	}
	owner, registered := c.accounts.owner(name)
	switch {
	case register && registered:
		return fmt.Sprintf("The name %s is registered. If it is yours, type /login PASSWORD.", name), true
	case !register && !registered:
		return fmt.Sprintf("The name %s is registered to nobody: /register PASSWORD makes it yours.", name), true
	}
	var key ed25519.PrivateKey
	if c.mayLogIn() {
		key = c.accounts.key(name, password)
	}
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
	c.lastSeq = max(c.lastSeq+1, c.welcome.NextSeq+uint64(time.Since(c.welcomed).Microseconds())) //nolint:gosec // positive
	act := nodemsg.Act{Seq: c.lastSeq, Name: c.welcome.Name, Text: text}
	return sessionmsg.Command{Text: text, Seq: act.Seq, Signature: c.sign(policy.SignedText(c.world, act))}
}

// tell shows the player a text.
func (c *Conn) tell(text string) error {
	if text == "" {
		return nil
	}
	if err := c.Client.Send(sessionmsg.Notice{Text: text}); err != nil {
		return err
	}
	return c.Flush()
}

// Send translates and sends a message of the session, which it does not retain. Challenges are answered here.
func (c *Conn) Send(message []byte) error {
	if message[0] == sessionmsg.TickFrame {
		err := c.SendTick(message)
		if err == nil && c.fill.awaits() {
			err = sessionmsg.ReadTick(message, deltas(func(n *sessionmsg.TickDelta) {
				if len(n.Blocks) > 0 {
					c.fill.arrive(n.Chunk, n.Blocks)
				}
			}))
		}
		return err
	}
	m, err := sessionmsg.DecodeServerCBOR(message)
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case sessionmsg.Challenge:
		c.challenges <- m // the session waits for the answer before it sends another one
		return nil
	case sessionmsg.Welcome:
		if err := c.Client.Send(m); err != nil {
			return err
		}
		c.welcome, c.welcomed = m, time.Now()
		text := c.told // before the reader goes on
		c.arrive()
		return c.tell(text)
	case sessionmsg.Ack:
		if text, mine := c.fill.answered(m); mine {
			return c.tell(text)
		}
	case sessionmsg.ChunkData:
		defer c.fill.arrive(m.Chunk, nil)
	case sessionmsg.ChunkGone:
		defer c.fill.arrive(m.Chunk, nil)
	case sessionmsg.Permissions:
		if err := c.tell(c.fill.allow(m.Bulk)); err != nil {
			return err
		}
	case sessionmsg.History:
		var errs []error
		for _, line := range historyLines(m, time.Now()) {
			errs = append(errs, c.Client.Send(sessionmsg.Notice{Text: line}))
		}
		return errors.Join(errs...)
	case sessionmsg.Struck:
		if m.To != c.welcome.Player {
			return nil
		}
		return c.Client.Send(sessionmsg.Notice{Text: m.Name + " hit you."})
	case sessionmsg.Line:
		if m.Earlier { // the games cannot show when it was
			return nil
		}
		return c.Client.Send(sessionmsg.Notice{Text: textOf(m)})
	case sessionmsg.Failure:
		if c.welcome.Player == "" && m.Code == wire.FailNameTaken && c.key == nil && c.names < maxNames {
			c.names++
			c.join.Name = player.Namesake(c.opening.Name, rand.Text(), c.names)
			c.told = fmt.Sprintf("The name %s is taken: you are the guest %s. If it is yours, type /login PASSWORD.", c.opening.Name, c.join.Name)
			c.state.CompareAndSwap(lastSession, anotherSession)
			return nil
		}
		c.state.Store(closed)
	case sessionmsg.Reconnect: // these protocols cannot send the client elsewhere
		c.state.Store(closed)
		return errors.Join(c.Client.Send(sessionmsg.Notice{Text: m.Reason}), c.Client.Send(sessionmsg.Failure{Message: elsewhere(m)}))
	}
	return c.Client.Send(m)
}

// Flush sends what is buffered, and, if it is time for a tick, what time brings.
func (c *Conn) Flush() error {
	if now := time.Now(); c.ticks.begin(now) {
		return c.Tick(now)
	}
	return c.Client.Flush()
}

// run ticks when no flush has done so for a while, until ctx ends or a tick fails. Then it closes the connection, in
// order: the client may have been sent the reason.
func (c *Conn) run(ctx context.Context) {
	defer c.ticks.late.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-c.ticks.late.C:
			if c.ticks.begin(now) && c.Tick(now) != nil {
				c.Client.Close() //nolint:errcheck // it may be broken
				return
			}
		}
	}
}

// Close ends the connection in order, unless another session follows.
func (c *Conn) Close() error {
	c.state.CompareAndSwap(lastSession, closed)
	c.arrive()
	if c.state.Load() == anotherSession {
		return nil
	}
	return c.Client.Close()
}

// Cut ends the connection at once.
func (c *Conn) Cut() {
	c.state.Store(closed)
	c.arrive()
	c.Client.Cut()
}
