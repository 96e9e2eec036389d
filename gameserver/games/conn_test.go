package games

import (
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

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
	cut   bool
	tick  error // the result of Tick
	land  Blocks
	edits Edits
}

func (c *typist) Read() (sessionmsg.FromClient, error) {
	text, ok := <-c.typed
	if !ok {
		return nil, io.EOF
	}
	return sessionmsg.Command{Text: text}, nil
}

func (c *typist) Send(m sessionmsg.FromServer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := m.(type) {
	case sessionmsg.Notice:
		c.told = append(c.told, m.Text)
	case sessionmsg.Failure:
		c.ended = m.Message
	}
	return nil
}

func (c *typist) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = true
	return nil
}

func (c *typist) Look(f func(Blocks, *Edits)) { f(c.land, &c.edits) }

func (c *typist) SendTick([]byte) error { return nil }
func (c *typist) Tick(time.Time) error  { return c.tick }
func (c *typist) Flush() error          { return nil }
func (c *typist) Cut()                  { c.Close(); c.cut = true }

func send(t *testing.T, a *Conn, m sessionmsg.FromServer) {
	t.Helper()
	data, err := sessionmsg.EncodeServerCBOR(m)
	if err == nil {
		err = a.Send(data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// enter begins a session, as a gateway does, and welcomes the player.
func enter(t *testing.T, a *Conn) sessionmsg.Join {
	t.Helper()
	join := a.begin()
	send(t, a, sessionmsg.Welcome{Player: player.GuestID(join.Name).String(), Name: join.Name, Signed: true})
	return join
}

func connFor(name string, owners map[string]player.ID, typed ...string) (*Conn, *typist) {
	c := &typist{typed: make(chan string, len(typed))}
	for _, text := range typed {
		c.typed <- text
	}
	close(c.typed)
	accounts := NewAccounts("world", func(name string) (player.ID, bool) {
		id, known := owners[strings.ToLower(name)]
		return id, known
	})
	return newConn(c, accounts, func() bool { return true }, Opening{Join: sessionmsg.Join{Name: name}}), c
}

// A session that ends while its player logs in ends the connection: nobody comes back after a kick.
func TestNoSessionFollowsAnEnd(t *testing.T) {
	for why, end := range map[string]func(a *Conn){
		"a kick":  func(a *Conn) { send(t, a, sessionmsg.Failure{Code: wire.FailBanned, Message: "kicked"}) },
		"a drain": func(a *Conn) { send(t, a, sessionmsg.Reconnect{Gateways: []wire.Gateway{}, Reason: "stopping"}) },
		"a cut":   func(a *Conn) { a.Cut() },
		"an end":  func(a *Conn) { a.Close() },
	} {
		for _, before := range []bool{true, false} {
			a, c := connFor("ada", nil, "register correct-horse")
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
			if follows := a.follows(); follows != (!before && why == "an end") || c.shut == follows {
				t.Errorf("%s, before %v: another session follows: %v, closed: %v", why, before, follows, c.shut)
			}
		}
	}
}

// A session that ends before its player has arrived reads nothing of the client, which may be welcomed just then.
func TestNothingIsReadBeforeTheWelcome(t *testing.T) {
	for why, end := range map[string]func(a *Conn){"a cut": (*Conn).Cut, "an end": func(a *Conn) { a.Close() }} {
		a, c := connFor("ada", nil, "help")
		a.begin()
		end(a)
		if _, err := a.Read(); !errors.Is(err, io.EOF) || len(c.typed) == 0 {
			t.Errorf("%s: the read returns %v, and %d messages are left", why, err, len(c.typed))
		}
	}
}

// A tick fails when the client does not answer, too, and has been sent the reason then: the connection is not cut.
func TestFailedTickEndsInOrder(t *testing.T) {
	a, c := connFor("ada", nil)
	c.tick = errors.New("it does not answer")
	a.run(t.Context())
	if !c.shut || c.cut {
		t.Errorf("closed: %v, cut: %v", c.shut, c.cut)
	}
}

// Only the password of a name logs in, and attempts are bounded.
func TestPasswords(t *testing.T) {
	a, _ := connFor("ada", nil, "register correct-horse")
	enter(t, a)
	if _, err := a.Read(); !errors.Is(err, io.EOF) || !a.follows() {
		t.Fatalf("no session follows: %v", err)
	}
	join := a.begin()
	key, err := hex.DecodeString(join.Key)
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]player.ID{"ada": player.IDOf(key)}

	a, c := connFor("Ada", owners, "Login correct-horse")
	enter(t, a)
	if _, err := a.Read(); !errors.Is(err, io.EOF) || a.begin().Key != join.Key {
		t.Errorf("the same password is another key: %v, %q", err, c.told)
	}

	wrong := []string{"login wrong-horse", "login short", "login", "register correct-horse", "login bob correct-horse", "login " + strings.Repeat("x", maxPassword+1)}
	a, c = connFor("ada", owners, wrong...)
	enter(t, a)
	refused, _ := errors.AsType[*wire.Error](readError(a))
	if refused == nil || refused.Code != wire.FailNotAllowed || a.follows() {
		t.Errorf("after %d attempts the read returns %v", len(wrong), refused)
	}
	for i, want := range []string{"guest", "not the password", "at least 8", "one word", "is registered", "registered to nobody"} {
		if i >= len(c.told) || !strings.Contains(c.told[i], want) {
			t.Fatalf("answer %d is %q, want %q", i, c.told[min(i, len(c.told)-1)], want)
		}
	}
}

// A name that is somebody's in lower case, but is none that a player may have, logs nobody in: nodes refuse bodies with
// it.
func TestInvalidNames(t *testing.T) {
	a, _ := connFor("kim", nil, "register correct-horse")
	enter(t, a)
	if _, err := a.Read(); !errors.Is(err, io.EOF) || !a.follows() {
		t.Fatalf("no session follows: %v", err)
	}
	key, err := hex.DecodeString(a.begin().Key)
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]player.ID{"kim": player.IDOf(key)}
	for name, want := range map[string]string{"KIM": "as KIM", "\u212aim": "letters, digits", "k\u0130m": "letters, digits", strings.Repeat("k", 21): "1 to 20"} {
		a, c := connFor("ada", owners, "login "+name+" correct-horse")
		enter(t, a)
		_, err := a.Read()
		if follows := a.follows(); !errors.Is(err, io.EOF) || follows != (name == "KIM") {
			t.Errorf("%q: the read returns %v, and another session follows: %v", name, err, follows)
		}
		if answers := a.told + c.told[len(c.told)-1]; !strings.Contains(answers, want) {
			t.Errorf("%q is answered %q, want %q", name, answers, want)
		}
	}
}

func readError(a *Conn) error {
	_, err := a.Read()
	return err
}

// Who comes under a taken name is given others, and refused only when they are taken, too.
func TestTakenNames(t *testing.T) {
	a, c := connFor("ada", nil)
	names := map[string]bool{}
	for range maxNames {
		names[a.begin().Name] = true
		send(t, a, sessionmsg.Failure{Code: wire.FailNameTaken, Message: "taken"})
		a.Close()
		if !a.follows() || c.ended != "" {
			t.Fatalf("refused with %q", c.ended)
		}
	}
	if names[a.begin().Name] || len(names) != maxNames {
		t.Errorf("the names %v", names)
	}
	send(t, a, sessionmsg.Failure{Code: wire.FailNameTaken, Message: "taken"})
	a.Close()
	if a.follows() || c.ended != "taken" || !c.shut {
		t.Errorf("not refused: %q", c.ended)
	}
}

// What is only read is a notice to every game, and a node that stops names another one.
func TestNoticesAndEnds(t *testing.T) {
	a, c := connFor("ada", nil)
	enter(t, a)
	c.told = nil
	send(t, a, sessionmsg.Struck{To: "somebody else", Name: "bob"})
	send(t, a, sessionmsg.Struck{To: a.welcome.Player, Name: "bob"})
	send(t, a, sessionmsg.History{Changes: []int64{}, Names: []string{}})
	send(t, a, sessionmsg.Reconnect{Gateways: []wire.Gateway{{URL: "wss://b.example.org/ws", Game: "b.example.org:25565"}}, Reason: "Stopping."})
	if len(c.told) != 3 || c.told[0] != "bob hit you." || !strings.Contains(c.told[1], "Nobody has changed") || c.told[2] != "Stopping." {
		t.Errorf("the player is told %q", c.told)
	}
	if c.ended != "This node is stopping. Join again at b.example.org:25565." {
		t.Errorf("the reason is %q", c.ended)
	}
	send(t, a, sessionmsg.Reconnect{Gateways: []wire.Gateway{}, Reason: "Stopping."})
	if c.ended != "This node is stopping. Come back in a while." {
		t.Errorf("without another node the reason is %q", c.ended)
	}
}

// Flushes are ticks about as often as frames come.
func TestFlushesAreTicks(t *testing.T) {
	ticks, now := newTicks(), time.Now()
	for i, want := range []bool{true, false, true} {
		if begun := ticks.begin(now.Add(time.Duration(i) * TickEvery / 2)); begun != want {
			t.Errorf("flush %d is a tick: %v", i, begun)
		}
	}
}
