// Package legacy serves VoxelPopuli's own clients: connections to chunks, and queries where chunks and players are.
//
// A client holds a connection to each chunk in view. The protocol has no sessions: which connections belong to one
// player is decided by name and address (see party). Each connection's reader owns it; Server.Run sends the time of
// day.
//
// # Rules
//
// The server does not close silent connections. It ends those after connect and dht by a reset, also when the process
// is killed, and resets those to a chunk when another node leads its region: the client then asks dht again. "no" to
// connect means that the chunk lives elsewhere, or is not founded, that the player may not play, or that the address
// has too many connections or is in too many regions.
//
//   - Land is founded within 5 chunks of the spawn and of chunk [0,0], of where a player is registered, and of the
//     place that a query for a player is answered (docs/adr/0097).
//   - In a taller world clients see the 32 blocks from the world's original_base up, and y is translated. The lowest of
//     the 32 layers is the floor: shown as stone where it is empty, and not to be changed.
//   - A BLOCK_CHANGE whose y is not 0 to 31 changes nothing, and is refused in silence where a session's would be. The
//     player must be registered at this server, on any of their connections. If no connection of that name and address
//     is registered, as after a reset, each may edit its own chunk. After the first PLAYER_MOVE the block must be in
//     reach (9 blocks from the eyes); before it, in the chunk of the registration. A solid block may not be put into a
//     body.
//   - The first PLAYER_MOVE after a PLAYER_REGISTER must lie at most 2 chunks away, else it is ignored. Moves are
//     checked like those of sessions, except that walls do not stop them; of those within 25 ms the newest counts.
//   - In names, characters that a session's may not have become "_", more than 20 are cut off, and an empty name
//     becomes guest. Namesakes from different addresses, or who are registered at the same time, are different players,
//     shown as name and name-k3f (docs/adr/0020); a name that somebody has registered is shown with a suffix, too. If
//     it is registered while a client plays under it, its connection ends, and it reconnects under a name with a
//     suffix.
//   - Who leads a chunk's region has confirmed that at most 2 s ago. While a region has no leader, or is not founded,
//     the query waits, up to 10 minutes; then the connection ends. A player's place is where the one of that name at
//     the client's address is or stood last, or else another guest of that name, or where a new one begins. A y below 1
//     or above 32 becomes 32. An ip is always an address.
//
// Locks, in the order in which they may be taken: Server.mu, then registration.mu, then those of mirror, then party.mu.
// parties.mu is taken before party.mu, and never under another one of these.
//
// Only package gameserver imports legacy. What the protocol needs of a gateway is in Options.
package legacy

import (
	"bufio"
	"context"
	"math"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// Server serves original clients. Create it with NewServer. Any goroutine may call it.
type Server struct {
	*Options
	leaders *leaders
	hosts   *hosts
	parties *parties
	seqs    sequence
	count   prometheus.Gauge // of connections
	came    wake.Signal      // a client has connected

	mu struct {
		sync.Mutex
		conns map[*conn]struct{}
	}
}

// NewServer returns a server. Its clients get the time of day while Run runs.
func NewServer(o Options) *Server {
	s := &Server{Options: &o, leaders: newLeaders(&o), hosts: newHosts(), parties: newParties(&o), came: wake.NewSignal()}
	s.count = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "voxeld_original_connections", Help: "Open chunk connections of VoxelPopuli's clients.",
	})
	o.Registerer.MustRegister(s.count)
	s.mu.conns = make(map[*conn]struct{})
	return s
}

// Generate ensures that the chunk's region exists (§3.1.3), or returns why not: clients found land only where they
// begin, and in view of their players.
func (s *Server) Generate(ctx context.Context, remote net.Addr, pos grid.ChunkPos) error {
	if err := s.Admit(remote, ""); err != nil {
		return err
	}
	_, err := s.leaders.generate(ctx, remote, pos)
	return err
}

// Resident returns why a client may not connect to a chunk here; nil if it may.
func (s *Server) Resident(ctx context.Context, remote net.Addr, h legacymsg.Handshake) error {
	return s.leaders.resident(ctx, remote, player.NameFrom(h.Player), h.Chunk)
}

// Serve serves a connection to a chunk after the handshake was answered with ok. Most of a client's connections stay
// silent for as long as it runs, so only TCP's keepalive ends a silent one.
func (s *Server) Serve(ctx context.Context, c net.Conn, in *bufio.Reader, h legacymsg.Handshake) error {
	endByReset(c)
	lc := &conn{Options: s.Options, seqs: &s.seqs, shown: make(map[player.ID]struct{})}
	lc.at, lc.client = h.Chunk, s.Client(c.RemoteAddr())
	lc.remote, lc.name = c.RemoteAddr(), player.NameFrom(h.Player)
	lc.link = s.Open(c, in, lc)
	defer lc.link.Wait()
	defer lc.end()
	stop := context.AfterFunc(ctx, lc.end)
	defer stop()

	lc.party = s.parties.join(partyOf(h.Player, c.RemoteAddr()))
	defer s.parties.quit(lc.party)
	lc.settle = func(ctx context.Context) { s.leaders.settle(ctx, lc.client, lc.at) }
	ctx, stopSettling := context.WithCancel(ctx)
	defer lc.settling.Wait()
	defer stopSettling()
	lc.sub = s.Mirror.Watch(lc.at, lc)
	s.add(lc)
	defer s.remove(lc)
	if lc.sub.LedElsewhere(lc.at) {
		return region.ErrNotHere // since the handshake
	}
	return lc.read(ctx)
}

func (s *Server) add(lc *conn) {
	s.mu.Lock()
	s.mu.conns[lc] = struct{}{}
	s.mu.Unlock()
	s.came.Set()
	s.Connected()
	s.count.Inc()
}

func (s *Server) remove(lc *conn) {
	lc.deregister()
	lc.sub.Unwatch(lc.at, lc)
	s.count.Dec()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.conns, lc)
}

// Reset ends the connections to the chunks of a region that is led elsewhere.
func (s *Server) Reset(cell grid.Cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lc := range s.mu.conns {
		if cell.Contains(lc.at) {
			lc.end()
		}
	}
}

// EndRefused ends the connections of clients that may not play any more.
func (s *Server) EndRefused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lc := range s.mu.conns {
		shown, _ := lc.presence()
		if s.Admit(lc.remote, lc.name) != nil || shown.Name != "" && (s.Admit(lc.remote, shown.Name) != nil || s.Registered(shown.Name)) {
			lc.end()
		}
	}
}

// SetEdits changes how many blocks a second the players here may change to what the policy says now.
func (s *Server) SetEdits() {
	s.parties.mu.Lock()
	defer s.parties.mu.Unlock()
	for _, who := range s.parties.mu.guests {
		who.edits.SetLimit(s.Edits())
	}
}

// AppendPlayers appends what is saved of all players here.
func (s *Server) AppendPlayers(dst []players.Presence) []players.Presence {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lc := range s.mu.conns {
		if p, registered := lc.presence(); registered {
			dst = append(dst, p)
		}
	}
	return dst
}

// CountPlayers adds the players here to the numbers of players in the regions. It reports whether any client is
// connected.
func (s *Server) CountPlayers(in map[*mirror.Subscription]int) (connected bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lc := range s.mu.conns {
		if _, registered := lc.presence(); registered {
			in[lc.sub]++
		}
	}
	return len(s.mu.conns) > 0
}

// Run sends the time of day to clients on every tick, until ctx ends.
func (s *Server) Run(ctx context.Context) {
	ticker := time.NewTicker(region.TickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.came:
			ticker.Reset(region.TickEvery)
		}
		s.sendTime(ticker)
	}
}

// sendTime sends the time of day to the players here. It stops the ticker until a client connects if none is connected.
func (s *Server) sendTime(ticker *time.Ticker) {
	minutes := s.World.TimeOfDay(s.Wall().UnixMilli())
	packet := appendPacket(nil, legacymsg.TimeOfDay{Minutes: math.Round(minutes*60) / 60})
	s.mu.Lock()
	defer s.mu.Unlock()
	for lc := range s.mu.conns {
		if _, registered := lc.presence(); registered {
			lc.link.Put(packet)
		}
	}
	if len(s.mu.conns) == 0 {
		ticker.Stop()
	}
}
