package creature

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// Kind is a kind of creature. Numbers are stored and sent: they never change.
type Kind uint8

// Sheep are the only kind so far.
const Sheep Kind = 1

// kinds has what is known of each kind.
var kinds = [...]struct {
	name          string
	width, height float64     // of the body, in blocks
	speed         float64     // in blocks a tick
	colours       player.Skin // of its skin
}{
	Sheep: {name: "sheep", width: .8, height: 1.25, speed: .05, colours: 0xeed << 12},
}

// Parse returns the kind with a name.
func Parse(name string) (Kind, error) {
	for k := Sheep; int(k) < len(kinds); k++ {
		if kinds[k].name == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("there is no kind of creature %.20q", name)
}

// Known reports whether this version has the kind.
func (k Kind) Known() bool { return k >= Sheep && int(k) < len(kinds) }

// String returns the name of a kind that is Known, as players type it; it is the name of a creature that has none.
func (k Kind) String() string {
	if !k.Known() {
		return "creature"
	}
	return kinds[k].name
}

// skinPattern is the pattern of skins that are no player's. The low 8 bits are a Kind, and so the second colour, which
// is dark. Clients that know no creatures draw a plain figure.
const skinPattern = 0xff << 24

// Skin returns what a creature of the kind has as a skin where avatars are sent.
func (k Kind) Skin() player.Skin {
	s := skinPattern | player.Skin(k)
	if k.Known() {
		s |= kinds[k].colours
	}
	return s
}

// KindOf returns the kind of creature that an avatar with the skin is. It reports false if it is a player's.
func KindOf(s player.Skin) (Kind, bool) { return Kind(s), s&skinPattern == skinPattern } //nolint:gosec // the low 8 bits

// Creature is a creature as its region stores it.
type Creature struct {
	ID   player.ID   `cbor:"1,keyasint"` // no player has it; it never changes
	Kind Kind        `cbor:"2,keyasint"`
	Pose motion.Pose `cbor:"3,keyasint"` // rounded as Append does; Pitch is 0
	Goal Goal        `cbor:"4,keyasint,omitzero"`
}

// Valid returns an error if the pose or the goal is none. The kind may belong to a later version.
func (c *Creature) Valid() error {
	if c.Goal.Do > last {
		return errors.New("unknown goal")
	}
	to := motion.Pose{X: c.Goal.X, Z: c.Goal.Z}
	return errors.Join(c.Pose.Valid(), to.Valid())
}

// Do is what a creature tries to do.
type Do uint8

// What there is to do. Numbers are stored.
const (
	Wander Do = iota // here and there
	Stay
	GoTo // X, Z of the goal; Stay when it is there
	last = GoTo
)

// Goal is what a creature tries to do until a thought sets another goal. The zero value is Wander.
type Goal struct {
	_    struct{} `cbor:",toarray"`
	Do   Do
	X, Z float64
}

// unit is that of stored coordinates, in a block.
const unit = 256

// Append appends the bytes of a creature without its id: kind, goal, yaw in 1/256 of a turn, then x, y and z as varints
// in 1/256 block, and of a GoTo its X and Z.
func (c *Creature) Append(b []byte) []byte {
	turn := math.Round(float64(c.Pose.Yaw) / (2 * math.Pi) * 256)
	b = append(b, byte(c.Kind), byte(c.Goal.Do), byte(int64(turn))) //nolint:gosec // modulo a turn
	all := []float64{c.Pose.X, c.Pose.Y, c.Pose.Z}
	if c.Goal.Do == GoTo {
		all = append(all, c.Goal.X, c.Goal.Z)
	}
	for _, v := range all {
		b = binary.AppendVarint(b, int64(math.Floor(v*unit))) // down: never into another chunk
	}
	return b
}

var errMalformed = errors.New("malformed creature")

// Decode reads what Append wrote from the front of data, and returns the rest.
func Decode(data []byte) (c Creature, rest []byte, err error) {
	if len(data) < 3 {
		return c, nil, errMalformed
	}
	c.Kind, c.Goal.Do = Kind(data[0]), Do(data[1])
	c.Pose.Yaw = float32(int8(data[2])) / 256 * 2 * math.Pi //nolint:gosec // half a turn either way
	rest = data[3:]
	all := []*float64{&c.Pose.X, &c.Pose.Y, &c.Pose.Z}
	if c.Goal.Do == GoTo {
		all = append(all, &c.Goal.X, &c.Goal.Z)
	}
	for _, v := range all {
		fixed, n := binary.Varint(rest)
		if n <= 0 {
			return c, nil, errMalformed
		}
		*v, rest = float64(fixed)/unit, rest[n:]
	}
	if c.Valid() != nil {
		return c, nil, errMalformed
	}
	return c, rest, nil
}
