package gameserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/elsewhere"
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// mesh connects gateways, by their numbers.
type mesh struct {
	gateways []*harness

	mu struct {
		sync.Mutex
		delay  func() time.Duration // of a question
		lost   func() bool          // reports whether an answer is lost
		silent map[int]bool         // gateways that do not answer
	}
}

// meshNode is a gateway's end of a mesh.
type meshNode struct {
	*mesh
	self int
}

func (n meshNode) Connected() (peers []string) {
	for i := range n.gateways {
		if i != n.self {
			peers = append(peers, fmt.Sprint(i))
		}
	}
	return peers
}

func (n meshNode) Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error) {
	if protocol != elsewhere.Protocol {
		return nil, errors.New("not served")
	}
	var to int
	if _, err := fmt.Sscan(peer, &to); err != nil {
		return nil, err
	}
	n.mu.Lock()
	delay, lost, silent := n.mu.delay(), n.mu.lost(), n.mu.silent[to]
	n.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
	if silent {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	answer, err := n.gateways[to].g.Elsewhere.Answer(ctx, fmt.Sprint(n.self), question)
	if lost {
		return nil, errors.New("connection reset")
	}
	return answer, err
}

// newMesh returns a cluster of gateways that are connected with each other.
func newMesh(t *testing.T, gateways, people int, change ...func(*Options)) (*cluster, *mesh) {
	m := &mesh{}
	m.mu.delay, m.mu.lost, m.mu.silent = func() time.Duration { return 0 }, func() bool { return false }, make(map[int]bool)
	self := 0
	v := newCluster(t, gateways, people, append(change, func(o *Options) {
		o.Nodes = meshNode{m, self}
		self++
	})...)
	m.gateways, v.pause = v.gateways, 2100*time.Millisecond
	return v, m
}

// toWorld makes a player send a number to the whole world.
func (v *cluster) toWorld(i, n int) string {
	v.people[i].send(sessionmsg.Command{Text: fmt.Sprint("world ", n)})
	return fmt.Sprintf("%s: %d", v.names[i], n)
}

// Four gateways, eight players who answer each other at once, and each message from gateway to gateway takes up to
// 0.7 s, or is answered in vain and sent again: all are shown all lines once, in causal order.
func TestWorldChatIsCausal(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			v, m := newMesh(t, 4, 8)
			rng := rand.New(rand.NewPCG(seed, 1))
			m.mu.Lock()
			m.mu.delay = func() time.Duration { return time.Duration(rng.IntN(700)) * time.Millisecond }
			m.mu.lost = func() bool { return rng.IntN(10) == 0 }
			m.mu.Unlock()
			const lines = 60
			pairs, wrong := v.check(v.gossip(rand.New(rand.NewPCG(seed, 2)), lines, v.toWorld))
			if wrong > 0 || pairs < 8*lines*10 {
				t.Errorf("%d of %d ordered pairs were shown the wrong way round", wrong, pairs)
			}
		})
	}
}

// A line is shown within half a second to everybody, wherever they are. A gateway that does not answer for seconds is
// sent it then; one that never answers holds up nobody. Players who come later are shown the last lines.
func TestWorldChatReachesEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		v, m := newMesh(t, 3, 3, func(o *Options) { o.People = world })
		shown := func(i int) string { return strings.Join(v.people[i].chatShown(), ", ") }
		v.toWorld(0, 1)
		pass(500 * time.Millisecond)
		for i := range v.people {
			if shown(i) != "p0: 1" {
				t.Errorf("%s was shown %q", v.names[i], shown(i))
			}
		}
		m.mu.Lock()
		m.mu.silent[2] = true
		m.mu.Unlock()
		v.toWorld(1, 2)
		pass(5 * time.Second)
		if shown(0) != "p0: 1, p1: 2" || shown(2) != "p0: 1" {
			t.Errorf("p0 was shown %q, p2 %q", shown(0), shown(2))
		}
		m.mu.Lock()
		m.mu.silent[2] = false
		m.mu.Unlock()
		pass(2 * time.Second)
		if shown(2) != "p0: 1, p1: 2" {
			t.Errorf("p2 was shown %q after their gateway answered again", shown(2))
		}
		world.operate(t, "ban p1 1h")
		late := v.gateways[2].join("late", 1)
		pass(time.Second)
		if got := fmt.Sprint(late.chatShown()); got != "[p0: 1]" {
			t.Errorf("who came later was shown %s, not what those wrote who may write", got)
		}
		m.mu.Lock()
		m.mu.silent[2] = true
		m.mu.Unlock()
		v.toWorld(0, 3)
		pass(20 * time.Second)
		if n := counted(t, v.gateways[0].g, "voxeld_chat_world_dropped_total"); n != 1 {
			t.Errorf("%v lines were dropped, want 1", n)
		}
	})
}

// Who writes to the world too fast is warned and muted; a gateway that sends too much is not listened to, whatever it
// says; and nobody writes under a name that is another's, or while they are muted.
func TestWorldChatLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		v, m := newMesh(t, 2, 2, func(o *Options) { o.People = world })
		for n := range 20 {
			v.toWorld(0, n)
			pass(100 * time.Millisecond)
		}
		pass(time.Second)
		if n := len(v.people[1].chatShown()); n < worldAtOnce || n > worldAtOnce+2 {
			t.Errorf("%d lines of a flood were shown", n)
		}
		if got := strings.Join(v.people[0].mu.notices, "; "); !strings.Contains(got, "You write too fast, and are muted for a minute.") {
			t.Errorf("the flooder was told %q", got)
		}
		forged := func(name string, from, n int) error {
			var lines []nodemsg.WorldLine
			id := player.GuestID(name)
			clock := vclock.NewOwner(nodemsg.ChatAuthor(id), uint64(from))
			for range n {
				stamp, err := clock.Act().Append(nil)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, nodemsg.WorldLine{Player: id, Name: name, Guest: true, Text: "forged", Stamp: stamp})
			}
			question, err := nodemsg.EncodePlayersRequest(nodemsg.PlayersRequest{Say: &nodemsg.WorldLines{Lines: lines}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.gateways[1].g.Elsewhere.Answer(t.Context(), "liar", question)
			return err
		}
		world.operate(t, "mute eve 1h")
		world.register(t, "mia")
		for name, from := range map[string]int{"eve": 1, "mia": 1, "zoe": 1 << 60} {
			before := len(v.people[1].chatShown())
			if err := forged(name, from, 1); err != nil {
				t.Error(err)
			}
			pass(2 * time.Second)
			if n := len(v.people[1].chatShown()); n != before {
				t.Errorf("lines are shown of who is muted, has a name of another player, or a number of the future: %q", v.people[1].chatShown()[before:])
			}
		}
		for i, refused := range []bool{false, false, true} {
			if err := forged("mallory", 1000*i, nodemsg.MaxWorldLines-1); (err != nil) != refused {
				t.Errorf("message %d of a gateway that sends too much: %v", i, err)
			}
		}
	})
}

// Players answer the last private line; what one does is shown to those near them; a line that nobody is near to read
// is said to be one; and who has no key is told which commands there are not.
func TestLinesOfChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := newMesh(t, 2, 2)
		ann, bob := v.people[0], v.people[1]
		for _, c := range []struct {
			who              *client
			text, told, tell string
		}{
			{ann, "r hello", "Nobody has written to you yet: /msg NAME TEXT writes to a player.", ""},
			{ann, "msg p1 hello", "To p1: hello", "From p0: hello"},
			{bob, "r hello you", "To p0: hello you", "From p1: hello you"},
			{ann, "r bye", "To p1: bye", "From p0: bye"},
			{ann, "dance", "There is no such command: /help lists those that you may use.", ""},
			{ann, "world", "Usage: /world TEXT.", ""},
			{ann, "me " + strings.Repeat("x", 253), "That is too long: a line has at most 256 bytes.", ""},
			{ann, "ban p1", "Only players with a key may use that command.", ""},
		} {
			other := map[*client]*client{ann: bob, bob: ann}[c.who]
			before := len(other.mu.notices)
			if told := c.who.command(c.text); told != c.told {
				t.Errorf("/%s: told %q, want %q", c.text, told, c.told)
			}
			if got := strings.Join(other.mu.notices[before:], "; "); got != c.tell {
				t.Errorf("/%s: the other is told %q, want %q", c.text, got, c.tell)
			}
		}
		if told := ann.command("me waves"); told != "" || fmt.Sprint(bob.chatShown()) != "[p0: /me waves]" {
			t.Errorf("told %q, and bob is shown %q", told, bob.chatShown())
		}
		for _, c := range v.people {
			c.conn.Close()
		}
		v.gateways[0].encoding = sessionmsg.EncodingCBOR // the index knows whom these clients see
		cid := v.gateways[0].join("cid", interest.AloneView)
		pass(2 * time.Second)
		before := len(cid.mu.notices)
		for range 2 {
			cid.send(sessionmsg.Chat{Text: "anybody?"})
			pass(time.Second)
		}
		if told := fmt.Sprint(cid.mu.notices[before:]); told != fmt.Sprint([]string{nobodyNear.Text}) {
			t.Errorf("alone, cid is told %s", told)
		}
	})
}
