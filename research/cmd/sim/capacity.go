package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// capacity is a world, and what one of each thing costs. The defaults are measured (docs/performance.md,
// research/measured.md); the comments name the command.
type capacity struct {
	area     float64 // km²
	players  float64
	nodes    []int
	replicas float64
	speed    float64 // blocks a second
	edits    float64 // a second and player
	crowd    float64 // players in one place, each on a gateway of their own

	idleCPU    float64 // of a core, a node                              bench network
	playerCPU  float64 // of a core, a player who is spread out          bench many-chunks
	gateways   float64 // factor if a crowd is on several gateways       bench gateways
	leadCPU    float64 // of a core, a player in a region led here       bench gateways
	playerOut  float64 // kB/s to a player                               bench many-chunks
	moves      float64 // a second, from a player's gateway to a region  bench network
	moveBytes  float64 // wire/nodemsg, Moves
	nodeMemory float64 // MiB                                            bench memory
	playerMem  float64 // MiB                                            bench memory
	editBytes  float64 // on disk, of a changed block                    go doc ./store
	foundings  float64 // a second                                       measured.md, The catalog
	lookups    float64 // a second                                       measured.md, The catalog
	rowMemory  float64 // bytes in memory on a member of the catalog     measured.md, The catalog
	rowDisk    float64 // bytes on its disk                              measured.md, The catalog
	rows       float64 // that fit into a snapshot of the catalog        measured.md, The catalog
	dhtShare   float64 // of border crossings, with a DHT lookup         bench crossings
	chunkCrowd float64 // players in one chunk that hold                 bench one-chunk
}

func newSimCapacity() *cobra.Command {
	m := capacity{
		idleCPU: .0022, playerCPU: .00054, gateways: 1.5, leadCPU: .000042, playerOut: 4.22, moves: 1.1, moveBytes: 54,
		nodeMemory: 33, playerMem: .15, editBytes: 40, foundings: 7000, lookups: 110_000, rowMemory: 80, rowDisk: 830, rows: 10_000_000, dhtShare: .01,
		chunkCrowd: 1500,
	}
	c := &cobra.Command{
		Use: "capacity", Short: "Compute what a large world needs, from measured costs, and what breaks first",
		Example: "  sim capacity",
		Long: "Computes nodes, bandwidth, lookups and the catalog's load for the world of the dissertation's §4.6.1, or another one, from the\n" +
			"costs that other commands measure (research/measured.md). Players are spread evenly, but for one crowd.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if m.area <= 0 || m.players < 1 || m.replicas < 1 || m.speed <= 0 || m.edits < 0 || m.crowd < 1 {
				return errors.New("--area, --players, --replicas, --speed and --crowd must be positive, --edits 0 or more")
			}
			for _, n := range m.nodes {
				if n < 1 {
					return errors.New("--nodes must be 1 or more")
				}
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s\n%s", m.needs().Markdown(), m.limits().Markdown())
			return err
		},
	}
	f := c.Flags()
	f.Float64Var(&m.area, "area", 200, "area of the world in km², a block being a metre")
	f.Float64Var(&m.players, "players", 60_000, "players at the same time")
	f.IntSliceVar(&m.nodes, "nodes", []int{120, 2000, 20_000}, "numbers of nodes; the dissertation has the last two")
	f.Float64Var(&m.replicas, "replicas", 3, "replicas of a region")
	f.Float64Var(&m.speed, "speed", 4, "blocks that a player walks in a second")
	f.Float64Var(&m.edits, "edits", .05, "changed blocks a second and player")
	f.Float64Var(&m.crowd, "crowd", 600, "players in one place, each on a node of their own")
	return c
}

const cellSide = grid.DomainSize / 4 * grid.ChunkSize // blocks along a founded cell

// regions returns the number of founded regions.
func (m capacity) regions() float64 { return math.Ceil(m.area * 1e6 / (cellSide * cellSide)) }

// crossings returns how many borders all players cross in a second: a walker in any direction crosses the lines of a
// square grid 4 · speed / (π · side) times a second.
func (m capacity) crossings() float64 { return m.players * 4 * m.speed / (math.Pi * cellSide) }

// needs returns what a node needs, by the number of nodes.
func (m capacity) needs() figure.Table {
	t := figure.Table{Head: []string{fmt.Sprintf("%.0f km², %.0f players, %.0f regions", m.area, m.players, m.regions())}}
	for _, n := range m.nodes {
		t.Head = append(t.Head, fmt.Sprintf("%d nodes", n))
	}
	row := func(name string, of func(nodes float64) float64) {
		cells := []any{name}
		for _, n := range m.nodes {
			cells = append(cells, of(float64(n)))
		}
		t.Add(cells...)
	}
	regions, perRegion := m.regions(), m.players/m.regions()
	row("players a node", func(n float64) float64 { return m.players / n })
	row("regions led by a node", func(n float64) float64 { return regions / n })
	row("CPU of a node, % of a core", func(n float64) float64 {
		return 100 * (m.idleCPU + m.players/n*(m.playerCPU*m.gateways+m.leadCPU))
	})
	row("to players, kB/s a node", func(n float64) float64 { return m.players / n * m.playerOut })
	row("to other nodes, kB/s a node", func(n float64) float64 {
		up := m.players / n * m.moves * m.moveBytes
		watching := math.Min(n, perRegion) // gateways of a region
		down := regions / n * watching * perRegion * m.moves * m.moveBytes
		return (up + down) / 1000
	})
	row("memory, MiB a node", func(n float64) float64 { return m.nodeMemory + m.players/n*m.playerMem })
	row("borders crossed, a second and node", func(n float64) float64 { return m.crossings() / n })
	row("DHT lookups of these at most, a second, all nodes", func(float64) float64 { return m.crossings() * m.dhtShare })
	row("disk, MB a day and node", func(n float64) float64 { return m.players * m.edits * 86400 * m.editBytes * m.replicas / n / 1e6 })
	return t
}

// limits returns what breaks, and at what size, the nearest limit first among those of the catalog.
func (m capacity) limits() figure.Table {
	t := figure.Table{Head: []string{"limit", "here", "bears", "times"}}
	add := func(name string, here, bears float64) { t.Add(name, here, bears, bears/here) }
	regions, chunks := m.regions(), m.area*1e6/(grid.ChunkSize*grid.ChunkSize)
	crowdOut := m.crowd * m.crowd * m.moves * m.moveBytes * 8 / 1e6
	add("players in one chunk", m.crowd, m.chunkCrowd)
	add("… on as many gateways: Mbit/s of the region's leader", crowdOut, 1000)
	add("regions in the catalog", regions, m.rows)
	add("… if every region were split to single chunks", chunks+regions, m.rows)
	add("foundings a second, if all land is first seen within a minute", regions/60, m.foundings)
	add("catalog lookups a second, if every crossing asked it", m.crossings(), m.lookups)
	add("memory of a member of the catalog for its rows, MB", regions*m.rowMemory/1e6, m.rows*m.rowMemory/1e6)
	add("disk of a member of the catalog for its rows, MB", regions*m.rowDisk/1e6, m.rows*m.rowDisk/1e6)
	return t
}
