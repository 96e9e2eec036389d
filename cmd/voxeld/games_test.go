package main

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/testkit/classicclient"
	"github.com/voxelpopuli/voxeld/testkit/luanticlient"
)

var (
	gamesBots = flag.Int("games.bots", 2, "how many clients of each game play in TestGamesTogether")
	gamesPlay = flag.Duration("games.play", 20*time.Second, "how long they play")
)

// Players of all games, and one in the browser's protocol, see what each of them builds; they cross the border of a region, and build, while
// its leader is killed, and nobody is disconnected. make visitors runs it with 20 of each, for five minutes.
func TestGamesTogether(t *testing.T) {
	t.Parallel()
	minecraft := startMinecraftClients(t)
	all := gameCluster(t, 4, "--classicube", classicPort, "--luanti", luantiPort, "--minecraft", minecraftPort)
	scout := join(t, all[0].Game, "scout", 1)
	start := scout.Pose.Block()
	leader, others := leaderOf(t, all, start.Chunk())
	session := join(t, others[0].Game, "browser", 2)

	var (
		classics   []*classicPlayer
		luantis    []*luantiPlayer
		minecrafts []*minecraftPlayer
	)
	for i := range *gamesBots {
		at := others[i%len(others)]
		classics = append(classics, joinClassic(t, at, fmt.Sprint("classic", i), classicclient.Usual))
		luantis = append(luantis, joinLuanti(t, at, luanticlient.Options{Name: fmt.Sprint("luanti", i)}))
		minecrafts = append(minecrafts, minecraft.join(at, fmt.Sprint("minecraft", i)))
	}

	pos := grid.Pos{X: start.X, Y: start.Y + 3, Z: start.Z + 1}
	for i, build := range []func(){
		func() { session.put(pos, chunk.Brick) },
		func() { classics[0].build(pos, chunk.Brick) },
		func() { luantis[0].Build(brick, nodeAt(pos), nodeAt(pos)) },
		func() { minecrafts[0].do("choose", "bricks"); minecrafts[0].do("put", pos.X, pos.Y, pos.Z, 1) },
	} {
		t.Logf("builder %d", i)
		build()
		session.until("the block", func() bool { b, known := session.Block(pos); return known && b == chunk.Brick })
		classics[0].sees(pos, chunk.Brick)
		luantis[0].sees(pos, chunk.Brick)
		minecrafts[0].sees(pos, "bricks")
		pos.Y++
	}

	border := start.X
	for cell := grid.CellAt(start.Chunk(), grid.FoundingLabel); grid.CellAt((grid.Pos{X: border, Z: start.Z}).Chunk(), grid.FoundingLabel) == cell; {
		border++
	}
	t.Logf("%d players of each game cross the border at %d, for %v", *gamesBots, border, *gamesPlay)
	t.Run("play", func(t *testing.T) {
		t.Run("classic", func(t *testing.T) {
			t.Parallel()
			walk(t, classics, float64(border), *gamesPlay, func() { leader.kill() })
		})
		t.Run("luanti", func(t *testing.T) {
			t.Parallel()
			walkLuanti(t, luantis, float64(border), *gamesPlay, func() {})
		})
		t.Run("minecraft", func(t *testing.T) {
			t.Parallel()
			flyMinecraft(t, minecrafts, float64(border), *gamesPlay, func() {})
		})
	})
}
