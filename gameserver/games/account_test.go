package games

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// typist is a client whose player types commands, and who notes what they are told.
type typist struct {
	typed chan string
	mu    sync.Mutex
	told  []string
	ended string
	shut  bool
}

func (c *typist) Read() ([]byte, error) {
	text, ok := <-c.typed
	if !ok {
		return nil, io.EOF
	}
	return sessionmsg.EncodeClientCBOR(sessionmsg.Command{Text: text})
}

func (c *typist) Send(message []byte) error {
	m, err := sessionmsg.DecodeServerCBOR(message)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := m.(type) {
	case sessionmsg.Notice:
		c.told = append(c.told, m.Text)
	case sessionmsg.Failure:
		c.ended = m.Message
	}
	return err
}

func (c *typist) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = true
	return nil
}

func (c *typist) Flush() error        { return nil }
func (c *typist) Run(context.Context) {}
func (c *typist) Cut()                { c.Close() }

func send(t *testing.T, a *account, m sessionmsg.FromServer) {
	t.Helper()
	data, err := sessionmsg.EncodeServerCBOR(m)
	if err == nil {
		err = a.Send(data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// enter begins an account's session, as a gateway does, and welcomes the player.
func enter(t *testing.T, a *account) sessionmsg.Join {
	t.Helper()
	join := a.begin()
	send(t, a, sessionmsg.Welcome{Player: player.GuestID(join.Name).String(), Name: join.Name, Signed: true})
	return join
}

func accountFor(name string, owners map[string]player.ID, typed ...string) (*account, *typist) {
	c := &typist{typed: make(chan string, len(typed))}
	for _, text := range typed {
		c.typed <- text
	}
	close(c.typed)
	accounts := NewAccounts("world", func(name string) (player.ID, bool) {
		id, known := owners[strings.ToLower(name)]
		return id, known
	})
	return newAccount(c, accounts, sessionmsg.Join{Name: name}), c
}

// A session that ends while its player logs in ends the connection: nobody comes back after a kick.
func TestNoSessionFollowsAnEnd(t *testing.T) {
	for why, end := range map[string]func(a *account){
		"a kick":  func(a *account) { send(t, a, sessionmsg.Failure{Code: wire.FailBanned, Message: "kicked"}) },
		"a drain": func(a *account) { send(t, a, sessionmsg.Reconnect{Gateways: []wire.Gateway{}, Reason: "stopping"}) },
		"a cut":   func(a *account) { a.Cut() },
		"an end":  func(a *account) { a.Close() },
	} {
		for _, before := range []bool{true, false} {
			a, c := accountFor("ada", nil, "register correct-horse")
			enter(t, a)
			if before {
				end(a)
			}
			if _, err := a.Read(); !errors.Is(err, io.EOF) {
				t.Errorf("%s: the read returns %v", why, err)
			}
			if !before && why != "an end" {
				end(a)
			}
			a.Close()
			if follows := a.next(); follows != (!before && why == "an end") || c.shut == follows {
				t.Errorf("%s, before %v: another session follows: %v, closed: %v", why, before, follows, c.shut)
			}
		}
	}
}

// Only the password of a name logs in, and attempts are bounded.
func TestPasswords(t *testing.T) {
	a, _ := accountFor("ada", nil, "register correct-horse")
	enter(t, a)
	if _, err := a.Read(); !errors.Is(err, io.EOF) || !a.next() {
		t.Fatalf("no session follows: %v", err)
	}
	join := a.begin()
	key, err := hex.DecodeString(join.Key)
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]player.ID{"ada": player.IDOf(key)}

	a, c := accountFor("Ada", owners, "Login correct-horse")
	enter(t, a)
	if _, err := a.Read(); !errors.Is(err, io.EOF) || a.begin().Key != join.Key {
		t.Errorf("the same password is another key: %v, %q", err, c.told)
	}

	wrong := []string{"login wrong-horse", "login short", "login", "register correct-horse", "login bob correct-horse", "login " + strings.Repeat("x", maxPassword+1)}
	a, c = accountFor("ada", owners, wrong...)
	enter(t, a)
	refused, _ := errors.AsType[*wire.Error](readError(a))
	if refused == nil || refused.Code != wire.FailNotAllowed || a.next() {
		t.Errorf("after %d attempts the read returns %v", len(wrong), refused)
	}
	for i, want := range []string{"guest", "not the password", "at least 8", "one word", "is registered", "registered to nobody"} {
		if i >= len(c.told) || !strings.Contains(c.told[i], want) {
			t.Fatalf("answer %d is %q, want %q", i, c.told[min(i, len(c.told)-1)], want)
		}
	}
}

func readError(a *account) error {
	_, err := a.Read()
	return err
}

// Who comes under a taken name is given others, and refused only when they are taken, too.
func TestTakenNames(t *testing.T) {
	a, c := accountFor("ada", nil)
	names := map[string]bool{}
	for range maxNames {
		names[a.begin().Name] = true
		send(t, a, sessionmsg.Failure{Code: wire.FailNameTaken, Message: "taken"})
		a.Close()
		if !a.next() || c.ended != "" {
			t.Fatalf("refused with %q", c.ended)
		}
	}
	if names[a.begin().Name] || len(names) != maxNames {
		t.Errorf("the names %v", names)
	}
	send(t, a, sessionmsg.Failure{Code: wire.FailNameTaken, Message: "taken"})
	a.Close()
	if a.next() || c.ended != "taken" || !c.shut {
		t.Errorf("not refused: %q", c.ended)
	}
}
