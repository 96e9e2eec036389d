package sessionmsg

import "github.com/voxelpopuli/voxeld/grid"

const (
	// MaxNearby is the most players in a Nearby, and names in a People.
	MaxNearby = 500
	// MapTileChunks is the number of chunks along a side of a tile of the map, which has a point every 4 blocks.
	MapTileChunks = 8
	// MapPointSize is the number of bytes of a point.
	MapPointSize = 4
	// MapReach is how many tiles away from their own players may request one.
	MapReach = 8
	// maxTile bounds the coordinates of tiles.
	maxTile = grid.Limit / MapTileChunks
)

// NearbyRequest requests a Nearby. It may be sent if the Welcome has Map set, like a MapRequest, and when the answer to
// the one before has arrived.
type NearbyRequest struct{}

// PeopleRequest requests a People. It may be sent if the Welcome has People set, under the same rule.
type PeopleRequest struct{}

// MapRequest requests a MapTile.
type MapRequest struct {
	X int32 `json:"x"`
	Z int32 `json:"z"`
}

func (NearbyRequest) clientType() string { return "nearby" }
func (PeopleRequest) clientType() string { return "people" }
func (MapRequest) clientType() string    { return "map" }

// Nearby lists the players in the land around the player, in view or not, themselves included.
type Nearby struct {
	Players  []NearbyPlayer `json:"players"`
	Complete bool           `json:"complete"` // there are no others
}

// NearbyPlayer is a player, and the block that they are in.
type NearbyPlayer struct {
	Player string `json:"player"`
	Name   string `json:"name"`
	Guest  bool   `json:"guest,omitempty"`
	X      int32  `json:"x"`
	Y      int32  `json:"y"`
	Z      int32  `json:"z"`
}

// People lists who plays in the world, on any node: at most MaxNearby names, in order, and how many players there are.
type People struct {
	Names   []string `json:"names"`
	Players uint64   `json:"players"`
}

// MapTile shows MapTileChunks × MapTileChunks chunks from above; the first is (X, Z) times that. Points are rows along
// X. Each is the height and the block id of the topmost block there, as two little-endian uint16s. They are empty if
// the gateway is too busy.
type MapTile struct {
	X        int32  `json:"x"`
	Z        int32  `json:"z"`
	Points   []byte `json:"points"`
	Complete bool   `json:"complete"` // everything is drawn that was built there
}

func (Nearby) serverType() string  { return "nearby" }
func (People) serverType() string  { return "people" }
func (MapTile) serverType() string { return "map" }
