package world

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/trust"
)

const (
	// DefaultDay is the duration of 1440 minutes of game time, unless the genesis has another one.
	DefaultDay = 20 * time.Minute
	// MinDay is the shortest day that a genesis may have.
	MinDay = time.Minute
	// MaxDay is the longest.
	MaxDay = 7 * 24 * time.Hour
	// MinutesPerDay is the length of a day in game minutes.
	MinutesPerDay = 24 * 60
	// morning is the game time at the genesis' origin, in minutes: a new world starts in daylight.
	morning = 8 * 60

	// OriginalHeight is the height in blocks of the slab that VoxelPopuli's own clients see.
	OriginalHeight = 32
	// MaxSections bounds a world's height.
	MaxSections = 32

	maxWorldName = 64

	// GenesisTable is the table in which nodes store the genesis of their world, encoded.
	GenesisTable = "world"
	// GenesisKey is its key there.
	GenesisKey = "genesis"

	openGenesis   = 1 // version of a genesis without root keys
	closedGenesis = 2 // and with them
	timedGenesis  = 2 // is added to the version if the genesis has a day length
)

// Genesis holds the parameters that all nodes of a world share. It never changes; its hash is the world id.
type Genesis struct {
	Name         string         // for people, 1 to 64 bytes of printable UTF-8
	Seed         int64          // of the terrain
	Sections     int            // height of the world in sections of 32 blocks, 1 to MaxSections
	Terrain      int            // version of the terrain generator
	Placement    grid.Placement // how the keys of cells are derived
	Spawn        grid.Pos       // the block at the feet of a new player
	Origin       int64          // Unix milliseconds: the first morning, where world time starts
	OriginalBase int32          // y of the lowest block that VoxelPopuli's own clients see
	DayMS        int64          // the duration of 1440 minutes of game time in milliseconds; 0: DefaultDay
	Roots        []trust.Key    // root keys, whose holders decide who may run nodes; none: anybody may
}

// Open reports whether anybody may run a node of the world.
func (g Genesis) Open() bool { return len(g.Roots) == 0 }

// Height returns the world's height in blocks.
func (g Genesis) Height() int32 { return int32(g.Sections) * grid.ChunkSize }

// Validate returns an error that names the first invalid parameter.
func (g Genesis) Validate() error {
	switch {
	case g.Name == "" || len(g.Name) > maxWorldName || !utf8.ValidString(g.Name) || strings.ContainsFunc(g.Name, unprintable):
		return fmt.Errorf("world name %q: want 1 to %d bytes of printable text", g.Name, maxWorldName)
	case g.Sections < 1 || g.Sections > MaxSections:
		return fmt.Errorf("sections %d: want 1 to %d", g.Sections, MaxSections)
	case g.Terrain < 1:
		return fmt.Errorf("terrain version %d: want 1 or more", g.Terrain)
	case g.Spawn.Y < 0 || g.Spawn.Y > g.Height():
		return fmt.Errorf("spawn height %d: want 0 to %d", g.Spawn.Y, g.Height())
	case g.OriginalBase < 0 || g.OriginalBase > g.Height()-OriginalHeight:
		return fmt.Errorf("original base %d: want 0 to %d", g.OriginalBase, g.Height()-OriginalHeight)
	case g.DayMS != 0 && (g.DayMS < MinDay.Milliseconds() || g.DayMS > MaxDay.Milliseconds()):
		return fmt.Errorf("day length %d ms: want %v to %v", g.DayMS, MinDay, MaxDay)
	}
	if _, err := grid.ParsePlacement(string(g.Placement)); err != nil {
		return err
	}
	if g.Open() {
		return nil
	}
	return trust.FirstCharter(trust.World{}, g.Roots).Validate()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// ID returns the world id: 64 hex digits of the SHA-256 of the encoded genesis.
func (g Genesis) ID() string {
	sum := sha256.Sum256(g.Encode())
	return hex.EncodeToString(sum[:])
}

// DayLength returns the duration of 1440 minutes of game time.
func (g Genesis) DayLength() time.Duration {
	if g.DayMS == 0 {
		return DefaultDay
	}
	return time.Duration(g.DayMS) * time.Millisecond
}

// TimeOfDay returns the game time in minutes since midnight, in [0, MinutesPerDay), at the given Unix milliseconds.
// Nodes need no message to agree on it.
func (g Genesis) TimeOfDay(unixMilli int64) float64 {
	day := g.DayLength().Milliseconds()
	since := ((unixMilli-g.Origin)%day + day) % day
	minutes := morning + float64(since)*MinutesPerDay/float64(day)
	if minutes >= MinutesPerDay {
		minutes -= MinutesPerDay
	}
	return minutes
}

// Encode returns the canonical bytes of the genesis: the version byte, then each field in the order of the struct, the
// day length only if there is one; strings as uvarint length and bytes, numbers as varints (zigzag), root keys as they
// are.
func (g Genesis) Encode() []byte {
	b := []byte{closedGenesis}
	if g.Open() {
		b[0] = openGenesis
	}
	if g.DayMS != 0 {
		b[0] += timedGenesis
	}
	b = appendText(b, g.Name)
	b = binary.AppendVarint(b, g.Seed)
	b = binary.AppendVarint(b, int64(g.Sections))
	b = binary.AppendVarint(b, int64(g.Terrain))
	b = appendText(b, string(g.Placement))
	b = binary.AppendVarint(b, int64(g.Spawn.X))
	b = binary.AppendVarint(b, int64(g.Spawn.Y))
	b = binary.AppendVarint(b, int64(g.Spawn.Z))
	b = binary.AppendVarint(b, g.Origin)
	b = binary.AppendVarint(b, int64(g.OriginalBase))
	if g.DayMS != 0 {
		b = binary.AppendVarint(b, g.DayMS)
	}
	for _, k := range g.Roots {
		b = append(b, k[:]...)
	}
	return b
}

var errGenesis = errors.New("malformed genesis")

// DecodeGenesis decodes and validates what Encode wrote.
func DecodeGenesis(data []byte) (Genesis, error) {
	if len(data) == 0 || data[0] < openGenesis || data[0] > closedGenesis+timedGenesis {
		return Genesis{}, fmt.Errorf("%w: unknown version; upgrade voxeld", errGenesis)
	}
	version := data[0]
	timed := version > closedGenesis
	if timed {
		version -= timedGenesis
	}
	r := reader{data: data[1:]}
	g := Genesis{
		Name:         r.text(maxWorldName),
		Seed:         r.varint(),
		Sections:     int(r.int32()),
		Terrain:      int(r.int32()),
		Placement:    grid.Placement(r.text(maxWorldName)),
		Spawn:        grid.Pos{X: r.int32(), Y: r.int32(), Z: r.int32()},
		Origin:       r.varint(),
		OriginalBase: r.int32(),
	}
	if timed {
		g.DayMS = r.varint()
	}
	for !r.bad && version == closedGenesis && len(r.data) >= len(trust.Key{}) && len(g.Roots) < trust.MaxRoots {
		g.Roots = append(g.Roots, trust.Key(r.data[:len(trust.Key{})]))
		r.data = r.data[len(trust.Key{}):]
	}
	if r.bad || len(r.data) != 0 || g.Open() != (version == openGenesis) || timed != (g.DayMS != 0) {
		return Genesis{}, errGenesis
	}
	if err := g.Validate(); err != nil {
		return Genesis{}, fmt.Errorf("%w: %w", errGenesis, err)
	}
	return g, nil
}
