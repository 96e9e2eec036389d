package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/classicclient"
	"github.com/voxelpopuli/voxeld/test/testkit/luanticlient"
)

// gamePlayer is a player with a client of another game.
type gamePlayer struct {
	say   func(line string)
	hears func(text string)
	leave func()
}

// Players of other games keep a name with a password, on every node: others cannot take it, and what they build is
// signed.
func TestPlayersOfGamesLogIn(t *testing.T) {
	t.Parallel()
	all := gameCluster(t, 2, "--classicube", classicPort, "--luanti", luantiPort, "--minecraft", minecraftPort)
	minecraft := startMinecraftClients(t)
	for game, enter := range map[string]func(d *daemon, name string) gamePlayer{
		"classic": func(d *daemon, name string) gamePlayer {
			p := joinClassic(t, d, name, classicclient.Usual)
			return gamePlayer{say: p.say, hears: p.hears, leave: p.Leave}
		},
		"luanti": func(d *daemon, name string) gamePlayer {
			p := joinLuanti(t, d, luanticlient.Options{Name: name})
			return gamePlayer{say: p.Say, hears: p.hears, leave: p.Leave}
		},
		"minecraft": func(d *daemon, name string) gamePlayer {
			p := minecraft.join(d, name)
			return gamePlayer{say: func(line string) { p.do("say", line) }, hears: p.hears, leave: func() { p.do("leave") }}
		},
	} {
		name := game + "-ada"
		ada := enter(all[0], name)
		ada.hears("You are a guest")
		ada.say("/register short")
		ada.hears("at least 8 characters")
		ada.say("/register correct-horse")
		ada.hears("is yours: nobody else")
		ada.leave()

		eventually(t, "the name on the other node", patience, func() bool {
			var audit []admin.AuditEntry
			all[1].ask("audit", &audit)
			return slices.ContainsFunc(audit, func(e admin.AuditEntry) bool { return e.By == name })
		})
		ada = enter(all[1], name)
		ada.hears("you are the guest")
		ada.say("/register correct-horse")
		ada.hears("type /login PASSWORD")
		ada.say("/login wrong-horse")
		ada.hears("not the password")
		ada.say("/login correct-horse")
		ada.hears("logged in as " + name)
		ada.say("/who")
		ada.hears("On this node: " + name)
		ada.say("/inspect 90,1,90 91,2,91")
		ada.hears("Nobody has changed anything between 90,1,90 and 91,2,91")

		all[1].operate("role", name, "moderator")
		ada.hears("/undo takes that back")
		watcher := join(t, all[0].Game, game+"-watcher", 2)
		low := watcher.Welcome.Pose.Block()
		low.Y += 40
		high := grid.Pos{X: low.X + 9, Y: low.Y + 1, Z: low.Z + 39}
		are := func(want chunk.Block) func() bool {
			return func() bool {
				first, _ := watcher.Block(low)
				last, _ := watcher.Block(high)
				return first == want && last == want
			}
		}
		var asked time.Time
		watcher.until("that "+name+" fills", func() bool {
			if time.Since(asked) > 1500*time.Millisecond { // the land may not be there yet; one look at it a second is answered
				asked = time.Now()
				ada.say(fmt.Sprintf("/fill %d %d %d %d %d %d lamp", low.X, low.Y, low.Z, high.X, high.Y, high.Z))
			}
			return are(chunk.Lamp)()
		})
		ada.hears("800 blocks were changed.")
		ada.say("/undo")
		watcher.until("that "+name+" takes that back", are(chunk.Air))
		ada.leave()
	}

	ada := joinClassic(t, all[0], "classic-ada", classicclient.Usual)
	ada.say("/login correct-horse")
	ada.hears("logged in as")
	ada.until("the new level", func(s *classicclient.State) bool { return s.Levels >= 2 })
	watcher := join(t, all[1].Game, "watcher", 2)
	var at grid.Pos
	o := ada.origin()
	ada.Look(func(s *classicclient.State) {
		at = grid.Pos{X: o.X + int32(math.Floor(s.Self.X)) + 1, Y: int32(math.Floor(s.Self.Y)) + 2, Z: o.Z + int32(math.Floor(s.Self.Z)) + 1}
	})
	ada.build(at, chunk.Brick)
	watcher.until("what ada has signed", func() bool { b, known := watcher.Block(at); return known && b == chunk.Brick })
	ada.say("/inspect " + at.String() + " " + at.String())
	ada.hears("1 change between " + at.String())
	if out, errs, _ := voxeld(t, "history", "--at", at.String(), "--data-dir", all[0].dir); !strings.Contains(out, "classic-ada") || strings.Contains(out, "guest") {
		t.Errorf("the history of the block is %q %q", out, errs)
	}
}
