package moderation

import (
	"context"
	"net/netip"
	"strings"

	"github.com/voxelpopuli/voxeld/gameserver/elsewhere"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Absent looks for the player whom a command names who is to be kicked, banned or muted. The error says that there is
// nobody to kick. The warning says that a name may be mistyped: nobody has registered it, or plays under it now.
func Absent(ctx context.Context, text string, players *elsewhere.Players) (warning notice.Notice, err error) {
	words := strings.Fields(text)
	if len(words) < 2 || words[0] != "kick" && words[0] != "ban" && words[0] != "mute" || !isName(words[1]) {
		return warning, nil
	}
	registered, playing := players.Known(ctx, words[1])
	switch {
	case playing:
		return warning, nil
	case words[0] == "kick":
		return warning, notice.New("nobody_kicked", "nobody called {name} is playing here, or on the nodes that this node can ask: nobody was kicked", words[1])
	case !registered:
		return notice.New("name_unknown", "Nobody called {name} has registered that name, or is playing now: is it written correctly?", words[1]), nil
	}
	return warning, nil
}

// isName reports whether a word can only be a player's name: neither an id, an address nor a network.
func isName(word string) bool {
	_, notID := player.ParseID(word)
	_, notAddress := netip.ParseAddr(word)
	_, notNetwork := netip.ParsePrefix(word)
	return notID != nil && notAddress != nil && notNetwork != nil && player.CheckName(word) == nil
}
