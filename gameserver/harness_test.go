package gameserver

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
	"github.com/voxelpopuli/voxeld/world"
)

// harness is a running gateway, over regions and stores that the test controls. It lives in a synctest bubble: time
// passes only when all goroutines wait.
type harness struct {
	t        *testing.T
	g        *Gateway
	lands    *lands
	network  *playerstest.Memory
	disk     *playerstest.Memory
	game     *pipeListener
	http     *pipeListener
	encoding string // of clients that join
	cancel   context.CancelFunc
	ended    chan error
}

// usualEncoding is that of clients that join a harness. All tests run in both.
var usualEncoding = sessionmsg.EncodingCBOR

func TestMain(m *testing.M) {
	code := m.Run()
	if measuring := flag.Lookup("test.bench").Value.String() != "" || flag.Lookup("test.fuzz").Value.String() != ""; code == 0 && !measuring {
		usualEncoding = sessionmsg.EncodingJSON
		code = m.Run()
	}
	os.Exit(code)
}

// halfUnit is the maximum error of a place in a tick frame.
const halfUnit = 1. / sessionmsg.PlaceUnit / 2

// spawn is a corner at which four regions meet, well above the ground.
var spawn = grid.Pos{X: 0, Y: 25, Z: 0}

func options(l *lands, network, disk *playerstest.Memory) Options {
	return Options{
		World: world.Genesis{
			Name: "test", Seed: 7, Sections: 1, Terrain: terrain.Version, Placement: grid.PlacementWalkad, Spawn: spawn,
		},
		Terrain: ground(), Peer: self, Version: "test",
		HTTP: "http://192.0.2.7:8080", Origins: []string{"http://192.0.2.7:8080"}, Game: "192.0.2.7:4002",
		Regions: l, Nodes: noNodes{}, Players: network, Storage: disk,
		Client:    fstest.MapFS{"index.html": {Data: []byte("<p>client</p>")}, "map.html": {Data: []byte("<p>map</p>")}, "assets/a-1.js": {Data: []byte("1")}},
		Admission: admission.Settings{MaxView: 2, Guests: true, PerAddress: 1000},
		People:    newPeople(),
		Ready:     func() error { return nil },
		Logger:    slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	}
}

func newHarness(t *testing.T, change ...func(*Options)) *harness {
	r := prepareHarness(t, change...)
	r.start(Listeners{Game: r.game, HTTP: r.http})
	return r
}

func prepareHarness(t *testing.T, change ...func(*Options)) *harness {
	r := &harness{
		t: t, lands: newLands(), network: playerstest.NewMemory(), disk: playerstest.NewMemory(),
		game: newDoorway(), http: newDoorway(), ended: make(chan error, 1), encoding: usualEncoding,
	}
	o := options(r.lands, r.network, r.disk)
	for _, c := range change {
		c(&o)
	}
	r.g = New(o)
	return r
}

func (r *harness) start(l Listeners) {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.ended <- r.g.Run(ctx, l) }()
	r.t.Cleanup(r.stop)
}

// stop ends the gateway and waits for it; a goroutine left behind fails the bubble.
func (r *harness) stop() {
	r.cancel()
	if err, first := <-r.ended; first {
		if err != nil {
			r.t.Errorf("gateway ended with: %v", err)
		}
		close(r.ended)
	}
	r.lands.mu.Lock()
	defer r.lands.mu.Unlock()
	for _, odd := range r.lands.mu.odd {
		r.t.Error(odd)
	}
}

// pass lets time pass until everything that is due has happened.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (r *harness) dial() net.Conn {
	return r.dialFrom(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1})
}

func (r *harness) dialFrom(address net.Addr) net.Conn {
	here, there := net.Pipe()
	r.game.conns <- from{there, address}
	r.t.Cleanup(func() { here.Close() })
	return here
}

// client is a player with a session. It keeps what a real client would, and fails the test on what a server must never
// send.
type client struct {
	t    *testing.T
	conn net.Conn
	seq  uint64
	from grid.Pos // the world's spawn, from which goTo counts
	cbor bool
	view *avatarView // in CBOR

	mu struct {
		sync.Mutex
		welcome     sessionmsg.Welcome
		chunks      map[grid.ChunkPos]*chunk.Chunk
		signs       map[grid.Pos]string
		avatars     map[string]sessionmsg.Avatar
		seenIn      map[string]grid.ChunkPos
		acks        map[uint64][]sessionmsg.Ack
		said        []string
		denied      []sessionmsg.Denied
		notices     []string
		claims      []sessionmsg.Claim // of the last message
		histories   []sessionmsg.History
		corrections int
		reason      string          // of the last correction
		order       []grid.ChunkPos // of the whole chunks
		enters      int             // avatars that have entered, or entered again, in JSON
		failure     sessionmsg.Failure
		reconnect   *sessionmsg.Reconnect // the last one
		acksBefore  int                   // acknowledgements that had arrived before it
		wholes      int
		ended       bool
	}
}

func newClient(t *testing.T, conn net.Conn) *client {
	c := &client{t: t, conn: conn}
	c.mu.chunks = make(map[grid.ChunkPos]*chunk.Chunk)
	c.mu.avatars = make(map[string]sessionmsg.Avatar)
	c.mu.seenIn = make(map[string]grid.ChunkPos)
	c.mu.acks = make(map[uint64][]sessionmsg.Ack)
	c.mu.signs = make(map[grid.Pos]string)
	return c
}

// join opens a session as a guest, and waits until all chunks have arrived.
func (r *harness) join(name string, view int) *client {
	r.t.Helper()
	c := newClient(r.t, r.dial())
	c.from = r.g.World.Spawn
	c.open(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: name, View: view, Encoding: r.encoding})
	pass(100 * time.Millisecond)
	c.look(func() { c.seq = c.mu.welcome.NextSeq })
	if c.mu.welcome.Player == "" {
		r.t.Fatalf("%s is not welcome: %+v", name, c.mu.failure)
	}
	return c
}

// open joins, in either encoding, and reads from then on.
func (c *client) open(join sessionmsg.Join) {
	if join.Encoding == "" {
		join.Encoding = sessionmsg.EncodingJSON
	}
	data, err := sessionmsg.EncodeClient(join)
	if err != nil {
		c.t.Error(err)
	}
	if join.Encoding == sessionmsg.EncodingCBOR {
		c.cbor, c.view = true, newAvatarView(c.t)
		c.view.client = c
		go c.listenCBOR()
	} else {
		go c.listen()
	}
	c.sendRaw(string(data) + "\n")
}

func (c *client) listenCBOR() {
	in := bufio.NewReaderSize(c.conn, 1<<16)
	var buf []byte
	for {
		var err error
		if buf, err = sessionmsg.ReadMessage(in, buf, wire.MaxServerLine); err != nil {
			c.look(func() { c.mu.ended = true })
			return
		}
		if buf[0] == sessionmsg.TickFrame {
			c.look(func() {
				if err := c.view.Send(buf); err != nil {
					c.t.Error(err)
				}
			})
			continue
		}
		m, err := sessionmsg.DecodeServerCBOR(buf)
		if err != nil {
			c.t.Errorf("message from server: %v in %.100x", err, buf)
			return
		}
		c.look(func() { c.handle(m) })
	}
}

func (c *client) send(m sessionmsg.FromClient) {
	if c.cbor {
		data, err := sessionmsg.EncodeClientCBOR(m)
		if err != nil {
			c.t.Error(err)
		}
		c.sendRaw(string(sessionmsg.AppendMessage(nil, data)))
		return
	}
	data, err := sessionmsg.EncodeClient(m)
	if err != nil {
		c.t.Error(err)
	}
	c.sendRaw(string(data) + "\n")
}

// sendRaw sends bytes. If the server has closed the connection they are lost.
func (c *client) sendRaw(text string) { io.WriteString(c.conn, text) } //nolint:errcheck // see above

func (c *client) listen() {
	in := bufio.NewReaderSize(c.conn, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			c.look(func() { c.mu.ended = true })
			return
		}
		m, err := sessionmsg.DecodeServer(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			c.t.Errorf("message from server: %v in %.100q", err, line)
			return
		}
		c.look(func() { c.handle(m) })
	}
}

// look calls f with the client's lock held.
func (c *client) look(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *client) handle(m sessionmsg.FromServer) {
	switch m := m.(type) {
	case sessionmsg.Welcome:
		c.mu.welcome = m
	case sessionmsg.ChunkData:
		plain, err := wire.UnpackChunk(m.Data)
		if err != nil {
			c.t.Error(err)
		}
		if c.mu.chunks[m.Chunk], err = chunk.Decode(plain); err != nil {
			c.t.Error(err)
		}
		maps.DeleteFunc(c.mu.signs, func(at grid.Pos, _ string) bool { return at.Chunk() == m.Chunk })
		c.mu.wholes++
		c.mu.order = append(c.mu.order, m.Chunk)
	case sessionmsg.Signs:
		for _, s := range m.Signs {
			c.mu.signs[grid.Pos{X: s.X, Y: s.Y, Z: s.Z}] = s.Text
		}
	case sessionmsg.ChunkGone:
		delete(c.mu.chunks, m.Chunk)
		for id, at := range c.mu.seenIn {
			if at == m.Chunk {
				delete(c.mu.seenIn, id)
				delete(c.mu.avatars, id)
			}
		}
	case sessionmsg.Frame:
		for _, raw := range m.Chunks {
			p, err := sessionmsg.DecodePiece(raw)
			if err != nil {
				c.t.Error(err)
			}
			c.apply(p)
		}
	case sessionmsg.Ack:
		c.mu.acks[m.Seq] = append(c.mu.acks[m.Seq], m)
	case sessionmsg.Notice:
		c.mu.notices = append(c.mu.notices, m.Text)
	case sessionmsg.Line:
		switch m.Channel {
		case sessionmsg.ChannelWorld:
			c.mu.said = append(c.mu.said, m.Name+": "+m.Text)
		case sessionmsg.ChannelFrom:
			c.mu.notices = append(c.mu.notices, "From "+m.Name+": "+m.Text)
		case sessionmsg.ChannelTo:
			c.mu.notices = append(c.mu.notices, "To "+m.Name+": "+m.Text)
		}
	case sessionmsg.Claims:
		c.mu.claims = m.Claims
	case sessionmsg.History:
		c.mu.histories = append(c.mu.histories, m)
	case sessionmsg.Correction:
		c.mu.corrections++
		c.mu.reason = m.Reason
	case sessionmsg.Reconnect:
		c.mu.reconnect, c.mu.acksBefore = &m, len(c.mu.acks)
	case sessionmsg.Failure:
		c.mu.failure = m
	case sessionmsg.Struck:
		c.mu.said = append(c.mu.said, m.Name+" hits "+m.ToName)
	case sessionmsg.Given:
		c.mu.said = append(c.mu.said, fmt.Sprint(m.Name, " gives ", m.ToName, " ", m.Count, " of ", m.Block))
	case sessionmsg.Denied:
		c.mu.denied = append(c.mu.denied, m)
	}
}

func (c *client) apply(p sessionmsg.Piece) {
	land := c.mu.chunks[p.Chunk]
	if land == nil {
		c.t.Errorf("news of chunk %v, which is not in view", p.Chunk)
		return
	}
	c.mu.enters += len(p.Enter)
	for _, a := range p.Enter {
		c.mu.avatars[a.Player], c.mu.seenIn[a.Player] = a, p.Chunk
	}
	for _, id := range p.Leave {
		if c.mu.seenIn[id] == p.Chunk {
			delete(c.mu.avatars, id)
			delete(c.mu.seenIn, id)
		}
	}
	for _, m := range p.Moves {
		if a, known := c.mu.avatars[m.Player]; known {
			a.Pose = m.Pose
			c.mu.avatars[m.Player] = a
		}
	}
	for _, b := range p.Blocks {
		at := grid.Pos{X: b.X, Y: b.Y, Z: b.Z}
		land.Set(chunk.At(at), chunk.Block(b.Block))
		delete(c.mu.signs, at)
	}
	for _, s := range p.Chat {
		c.mu.said = append(c.mu.said, s.Name+": "+s.Text)
	}
}

// put sends an edit and returns its sequence.
func (c *client) put(pos grid.Pos, b chunk.Block) uint64 {
	c.seq++
	c.send(sessionmsg.Edit{Seq: c.seq, X: pos.X, Y: pos.Y, Z: pos.Z, Block: uint16(b)})
	return c.seq
}

// answer returns the only result of an edit.
func (c *client) answer(seq uint64) sessionmsg.Ack {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.acks[seq]) != 1 {
		c.t.Errorf("edit %d has %d answers: %+v", seq, len(c.mu.acks[seq]), c.mu.acks[seq])
		return sessionmsg.Ack{}
	}
	return c.mu.acks[seq][0]
}

// goTo sends a move to a place that is that far east, up and south of the spawn's corner.
func (c *client) goTo(x, y, z float64) {
	c.send(sessionmsg.Move{Pose: motion.Pose{X: float64(c.from.X) + x, Y: y, Z: float64(c.from.Z) + z}})
}

// walkAround moves the player three chunks away and back, at full speed.
func (c *client) walkAround() {
	for _, x := range []float64{19.5, 38.5, 57.5, 76.5, 95.5, 76.5, 57.5, 38.5, 19.5, .5} {
		c.goTo(x, 25, .5)
		pass(time.Second)
	}
}

func (c *client) block(pos grid.Pos) (b chunk.Block) {
	c.look(func() {
		if land := c.mu.chunks[pos.Chunk()]; land != nil {
			b = land.Get(chunk.At(pos))
		}
	})
	return b
}

// sees checks that the client's picture equals the regions' land, in all of the view and nowhere else.
func (c *client) sees(l *lands, view int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	// A chunk beyond the view is kept, so that a walk to and fro costs nothing.
	if least, most := (2*view+1)*(2*view+1), (2*view+3)*(2*view+3); len(c.mu.chunks) < least || len(c.mu.chunks) > most {
		c.t.Errorf("%d chunks in view, want %d to %d", len(c.mu.chunks), least, most)
	}
	for pos, got := range c.mu.chunks {
		if want := l.truth(pos); got.Hash() != want.Hash() {
			c.t.Errorf("chunk %v differs from the region's: %s", pos, differences(got, want))
		}
	}
}

func differences(got, want *chunk.Chunk) string {
	var text strings.Builder
	for i := range chunk.Index(height * 1024) {
		if got.Get(i) != want.Get(i) {
			fmt.Fprintf(&text, "[%d: %v, want %v]", i, got.Get(i), want.Get(i))
		}
	}
	return text.String()
}

func guestID(name string) player.ID { return player.GuestID(name) }
