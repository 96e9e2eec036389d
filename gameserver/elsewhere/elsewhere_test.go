package elsewhere

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

var adaID, eveID = player.GuestID("ada"), player.GuestID("eve")

// gateway is one that has a player, or says so. It notes the lines that it is sent.
type gateway struct {
	player     nodemsg.FoundPlayer
	registered map[string]player.ID
	lines      []string
}

func (g *gateway) PlayerNames() []string { return []string{g.player.Name} }

func (g *gateway) FindPlayer(name string) (nodemsg.FoundPlayer, bool) {
	return g.player, strings.EqualFold(g.player.Name, name)
}

func (g *gateway) ShowLine(line nodemsg.PrivateLine) bool {
	g.lines = append(g.lines, line.Text)
	return line.To == g.player.Player
}

func (*gateway) ShowWorldLine(nodemsg.WorldLine) {}

func (g *gateway) OwnerOf(name string) (player.ID, bool) {
	id, ok := g.registered[strings.ToLower(name)]
	return id, ok
}

// nodes are the gateways of other nodes.
type nodes map[string]*gateway

func (n nodes) Connected() (all []string) {
	for peer := range n {
		all = append(all, peer)
	}
	slices.Sort(all)
	return all
}

func (n nodes) Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error) {
	if protocol != Protocol {
		return nil, errors.New("not served")
	}
	return New(nil, n[peer], nil, prometheus.NewRegistry()).Answer(ctx, peer, question)
}

// A node that says that a player is there does not get the lines that are written to them: neither under their
// registered name, nor if they are found where they are.
func TestNodesThatLie(t *testing.T) {
	for name, c := range map[string]struct {
		lie        player.ID
		registered map[string]player.ID
		shown      bool
		why        string
	}{
		"another player under a registered name": {eveID, map[string]player.ID{"ada": adaID}, true, ""},
		"another player under a free name":       {eveID, nil, false, "several nodes say that ADA is playing there: try again in a moment"},
		"the player":                             {adaID, map[string]player.ID{"ada": adaID}, false, "several nodes say that ADA is playing there: try again in a moment"},
	} {
		liar := &gateway{player: nodemsg.FoundPlayer{Player: c.lie, Name: "Ada"}}
		honest := &gateway{player: nodemsg.FoundPlayer{Player: adaID, Name: "ada"}}
		p := New(nodes{"a": liar, "b": honest}, &gateway{registered: c.registered}, nil, prometheus.NewRegistry())
		as, shown, err := p.Show(t.Context(), "ADA", nodemsg.PrivateLine{From: eveID, Name: "eve", Text: "hello"})
		if shown != c.shown || shown != (as == "ada") || shown != (err == nil) || err != nil && err.Error() != c.why {
			t.Errorf("%s: shown to %q: %t, %v", name, as, shown, err)
		}
		if len(liar.lines) > 0 || len(honest.lines) > 0 != c.shown {
			t.Errorf("%s: the liar was sent %q, the other node %q", name, liar.lines, honest.lines)
		}
		if it, err := p.Find(t.Context(), "ADA"); (err == nil) != c.shown || it.Player == eveID {
			t.Errorf("%s: found %+v, %v", name, it, err)
		}
	}
	alone := New(nodes{"a": {player: nodemsg.FoundPlayer{Player: eveID, Name: "Ada"}}}, &gateway{registered: map[string]player.ID{"ada": adaID}}, nil, prometheus.NewRegistry())
	if it, err := alone.Find(t.Context(), "ada"); err == nil {
		t.Errorf("under a name of another player is found %+v", it)
	}
}
