package clocks

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/voxelpopuli/voxeld/vclock"
)

// idOf returns the ID of player i, 16 bytes long like a player.ID.
func idOf(i int) vclock.ID {
	id := make([]byte, 16)
	binary.BigEndian.PutUint16(id, uint16(i))
	return vclock.ID(id)
}

// indexOf is the inverse of idOf.
func indexOf(id vclock.ID) int { return int(id[0])<<8 | int(id[1]) }

type place struct{ x, y float64 }

func (p place) to(q place) float64 { return math.Hypot(p.x-q.x, p.y-q.y) }

// crowd holds the positions of all players. Each walks to a random point, and then to another.
type crowd struct {
	cfg   Config
	rng   *rand.Rand
	at    []place
	goals []place
	cells map[[2]int][]int // players by squares of Vision blocks
	round int
	near  [][]int   // the players in vision of each player, excluding themselves
	seen  [][]int32 // by player and player: the last round in which one had the other (or themselves) in vision; 0: not yet
}

func newCrowd(cfg Config, rng *rand.Rand) *crowd {
	c := &crowd{
		cfg: cfg, rng: rng,
		at: make([]place, cfg.Players), goals: make([]place, cfg.Players),
		near: make([][]int, cfg.Players), seen: make([][]int32, cfg.Players),
	}
	for i := range c.at {
		c.seen[i] = make([]int32, cfg.Players)
		c.at[i], c.goals[i] = c.draw(), c.draw()
	}
	return c
}

func (c *crowd) draw() place {
	return place{c.rng.Float64() * c.cfg.Side, c.rng.Float64() * c.cfg.Side}
}

// walk moves everybody by one round.
func (c *crowd) walk() {
	c.round++
	for i, goal := range c.goals {
		left := c.at[i].to(goal)
		if left <= c.cfg.Speed {
			c.at[i], c.goals[i] = goal, c.draw()
			continue
		}
		part := c.cfg.Speed / left
		c.at[i].x += part * (goal.x - c.at[i].x)
		c.at[i].y += part * (goal.y - c.at[i].y)
	}
	c.sort()
}

func (c *crowd) cellOf(p place) [2]int {
	return [2]int{int(p.x / c.cfg.Vision), int(p.y / c.cfg.Vision)}
}

// sort determines who sees whom.
func (c *crowd) sort() {
	c.cells = make(map[[2]int][]int)
	for i, p := range c.at {
		cell := c.cellOf(p)
		c.cells[cell] = append(c.cells[cell], i)
	}
	for i := range c.at {
		c.near[i] = c.look(i)
		c.seen[i][i] = int32(c.round)
		for _, j := range c.near[i] {
			c.seen[i][j] = int32(c.round)
		}
	}
}

// look returns the other players whom a player has in vision.
func (c *crowd) look(i int) []int {
	var out []int
	cell := c.cellOf(c.at[i])
	for dx := -1; dx <= 1; dx++ {
		for dy := -1; dy <= 1; dy++ {
			for _, j := range c.cells[[2]int{cell[0] + dx, cell[1] + dy}] {
				if j != i && c.at[i].to(c.at[j]) <= c.cfg.Vision {
					out = append(out, j)
				}
			}
		}
	}
	return out
}

// relevant returns the players relevant to a player now, always including the player.
func (c *crowd) relevant(i int) vclock.Relevant {
	if c.cfg.Nearest > 0 {
		return c.nearest(i)
	}
	return func(id vclock.ID) bool {
		at := c.seen[i][indexOf(id)]
		return at > 0 && at >= int32(c.round-c.cfg.Linger)
	}
}

// nearest returns the nearest players in vision as a Relevant.
func (c *crowd) nearest(i int) vclock.Relevant {
	near := slices.Clone(c.near[i])
	slices.SortFunc(near, func(a, b int) int { return cmp.Compare(c.at[i].to(c.at[a]), c.at[i].to(c.at[b])) })
	near = near[:min(len(near), c.cfg.Nearest)]
	return func(id vclock.ID) bool { return indexOf(id) == i || slices.Contains(near, indexOf(id)) }
}
