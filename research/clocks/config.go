package clocks

import (
	"cmp"
	"fmt"

	"github.com/voxelpopuli/voxeld/vclock"
)

const maxPlayers = 1 << 16

// Config describes a walk. Zero values mean the defaults, which produce the figures of research/measured.md.
type Config struct {
	Seed    uint64
	Players int     // default 1000, at most 65536
	Side    float64 // of the square world, in blocks; default 1000
	Vision  float64 // in blocks; default 100
	Rounds  int     // of a second each; default 300
	Speed   float64 // blocks a round; default 4.3, as players walk
	Rate    float64 // events per player and round; default 0.05
	Linger  int     // rounds for which a player who left vision stays relevant; default 0
	Nearest int     // if not 0, only the nearest so many players in vision are relevant
	Limit   int     // if not 0, the most entries of a clock, those heard most recently (vclock.Owner.Limit)

	Observers int // players whose pairs are compared, all on one gateway; default 50
	Gateways  int // number of gateways of the players; default 4
	Window    int // rounds between the two events of a pair at most, as received by the observer; default 60
	Pairs     int // pairs for each event that an observer receives, drawn from the window; default 16
	History   int // size of a player's vclock.History; default vclock.DefaultHistory
	Shared    int // size of a gateway's vclock.History; default 4096
}

func (c Config) withDefaults() Config {
	c.Players = cmp.Or(c.Players, 1000)
	c.Side = cmp.Or(c.Side, 1000)
	c.Vision = cmp.Or(c.Vision, 100)
	c.Rounds = cmp.Or(c.Rounds, 300)
	c.Speed = cmp.Or(c.Speed, 4.3)
	c.Rate = cmp.Or(c.Rate, 0.05)
	c.Observers = min(cmp.Or(c.Observers, 50), max(1, c.Players/cmp.Or(c.Gateways, 4)))
	c.Gateways = cmp.Or(c.Gateways, 4)
	c.Window = cmp.Or(c.Window, 60)
	c.Pairs = cmp.Or(c.Pairs, 16)
	c.History = cmp.Or(c.History, vclock.DefaultHistory)
	c.Shared = cmp.Or(c.Shared, 4096)
	return c
}

// Validate returns an error if the config is invalid, defaults applied.
func (c Config) Validate() error {
	c = c.withDefaults()
	for _, n := range []struct {
		name string
		v    float64
		most float64
	}{
		{"players", float64(c.Players), maxPlayers},
		{"side", c.Side, 1e6},
		{"vision", c.Vision, 1e6},
		{"rounds", float64(c.Rounds), 1e6},
		{"speed", c.Speed, c.Side},
		{"rate", c.Rate, 1},
		{"linger", float64(c.Linger + 1), 1e6},
		{"nearest", float64(c.Nearest + 1), maxPlayers},
		{"limit", float64(cmp.Or(c.Limit, 2) - 1), vclock.MaxEntries - 1},
		{"gateways", float64(c.Gateways), maxPlayers},
		{"history", float64(c.History), 1 << 16},
		{"shared", float64(c.Shared), 1 << 16},
		{"observers", float64(c.Observers), maxPlayers},
		{"window", float64(c.Window), 1e6},
		{"pairs", float64(c.Pairs), 1e6},
	} {
		if !(n.v > 0 && n.v <= n.most) {
			return fmt.Errorf("validate walk: %s is %v, want more than 0 and at most %v", n.name, n.v, n.most)
		}
	}
	return nil
}
