package moderation

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Commands are carried out one after the other, and a player who gives many before the first one is answered is told to
// wait. Who has the answer to the last one may give the next at once.
func TestCommandsAreCarriedOutInOrder(t *testing.T) {
	var s Permissions
	var said []string
	s.send = func(m sessionmsg.FromServer) { said = append(said, m.(sessionmsg.Notice).Text) }
	underWay := 0
	g := Gateway{Background: func(run func(context.Context)) { run(t.Context()) }}
	command := func(text string, meanwhile ...task) task {
		return func(context.Context) []notice.Notice {
			if underWay++; underWay > 1 {
				t.Errorf("%s began before the one before it was carried out", text)
			}
			defer func() { underWay-- }()
			for _, next := range meanwhile {
				s.background(g, next)
			}
			return []notice.Notice{notice.Plain(text)}
		}
	}
	s.background(g, command("1", command("2"), command("3"), command("4"), command("too many")))
	s.background(g, command("5"))
	want := []string{"Wait until your last commands are carried out.", "1", "2", "3", "4", "5"}
	if !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// A player whose command waits for one that has not been answered for over a second is told so.
func TestCommandsThatWaitAreNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Permissions
		var said []string
		s.send = func(m sessionmsg.FromServer) { said = append(said, m.(sessionmsg.Notice).Text) }
		g := Gateway{Background: func(run func(context.Context)) { run(t.Context()) }}
		answer := func(text string) task {
			return func(context.Context) []notice.Notice { return []notice.Notice{notice.Plain(text)} }
		}
		s.background(g, func(context.Context) []notice.Notice {
			s.background(g, answer("at once"))
			time.Sleep(2 * time.Second) // of the bubble
			s.background(g, answer("later"))
			return nil
		})
		want := []string{"This is carried out after your last command, which is not answered yet.", "at once", "later"}
		if !slices.Equal(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	})
}

// fixedPolicy is a policy that only the test changes.
type fixedPolicy struct{ *policy.State }

func (p fixedPolicy) Read(read func(*policy.State)) { read(p.State) }

func (fixedPolicy) Enter(context.Context, nodemsg.Act, func() error) (notice.Notice, error) {
	return notice.Notice{}, nil
}

func (fixedPolicy) Notify(func(), func(string)) {}

// Two players look around under one name. Once one of them has registered it, the other one, who has a key, is shown
// with a fingerprint.
func TestNameRegisteredMeanwhile(t *testing.T) {
	world := fixedPolicy{policy.New()}
	at := time.Unix(1_800_000_000, 0)
	yes := func() bool { return true }
	e := NewEnforcer(world, func() time.Time { return at }, Node{Guests: yes, Original: yes}, func(string) {}, prometheus.NewRegistry())
	join := func(key byte) (*Permissions, player.ID) {
		public := make(ed25519.PublicKey, ed25519.PublicKeySize)
		public[0] = key
		id := player.IDOf(public)
		s, err := e.Admit(id, "ada", public, &net.TCPAddr{IP: net.IPv4(192, 0, 2, key), Port: 1}, func(sessionmsg.FromServer) {})
		if err != nil {
			t.Fatal(err)
		}
		return s, id
	}
	first, _ := join(1)
	second, owner := join(2)
	if first.Name() != "ada" || second.Name() != "ada" {
		t.Fatalf("they are called %s and %s", first.Name(), second.Name())
	}
	act := nodemsg.Act{Key: second.key, Seq: uint64(at.UnixMicro()), Name: "ada", Text: "register", At: at.UnixMilli()}
	if _, err := world.Apply(act); err != nil || world.NameOf(owner) != "ada" {
		t.Fatalf("the name is not registered: %v", err)
	}
	if err := second.Judge(); err != nil {
		t.Errorf("the name's owner: %v", err)
	}
	err := first.Judge()
	again, _ := join(1)
	if it, ok := errors.AsType[*wire.Error](err); !ok || it.Code != wire.FailNameTaken || !strings.HasSuffix(it.Message, "join again, and you are shown as "+again.Name()) {
		t.Errorf("the other one's session ends with %v", err)
	}
	if !strings.HasPrefix(again.Name(), "ada-") {
		t.Errorf("they are called %s afterwards", again.Name())
	}
}
