package crowd

import (
	"maps"
	"slices"
	"strings"
)

// games are the codecs of other games, by the flag that makes a daemon serve them.
var games = map[string]codec{"classicube": classicCodec{}, "luanti": luantiCodec{}, "minecraft": minecraftCodec{}}

// Games returns what may be Options.Game, as a list to read.
func Games() string { return strings.Join(slices.Sorted(maps.Keys(games)), ", ") }
