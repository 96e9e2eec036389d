package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

const (
	// tickBudget and frameGap are what ticks' p99 and the time without a frame must stay below.
	tickBudget = 50 * time.Millisecond
	frameGap   = 250 * time.Millisecond
	// around is the distance in blocks from the spot at which the players are before they come, and after they have left.
	around = 32 * grid.ChunkSize
	// crowdEdits are the edits a second at the spot, the whole time.
	crowdEdits = 20
	// mergeAfter is for how long the daemons see halves quiet before they merge them.
	mergeAfter = 15 * time.Second
)

// measureCrowd has players walk into one spot, stay, and leave again.
func measureCrowd(ctx context.Context, o options) error {
	total := nodes
	if o.kills > 0 {
		total = 2 * nodes
	}
	daemons, err := o.start(ctx, total, fmt.Sprintf("--split-players=%d", o.limit), "--split-tick=50", "--merge-after="+mergeAfter.String(), "--sessions-per-address=10000")
	if err != nil {
		return err
	}
	defer daemon.KillAll(daemons)
	heights := crowd.NewHeightMap()
	spawn, err := heights.Fetch(ctx, daemons[0].Game, 12)
	if err != nil {
		return err
	}
	cell := grid.CellAt(spawn, grid.FoundingLabel)
	area := cell.Area()
	middle := grid.ChunkPos{X: (area.MinX + area.MaxX) / 2, Z: (area.MinZ + area.MaxZ) / 2}
	var games []string
	for _, d := range daemons[:nodes] {
		games = append(games, d.Game)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := crowd.New(crowd.Options{Targets: games, Heights: heights, JoinRate: 20, Roam: around, Silences: true})
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { c.Run(ctx) })
	logf("%d players join", o.players)
	if err := c.Add(ctx, o.players); err != nil {
		return err
	}
	c.Scatter(ring(middle, 150))
	e := startEditors(ctx, daemons[:nodes], crowdEdits, middle)
	defer e.stop()
	if err := e.awaitRate(ctx, crowdEdits, cell); err != nil {
		return err
	}
	w := &watch{start: time.Now(), daemons: daemons, crowd: c, cell: cell}
	logf("waiting until they are away, and all is merged")
	if err := w.until(ctx, 4*time.Minute, func(s second) bool { return s.Inside <= o.limit/10 && s.Deepest == 0 }); err != nil {
		return err
	}
	w.begin()
	mark := time.Now()
	logf("they walk to the spot")
	if err := w.run(ctx, 10*time.Second); err != nil {
		return err
	}
	c.Gather(square(middle))
	if err := w.until(ctx, 2*time.Minute, func(s second) bool { return s.There >= o.players*9/10 }); err != nil {
		return err
	}
	logf("they are there")
	if err := w.run(ctx, o.stay); err != nil {
		return err
	}
	k := &killer{daemons: daemons, spared: nodes, cell: cell, rng: rand.New(rand.NewPCG(1, 0))}
	for k.kills < o.kills {
		if err := k.kill(ctx); err != nil {
			return err
		}
		if _, err := w.measure(ctx); err != nil {
			return err
		}
	}
	logf("they leave")
	c.Scatter(ring(middle, 150))
	err = w.until(ctx, 5*time.Minute, func(s second) bool { return s.Inside <= o.limit/10 && s.Deepest == 0 })
	if err == nil {
		err = w.run(ctx, 10*time.Second)
	}
	if err != nil {
		return err
	}
	err = e.end()
	edits := latencies(e.between(mark, time.Now()))
	lost := c.Counts().Lost
	stop()
	running.Wait()
	gone, failed := e.verify(context.WithoutCancel(ctx), daemons[len(daemons)-1])
	err = errors.Join(err, failed)
	text := fmt.Sprintf("%d players, of whom %d lost the session; %s. %d edits at the spot, %d of all acknowledged ones lost: %s.",
		o.players, lost, w.summary(), edits.Count(), gone, summary(edits))
	fmt.Println(text)
	if o.kills > 0 {
		fmt.Printf("%d leaders were killed while their regions split; %d of these splits were acknowledged all the same\n", k.kills, k.done)
	} else if o.docs != "" {
		err = errors.Join(err, w.write(filepath.Join(o.docs, "images", "split-crowd.svg"), filepath.Join(o.docs, "data", "split-crowd.csv")))
		err = errors.Join(err, o.publish("split-crowd", text+"\n\n![Players, regions, ticks and frames](images/split-crowd.svg) ([CSV](data/split-crowd.csv))"))
	}
	if lost > 0 {
		err = errors.Join(err, fmt.Errorf("%d players lost the session: %v", lost, c.Counts().Failed))
	}
	if o.kills > 0 { // a region whose leader dies has none for about a second
		return err
	}
	return errors.Join(err, w.judge())
}

// square lists the four by four chunks around the middle.
func square(middle grid.ChunkPos) (all []grid.ChunkPos) {
	for x := int32(-2); x < 2; x++ {
		for z := int32(-2); z < 2; z++ {
			all = append(all, grid.ChunkPos{X: middle.X + x, Z: middle.Z + z})
		}
	}
	return all
}

// ring lists places around the middle.
func ring(middle grid.ChunkPos, n int) (all []crowd.Point) {
	x, z := float64(middle.X)*grid.ChunkSize, float64(middle.Z)*grid.ChunkSize
	for i := range n {
		turn := 2 * math.Pi * float64(i) / float64(n)
		all = append(all, crowd.Point{X: x + around*math.Cos(turn), Z: z + around*math.Sin(turn)})
	}
	return all
}
