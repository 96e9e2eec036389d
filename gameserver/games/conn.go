package games

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Conn is the connection of a client to its session. The player may have a key: Conn answers challenges and signs for the game. When the
// player logs in, the session of the guest ends, and another one begins on the same connection.
type Conn struct {
	Client
	ticks    ticks
	message  []byte // the last result of Read, if it is a move
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

// The states of a Conn.
const (
	lastSession    = iota // the connection ends with the session
	anotherSession        // another one follows it
	closed                // the connection ends
)

func newConn(client Client, accounts *Accounts, join sessionmsg.Join) *Conn {
	join.Version, join.Encoding = sessionmsg.SessionVersion, sessionmsg.EncodingCBOR
	c := &Conn{Client: client, ticks: newTicks(), accounts: accounts, name: join.Name, join: join}
	c.told = "You are a guest. /register PASSWORD keeps your name for you, /login PASSWORD makes you who you were."
	return c
}

// follows reports whether another session follows.
func (c *Conn) follows() bool { return c.state.CompareAndSwap(anotherSession, lastSession) }

// begin prepares a session.
func (c *Conn) begin() sessionmsg.Join {
	arrived := make(chan struct{})
	c.challenges, c.arrived = make(chan sessionmsg.Challenge, 1), arrived
	c.arrive = sync.OnceFunc(func() { close(arrived) })
	c.welcome = sessionmsg.Welcome{}
	return c.join
}

// Read waits for the client's next message, which is signed if it must be. It is valid until the next Read.
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
	if text := c.command; text != "" {
		c.command = ""
		return c.signed(text), nil
	}
	for {
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

// Send sends a session's message, except what it says before the player has arrived. It does not retain it.
func (c *Conn) Send(message []byte) error {
	if message[0] == sessionmsg.TickFrame {
		return c.SendTick(message)
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
		c.welcome = m
		text := c.told // before the reader goes on
		c.arrive()
		return c.tell(text)
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
	case sessionmsg.Failure:
		if c.welcome.Player == "" && m.Code == wire.FailNameTaken && c.key == nil && c.names < maxNames {
			c.names++
			c.join.Name = player.Namesake(c.name, rand.Text(), c.names)
			c.told = fmt.Sprintf("The name %s is taken: you are the guest %s. If it is yours, type /login PASSWORD.", c.name, c.join.Name)
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

// Close ends the connection in order, unless another session follows.
func (c *Conn) Close() error {
	c.arrive()
	if c.state.Load() == anotherSession {
		return nil
	}
	c.state.Store(closed)
	return c.Client.Close()
}

// Cut ends the connection at once.
func (c *Conn) Cut() {
	c.state.Store(closed)
	c.arrive()
	c.Client.Cut()
}
