package moderation

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/elsewhere"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// oneHere is a gateway with one player, who is the only one with a registered name.
type oneHere string

func (o oneHere) PlayerNames() []string { return []string{string(o)} }

func (o oneHere) FindPlayer(name string) (nodemsg.FoundPlayer, bool) {
	return nodemsg.FoundPlayer{Name: string(o), Player: player.GuestID(string(o))}, strings.EqualFold(name, string(o))
}

func (o oneHere) ShowLine(nodemsg.PrivateLine) bool { return false }

func (o oneHere) ShowWorldLine(nodemsg.WorldLine) {}

func (o oneHere) OwnerOf(name string) (player.ID, bool) {
	return player.GuestID("reg"), strings.EqualFold(name, "reg")
}

// oneOther is another node with one player.
type oneOther struct{ name oneHere }

func (o oneOther) Connected() []string { return []string{"other"} }

func (o oneOther) Ask(ctx context.Context, _, protocol string, question []byte) ([]byte, error) {
	if protocol != elsewhere.Protocol {
		return nil, errors.New("not served")
	}
	return elsewhere.New(nil, o.name, nil, prometheus.NewRegistry()).Answer(ctx, "this", question)
}

// Somebody who does not play cannot be kicked, and a ban of a name that nobody has is carried out with a warning.
func TestAbsentPlayers(t *testing.T) {
	players := elsewhere.New(oneOther{"bob"}, oneHere("ann"), nil, prometheus.NewRegistry())
	for text, want := range map[string]string{
		"kick ANN":                             "",
		"kick bob spamming":                    "",
		"kick nosuchplayer":                    "error",
		"kick reg":                             "error", // registered, and not here
		"ban ann":                              "",
		"ban bob 2h":                           "",
		"ban reg":                              "",
		"ban nosuchplayer":                     "warning",
		"mute nosuch 5m":                       "warning",
		"ban 192.0.2.1":                        "",
		"ban 192.0.2.0/24":                     "",
		"kick " + player.GuestID("x").String(): "",
		"pardon nosuchplayer":                  "",
		"kick":                                 "",
	} {
		warning, err := Absent(t.Context(), text, players)
		got := ""
		if err != nil {
			got = "error"
		} else if warning.Text != "" {
			got = "warning"
		}
		if got != want {
			t.Errorf("%s: %q, %v; want %q", text, warning.Text, err, want)
		}
	}
}
