package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Limits of claims.
const (
	MaxClaims       = 20_000
	MaxClaimMembers = 32
	// MinClaimSide and MaxClaimSide bound the width, length and, from below, height of a claim, in blocks. They bound
	// how many claims there can be in a chunk, and in how many chunks a claim can be.
	MinClaimSide = 4
	MaxClaimSide = 512
	// MaxHeight is the height of the highest worlds: the Y of claims of whole columns goes from 0 to below it.
	MaxHeight = 1024
)

// What builders may claim in a new world. Moderators and above may claim moderatorClaims times as much.
const (
	defaultClaims    = 4
	defaultClaimArea = 128 * 128
	moderatorClaims  = 10
	mostClaims       = 1000
	mostClaimArea    = 1 << 24
)

// areaOf returns the number of columns.
func areaOf(b grid.Box) int64 { x, _, z := b.Sides(); return x * z }

// columns reports whether the box has whole columns.
func columns(b grid.Box) bool { return b.Min.Y == 0 && b.Max.Y == MaxHeight-1 }

// corners returns a box as parseBox reads it.
func corners(b grid.Box) string {
	if columns(b) {
		return fmt.Sprintf("%d,%d %d,%d", b.Min.X, b.Min.Z, b.Max.X, b.Max.Z)
	}
	return fmt.Sprintf("%v %v", b.Min, b.Max)
}

// chunksOf visits the chunks that have a block of the box.
func chunksOf(b grid.Box, visit func(grid.ChunkPos)) {
	from, to := b.Min.Chunk(), b.Max.Chunk()
	for x := from.X; x <= to.X; x++ {
		for z := from.Z; z <= to.Z; z++ {
			visit(grid.ChunkPos{X: x, Z: z})
		}
	}
}

// Claim is land that a player keeps for themselves and those whom they trust. It never changes: a changed one is
// another value.
type Claim struct {
	Owner player.ID `json:"owner"`
	Name  string    `json:"name"` // unique among those of the owner
	// Number is that of the mark in the history of the land: what is older is not the owner's to undo.
	Number int64 `json:"-"`
	grid.Box
	Members []player.ID `json:"members,omitempty"`
	// Open means that everybody may build in it, Private that only those who always may may enter it.
	Open    bool `json:"open"`
	Private bool `json:"private"`
	// At is when it was claimed, in Unix milliseconds. Used means that its owner has come back since, on another day.
	At   int64 `json:"at"`
	Used bool  `json:"used"`
}

// Has reports whether a player is the claim's owner, or a member. The id of a guest is zero.
func (c *Claim) Has(id player.ID) bool {
	return id != player.ID{} && (id == c.Owner || slices.Contains(c.Members, id))
}

// MayBuild reports whether a player who may build may do so in the claim. The id of a guest is zero.
func (c *Claim) MayBuild(id player.ID, role Role) bool {
	return c.Open || role.AtLeast(Moderator) || c.Has(id)
}

// MayEnter reports whether a player may enter the claim. The id of a guest is zero.
func (c *Claim) MayEnter(id player.ID, role Role) bool {
	return !c.Private || role.AtLeast(Moderator) || c.Has(id)
}

// tally counts the commands of a kind that players have given.
type tally struct {
	what    notice.Notice     // what they are about
	most    int               // how many there may be in all, but for those of moderators and above
	acts    int               // in all
	day     int64             // since 1970, by the clock of the catalog's leader: players choose the times that they sign
	changes map[player.ID]int // of each player, on that day
}

// squareShift is the logarithm of the width of a square, in chunks.
const squareShift = 4

type square map[grid.ChunkPos][]*Claim

// Claims is all claims of a world. Those that State.Claims returns never change: any goroutine may use them.
type Claims struct {
	squares map[grid.ChunkPos]square // each has 16×16 chunks
	owners  map[player.ID][]*Claim   // in the order in which they were claimed or changed last
	count   int
	private int         // how many of them are private
	shared  atomic.Bool // it must not change any more
}

func newClaims() *Claims {
	return &Claims{squares: make(map[grid.ChunkPos]square), owners: make(map[player.ID][]*Claim)}
}

// put adds a claim, or removes it. It changes no square and no list in place: an older Claims may have the same.
func (c *Claims) put(it *Claim, add bool) {
	change := func(list []*Claim) []*Claim {
		if add {
			return append(slices.Clip(list), it)
		}
		return slices.DeleteFunc(slices.Clone(list), func(other *Claim) bool { return other == it })
	}
	by := 1
	if !add {
		by = -1
	}
	c.count += by
	if it.Private {
		c.private += by
	}
	if c.owners[it.Owner] = change(c.owners[it.Owner]); len(c.owners[it.Owner]) == 0 {
		delete(c.owners, it.Owner)
	}
	cloned := make(map[grid.ChunkPos]bool)
	chunksOf(it.Box, func(at grid.ChunkPos) {
		of := squareOf(at)
		if !cloned[of] {
			if cloned[of] = true; c.squares[of] == nil {
				c.squares[of] = make(square)
			} else {
				c.squares[of] = maps.Clone(c.squares[of])
			}
		}
		if list := change(c.squares[of][at]); len(list) > 0 {
			c.squares[of][at] = list
		} else if delete(c.squares[of], at); len(c.squares[of]) == 0 {
			delete(c.squares, of)
		}
	})
}

func squareOf(at grid.ChunkPos) grid.ChunkPos {
	return grid.ChunkPos{X: at.X >> squareShift, Z: at.Z >> squareShift}
}

// in returns the claims that have a block of a chunk.
func (c *Claims) in(at grid.ChunkPos) []*Claim { return c.squares[squareOf(at)][at] }

// Count returns the number of claims.
func (c *Claims) Count() int { return c.count }

// At returns the claim that has a block, or nil.
func (c *Claims) At(pos grid.Pos) *Claim {
	if c.count == 0 {
		return nil
	}
	for _, it := range c.in(pos.Chunk()) {
		if it.Contains(pos) {
			return it
		}
	}
	return nil
}

// Keeps returns the private claim that a player may not enter by a step from one block into another, or nil. Who is in
// it already, may walk in it, and leave.
func (c *Claims) Keeps(id player.ID, role Role, from, to grid.Pos) *Claim {
	if c.private == 0 || from == to {
		return nil
	}
	if it := c.At(to); it != nil && !it.MayEnter(id, role) && !it.Contains(from) {
		return it
	}
	return nil
}

// Of returns the claims of a player. The caller must not change the list.
func (c *Claims) Of(owner player.ID) []*Claim { return c.owners[owner] }

// All visits all claims, those of a player together.
func (c *Claims) All(visit func(*Claim)) {
	owners := slices.SortedFunc(maps.Keys(c.owners), func(a, b player.ID) int { return slices.Compare(a[:], b[:]) })
	for _, owner := range owners {
		for _, it := range c.owners[owner] {
			visit(it)
		}
	}
}

// Near returns the claims in the chunks around one, at most so many, nearest chunks first.
func (c *Claims) Near(at grid.ChunkPos, radius int32, most int) (near []*Claim) {
	if c.count == 0 {
		return nil
	}
	seen := make(map[*Claim]bool)
	for r := range radius + 1 {
		for dx := -r; dx <= r; dx++ {
			step := int32(1)
			if dx > -r && dx < r {
				step = 2 * r // only the border of the square
			}
			for dz := -r; dz <= r; dz += max(step, 1) {
				for _, it := range c.in(grid.ChunkPos{X: at.X + dx, Z: at.Z + dz}) {
					if seen[it] {
						continue
					}
					if seen[it] = true; len(near) == most {
						return near
					}
					near = append(near, it)
				}
			}
		}
	}
	return near
}

// overlapping returns a claim that has a block of the box, or nil.
func (c *Claims) overlapping(b grid.Box) (found *Claim) {
	chunksOf(b, func(at grid.ChunkPos) {
		for _, it := range c.in(at) {
			if found == nil && it.Overlaps(b) {
				found = it
			}
		}
	})
	return found
}

// named returns the claim of a player with the name, or nil.
func (c *Claims) named(owner player.ID, name string) *Claim {
	for _, it := range c.owners[owner] {
		if strings.EqualFold(it.Name, name) {
			return it
		}
	}
	return nil
}
