package legacy

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Regions finds regions; a *region.Host.
type Regions interface {
	// Locate returns the region that covers the chunk, and founds it first if necessary.
	Locate(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error)
	// Find returns the region that covers the chunk, or region.ErrNotFounded.
	Find(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error)
	// Follow opens a link to that region, wherever it is led.
	Follow(ctx context.Context, pos grid.ChunkPos) (region.Link, nodemsg.Region, error)
	// Describe returns what a node says of itself.
	Describe(ctx context.Context, peer string) (nodemsg.Member, error)
}

// Link carries packets to and from a client. One goroutine reads.
type Link interface {
	Read() ([]byte, error)       // the next packet, which is valid until the next Read
	Ready() bool                 // another whole packet has been received
	Put(packet []byte)           // queues a packet; never blocks
	Behind(c *mirror.Chunk) bool // moves of the chunk are not to be queued: the client is late, and is sent the chunk later
	End()                        // lets what is queued be written, then resets the connection; any goroutine
	Wait()                       // waits until the connection is closed; End was called before
}

// Permissions are what the policy lets clients do.
type Permissions struct {
	// Admit returns why a client of the original protocol with that name, "" if it is not known yet, may not play here;
	// nil if it may.
	Admit func(remote net.Addr, name string) error
	// Registered reports whether a name is registered: no client may be shown under it. The one in a handshake may be.
	Registered func(name string) bool
	// RefuseEdit returns why a client may not change a block, as a code of wire; empty if it may. Keeps reports whether
	// a claim keeps it from going from one block into another, and MayGo whether the border lets it go from one place
	// to another.
	RefuseEdit func(remote net.Addr, name string, at grid.Pos) string
	Keeps      func(from, to grid.Pos) bool
	MayGo      func(from, to motion.Pose) bool
	Inside     func(at grid.ChunkPos) bool // whether a part of the chunk is within the border
	Edits      func() rate.Limit           // of a new player, a second
	// Edited is called for each change of a block that a client requests.
	Edited func(by player.ID, block chunk.Block)
}

// Options are the dependencies and settings of a Server.
type Options struct {
	World world.Genesis
	Peer  string // this node's peer id
	Permissions
	Rules   player.Rules
	Burst   int                    // of the edits of a new player
	Surface func(x, z int32) int32 // height of the ground
	Spawn   func() motion.Pose     // where an unknown player starts
	Regions Regions

	Mirror  *mirror.Mirror
	Players *players.Store
	Client  func(remote net.Addr) admission.Client
	// Reserve reserves a player's id here, unless it is in use; Release frees it.
	Reserve func(player.ID) bool
	Release func(player.ID)
	// SessionPose returns where a player with a session is, and reports whether there is one.
	SessionPose func(player.ID) (pose motion.Pose, here bool)
	// Open starts to write to a client, on behalf of a subscriber of the mirror.
	Open      func(c net.Conn, in *bufio.Reader, owner mirror.Subscriber) Link
	Connected func()               // called when a client has connected
	Now       func() time.Duration // the gateway's clock
	Wall      func() time.Time     // the node's wall clock, which need not be right
	// Corrections and Refusals count refused moves and edits, by reason.
	Corrections, Refusals *prometheus.CounterVec
	Logger                *slog.Logger
	Registerer            prometheus.Registerer
}
