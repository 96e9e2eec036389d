package mod

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// DefaultRate is how many blocks a mod may change in a minute, if nothing else is asked for, and MaxRate the most that
// can be granted.
const (
	DefaultRate = 600
	MaxRate     = 60_000
)

// Grant is what an operator has granted a mod: all that its effects may do.
type Grant struct {
	Name    string
	Content Hash
	Events  []Kind    // that it gets, in order
	Blocks  Blocks    // that it may put and take away
	Area    *grid.Box // where it gets events and may have effects; nil: everywhere
	Rate    int       // blocks that it may change in a minute in each region
	Off     bool      // it is suspended everywhere: it gets no events
}

// Blocks are kinds of blocks: all, or those listed, with all of their states. Air always is one of them.
type Blocks struct {
	All   bool
	Bases []chunk.Block // in order, without air
}

const allBlocks = "all"

// Has reports whether a block is one of them.
func (b Blocks) Has(block chunk.Block) bool {
	if b.All || block == chunk.Air {
		return true
	}
	_, found := slices.BinarySearch(b.Bases, block.Base())
	return found
}

func (b Blocks) String() string {
	if b.All {
		return allBlocks
	}
	names := make([]string, len(b.Bases))
	for i, block := range b.Bases {
		names[i] = block.Name()
	}
	return strings.Join(names, ",")
}

// String returns the arguments of the command that grants this, as ParseGrant reads them.
func (g Grant) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v", g.Name, g.Content)
	if len(g.Events) > 0 {
		kinds := make([]string, len(g.Events))
		for i, kind := range g.Events {
			kinds[i] = string(kind)
		}
		fmt.Fprintf(&b, " events=%s", strings.Join(kinds, ","))
	}
	if blocks := g.Blocks.String(); blocks != "" {
		fmt.Fprintf(&b, " blocks=%s", blocks)
	}
	if a := g.Area; a != nil {
		fmt.Fprintf(&b, " area=%d,%d,%d:%d,%d,%d", a.Min.X, a.Min.Y, a.Min.Z, a.Max.X, a.Max.Y, a.Max.Z)
	}
	fmt.Fprintf(&b, " rate=%d", g.Rate)
	if g.Off {
		b.WriteString(" off")
	}
	return b.String()
}

// ParseGrant reads NAME HASH [events=KIND,…] [blocks=BLOCK,…|all] [area=BOX|all] [rate=COUNT] [off].
func ParseGrant(args []string) (g Grant, err error) {
	if len(args) < 2 {
		return g, errors.New("want the name of a mod and the hash of its content")
	}
	g.Name, g.Rate = args[0], DefaultRate
	if g.Content, err = ParseHash(args[1]); err != nil {
		return g, err
	}
	return g.With(args[2:])
}

// With returns the grant with changes, written as for ParseGrant; "on" is the opposite of "off".
func (g Grant) With(changes []string) (Grant, error) {
	for _, change := range changes {
		key, value, _ := strings.Cut(change, "=")
		var err error
		switch key {
		case "events":
			g.Events = nil
			for kind := range strings.SplitSeq(value, ",") {
				if value != "" {
					g.Events = append(g.Events, Kind(kind))
				}
			}
			g.Events = slices.Compact(slices.Sorted(slices.Values(g.Events)))
		case "blocks":
			var names []string
			if value != "" {
				names = strings.Split(value, ",")
			}
			g.Blocks, err = parseBlocks(names)
		case "area":
			if g.Area = nil; value != "all" {
				var box grid.Box
				box, err = grid.ParseBox(value)
				g.Area = &box
			}
		case "rate":
			g.Rate, err = strconv.Atoi(value)
		case "on", "off":
			if g.Off = key == "off"; value != "" {
				err = fmt.Errorf("%.40q: want only %s", change, key)
			}
		default:
			err = fmt.Errorf("%.40q: want events=, blocks=, area=, rate=, on or off", change)
		}
		if err != nil {
			return Grant{}, err
		}
	}
	return g, g.validate()
}

func (g Grant) validate() error {
	if g.Name != "" { // a manifest's permissions have none
		if err := CheckName(g.Name); err != nil {
			return err
		}
	}
	for _, kind := range g.Events {
		if !slices.Contains(Kinds, kind) {
			return fmt.Errorf("there is no event %.40q", kind)
		}
	}
	if g.Rate < 1 || g.Rate > MaxRate {
		return fmt.Errorf("rate: want 1 to %d blocks a minute", MaxRate)
	}
	return nil
}

// Concerns reports whether the mod gets events of a kind, other than timers, about a block at a place. Of a block that was never edited a
// region does not know what it is when it is taken away: it passes air, and only who may change all blocks is concerned.
func (g Grant) Concerns(kind Kind, at grid.Pos, block chunk.Block) bool {
	return !g.Off && slices.Contains(g.Events, kind) && g.In(at) && (g.Blocks.All || block != chunk.Air && g.Blocks.Has(block))
}

// The names of the commands of operators about mods.
const (
	GrantCommand  = "grant"
	RevokeCommand = "revoke"
)

// ReadCommand reads what a command says of a mod: what it is granted, or only its name if it is removed. It reports
// false for other commands. A grant that it does not understand is one of nothing: later versions may know more events
// and blocks.
func ReadCommand(text string) (g Grant, removed, ok bool) {
	args := strings.Fields(text)
	if len(args) > 0 {
		args[0] = strings.ToLower(args[0]) // as the policy reads it
	}
	switch {
	case len(args) > 1 && args[0] == GrantCommand:
		g, err := ParseGrant(args[1:])
		if err != nil {
			g = Grant{Name: args[1], Off: true}
		}
		return g, false, CheckName(g.Name) == nil
	case len(args) == 2 && args[0] == RevokeCommand:
		return Grant{Name: args[1]}, true, CheckName(args[1]) == nil
	}
	return Grant{}, false, false
}

// In reports whether the block is in the area of the grant.
func (g Grant) In(at grid.Pos) bool { return g.Area == nil || g.Area.Contains(at) }
