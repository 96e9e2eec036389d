package gameserver

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/world"
	"github.com/voxelpopuli/voxeld/world/crowd"
)

const (
	self   = "peerThisNode"
	height = grid.ChunkSize // of the tests' world: one section
)

var ground = sync.OnceValue(func() *terrain.Generator {
	g, err := terrain.New(terrain.Params{Seed: 7, Sections: 1, Version: terrain.Version})
	if err != nil {
		panic(err)
	}
	return g
})

// people is the policy of a world that has only one gateway.
type people struct {
	changed  func()
	announce func(string)
	world    string // its id

	mu    sync.Mutex
	state *policy.State
}

const peoplesWorld = "the world of tests"

func newPeople() *people { return &people{state: policy.New(), world: peoplesWorld} }

func (p *people) Notify(changed func(), announce func(string)) {
	p.changed, p.announce = changed, announce
}

func (p *people) Read(read func(*policy.State)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	read(p.state)
}

func (p *people) Enter(_ context.Context, act nodemsg.Act, charge func() error) (notice.Notice, error) {
	everybody := func(uint64, ed25519.PublicKey) (bool, error) { return true, nil }
	if err := policy.Verify(p.world, act, everybody); err != nil {
		return notice.Notice{}, err
	}
	p.mu.Lock()
	act.At = time.Now().UnixMilli()
	err := p.state.Try(act)
	if err == nil && charge != nil {
		err = charge()
	}
	if err != nil {
		p.mu.Unlock()
		return notice.Notice{}, err
	}
	effect, err := p.state.Apply(act)
	p.mu.Unlock()
	p.changed()
	if effect.Say != "" {
		p.announce(effect.Say)
	}
	return effect.Text, err
}

// operate carries out a command of an operator.
func (p *people) operate(t *testing.T, text string) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	act := nodemsg.Act{Key: key.Public().(ed25519.PublicKey), Seq: uint64(time.Now().UnixMicro()) + p.state.Acts(), Operator: true, Text: text}
	act.Signature = ed25519.Sign(key, policy.SignedText(p.world, act))
	if _, err := p.Enter(t.Context(), act, nil); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// lands is every region of a world, in memory: Land and Crowd driven as by a region's loop, without its ticks. Each
// message of a gateway is answered at once, and the test breaks links.
type lands struct {
	leader string

	mu struct {
		sync.Mutex
		land    map[grid.Cell]*testLand   // by founding cell
		regions map[grid.Cell]*testRegion // in none of whose cells is another's
		closed  []*testRegion             // regions that were divided or merged
		stale   int                       // how often Follow still finds a closed region
		down    bool                      // no region can be followed
		odd     []string                  // invalid messages of gateways
		wild    bool                      // land exists only once it was located or followed
		founded map[grid.Cell]int         // how often that was
		asked   int                       // how often it was not found
		drains  int
		moved   int                           // messages with moves
		lag     func(*testLink) time.Duration // transit time of a message, which overtakes no other of its link; nil: none
		mute    bool                          // regions are older ones, which do not pass clocks on
	}
}

// slow sets the transit time of messages.
func (l *lands) slow(lag func(*testLink) time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.lag = lag
}

// slowBy delays each message by a random time.
func (l *lands) slowBy(seed uint64, most time.Duration) {
	rng := rand.New(rand.NewPCG(seed, 3))
	l.slow(func(*testLink) time.Duration { return time.Duration(rng.Int64N(int64(most))) })
}

// mute makes regions older ones, which do not pass clocks on.
func (l *lands) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.mute = true
}

// testLand is the land of a founding cell, whichever regions it is divided into.
type testLand struct {
	*world.Land
	index   uint64       // of the log
	applied map[edit]int // how often each edit changed the land
}

// testRegion is one region.
type testRegion struct {
	cell   grid.Cell
	land   *testLand
	crowd  *crowd.Crowd
	tick   uint64
	links  map[*testLink]bool
	number uint64
	deaf   bool // accepts messages and answers nothing: edits are committed without results
}

type edit struct {
	player player.ID
	seq    uint64
}

func newLands() *lands {
	l := &lands{leader: self}
	l.mu.land, l.mu.founded = make(map[grid.Cell]*testLand), make(map[grid.Cell]int)
	l.mu.regions = make(map[grid.Cell]*testRegion)
	return l
}

func (l *lands) at(pos grid.ChunkPos) *testRegion {
	for length := grid.FoundingLabel; length <= grid.MaxLabel; length++ {
		if r := l.mu.regions[grid.CellAt(pos, length)]; r != nil {
			return r
		}
	}
	cell := grid.CellAt(pos, grid.FoundingLabel)
	land := world.NewLand(2, cell, height)
	land.Proofs = world.Proofs{ // players are believed
		Signed: func(edits []nodemsg.Intent) []bool { return slices.Repeat([]bool{true}, len(edits)) },
		Own:    func(player.ID) bool { return true },
	}
	l.mu.land[cell] = &testLand{Land: land, applied: make(map[edit]int)}
	return l.newRegion(cell, l.mu.land[cell])
}

func (l *lands) newRegion(cell grid.Cell, land *testLand) *testRegion {
	r := &testRegion{cell: cell, land: land, crowd: crowd.New(cell), links: make(map[*testLink]bool)}
	l.mu.regions[cell] = r
	return r
}

// divide divides the region of a chunk, unless that is all there is of it.
func (l *lands) divide(pos grid.ChunkPos) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.at(pos)
	if r.cell.Label.Len() == grid.MaxLabel {
		return
	}
	l.remove(r)
	lower, upper := r.cell.Children()
	l.newRegion(lower, r.land)
	l.newRegion(upper, r.land)
}

// merge merges the region of a chunk with its sibling and whatever that was divided into, unless it was founded so.
func (l *lands) merge(pos grid.ChunkPos) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.at(pos)
	if r.cell.Label.Len() == grid.FoundingLabel {
		return
	}
	parent := r.cell.Parent()
	for cell, inner := range l.mu.regions {
		if parent.Covers(cell) {
			l.remove(inner)
		}
	}
	l.newRegion(parent, r.land)
}

func (l *lands) remove(r *testRegion) {
	delete(l.mu.regions, r.cell)
	l.mu.closed = append(l.mu.closed, r)
	l.close(r)
}

// close closes a region's links. What these have sent still arrives; what they are sent from now on is lost.
func (l *lands) close(r *testRegion) {
	for c := range r.links {
		c.put(nodemsg.FromRegion{Tick: r.tick, Closed: "the region was divided or merged"})
		c.dismissed = true
	}
	clear(r.links)
}

func (l *lands) info(cell grid.Cell) nodemsg.Region {
	return nodemsg.Region{
		ID: 2, Cell: cell, Leader: l.leader,
		Members: []nodemsg.Member{{Peer: l.leader, Game: "192.0.2.6:4002"}}, // its address when the catalog heard of it
	}
}

func (l *lands) Locate(_ context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.founded[grid.CellAt(pos, grid.FoundingLabel)]++
	return l.info(l.at(pos).cell), nil
}

// giveUp makes the land of a chunk one that nobody has founded.
func (l *lands) giveUp(pos grid.ChunkPos) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.founded, grid.CellAt(pos, grid.FoundingLabel))
}

// Find returns a region only if somebody has located or followed its land, or if all exists (settled).
func (l *lands) Find(_ context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cell := grid.CellAt(pos, grid.FoundingLabel); l.mu.wild && l.mu.founded[cell] == 0 {
		l.mu.asked++
		return nodemsg.Region{}, region.ErrNotFounded
	}
	return l.info(l.at(pos).cell), nil
}

func (l *lands) Describe(_ context.Context, peer string) (nodemsg.Member, error) {
	return nodemsg.Member{Peer: peer, Game: "192.0.2.7:4002"}, nil
}

func (l *lands) Follow(_ context.Context, pos grid.ChunkPos) (region.Link, nodemsg.Region, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.founded[grid.CellAt(pos, grid.FoundingLabel)]++
	r := l.at(pos)
	if l.mu.down {
		return nil, l.info(r.cell), errors.New("nobody leads the region")
	}
	for _, old := range slices.Backward(l.mu.closed) {
		if l.mu.stale > 0 && old.cell.Contains(pos) {
			l.mu.stale--
			c := l.newLink(old)
			l.close(old)
			return c, l.info(old.cell), nil
		}
	}
	return l.newLink(r), l.info(r.cell), nil
}

func (l *lands) newLink(r *testRegion) *testLink {
	r.number++
	c := &testLink{lands: l, region: r, number: r.number, watch: make(map[grid.ChunkPos]bool), wake: wake.NewSignal()}
	r.links[c] = true
	return c
}

// stale makes the next searches for regions find one that was divided or merged, if there is one.
func (l *lands) stale(times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.stale = times
}

// Drain hands over everything and counts its calls.
func (l *lands) Drain(context.Context) (handed, kept int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.drains++
	return len(l.mu.regions), 0
}

// noNodes is a world without other nodes.
type noNodes struct{}

func (noNodes) Connected() []string { return nil }
func (noNodes) Ask(context.Context, string, string, []byte) ([]byte, error) {
	return nil, errors.New("there is nobody")
}

// down makes regions impossible to follow, or possible again; links break.
func (l *lands) down(down bool) {
	l.mu.Lock()
	l.mu.down = down
	l.mu.Unlock()
	if down {
		l.cut()
	}
}

// cut breaks all links.
func (l *lands) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.mu.regions {
		for c := range r.links {
			c.end()
		}
	}
}

// deaf makes regions accept messages without any answer, until their links are cut.
func (l *lands) deaf(deaf bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.mu.regions {
		r.deaf = deaf
	}
}

// truth returns a chunk as the region has it.
func (l *lands) truth(pos grid.ChunkPos) *chunk.Chunk {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := ground().Chunk(pos)
	for _, e := range l.at(pos).land.Chunk(pos).Edits {
		c.Set(e.At, e.Block)
	}
	return c
}

// followed returns how many links a region has.
func (l *lands) followed(pos grid.ChunkPos) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.at(pos).links)
}

// movesReceived returns how many messages with moves regions have received.
func (l *lands) movesReceived() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.moved
}

// bodies returns the bodies in a chunk, as its region has them.
func (l *lands) bodies(pos grid.ChunkPos) []nodemsg.Body {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at(pos).crowd.Inside(pos)
}

// commit applies a block change of another gateway's player, and sends it.
func (l *lands) commit(e nodemsg.Intent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.at(e.Pos.Chunk())
	r.apply([]nodemsg.Intent{e}, nil)
	r.endTick()
}

// sendFrame sends a message made by the test to all links of a region.
func (l *lands) sendFrame(pos grid.ChunkPos, frame nodemsg.FromRegion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.at(pos).links {
		c.put(frame)
	}
}

// edits returns how many edits of a guest have changed the land at the origin.
func (l *lands) edits(name string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := range l.at(grid.ChunkPos{}).land.applied {
		if e.player == guestID(name) {
			n++
		}
	}
	return n
}

// apply commits edits one by one.
func (r *testRegion) apply(edits []nodemsg.Intent, from *testLink) {
	for _, e := range edits {
		batch := world.Batch{Time: time.Now().UnixMilli(), Edits: []nodemsg.Intent{e}}
		if at := e.Pos.Chunk(); !r.land.Pinned(at) {
			batch.Pins = append(batch.Pins, world.Pin{Chunk: at, Base: ground().Chunk(at).Hash()})
		}
		r.land.index++
		out, err := r.land.Apply(r.land.index, batch.Encode())
		if err != nil {
			panic(err)
		}
		for _, p := range out.Pins {
			r.crowd.Pinned(p)
		}
		for _, c := range out.Changes {
			r.crowd.Changed(c)
			r.land.applied[edit{e.Player, e.Seq}]++
		}
		if from != nil {
			from.results = append(from.results, out.Results...)
		}
	}
}

// endTick ends a tick.
func (r *testRegion) endTick() {
	r.tick++
	deltas := r.crowd.Flush()
	for c := range r.links {
		frame := nodemsg.FromRegion{Tick: r.tick, Results: c.results}
		c.results = nil
		shown := c.fresh
		c.fresh = nil
		for _, pos := range shown {
			state := r.land.Chunk(pos)
			state.Bodies = r.crowd.Inside(pos)
			frame.Chunks = append(frame.Chunks, nodemsg.ChunkDelta{Chunk: pos, State: &state})
		}
		for pos, n := range deltas {
			if c.watch[pos] && !slices.Contains(shown, pos) {
				frame.Chunks = append(frame.Chunks, *n)
			}
		}
		if r.deaf {
			continue
		}
		frame.Confirmed, c.confirm = c.confirm, 0
		if len(frame.Chunks)+len(frame.Results) > 0 || frame.Confirmed != 0 {
			c.put(frame)
		}
	}
}

// testLink is a link. The lock of lands guards it.
type testLink struct {
	lands   *lands
	region  *testRegion
	number  uint64
	watch   map[grid.ChunkPos]bool
	fresh   []grid.ChunkPos
	results []nodemsg.EditResult
	confirm uint64 // the newest question that is not answered; 0: none
	frames  []nodemsg.FromRegion
	due     []time.Time // when each of frames arrives
	broken  bool
	wake    wake.Signal

	dismissed bool // by the region, which ignores what is sent
}

var errCut = errors.New("link cut")

func (c *testLink) put(f nodemsg.FromRegion) {
	due := time.Now()
	if c.lands.mu.lag != nil {
		due = due.Add(c.lands.mu.lag(c))
	}
	if n := len(c.due); n > 0 && c.due[n-1].After(due) {
		due = c.due[n-1]
	}
	c.frames, c.due = append(c.frames, f), append(c.due, due)
	c.wake.Set()
}

func (c *testLink) end() {
	if c.broken {
		return
	}
	c.broken = true
	delete(c.region.links, c)
	c.region.crowd.LeaveAll(c.number)
	c.wake.Set()
}

func (c *testLink) Send(msg nodemsg.ToRegion) error {
	if err := msg.Valid(); err != nil {
		return err
	}
	c.lands.mu.Lock()
	defer c.lands.mu.Unlock()
	switch {
	case c.broken:
		return errCut
	case c.dismissed:
		return nil
	}
	r := c.region
	if msg.Empty() {
		c.lands.mu.odd = append(c.lands.mu.odd, "a message says nothing")
	}
	if twice(msg.Watch) || twice(msg.Unwatch) || twice(append(slices.Clone(msg.Watch), msg.Unwatch...)) ||
		twice(msg.Enter) || twice(msg.Moves) || twice(msg.Leave) || twice(msg.Edits) {
		c.lands.mu.odd = append(c.lands.mu.odd, fmt.Sprintf("a message says something twice: %+v", msg))
	}
	if slices.ContainsFunc(slices.Concat(msg.Watch, msg.Unwatch), func(pos grid.ChunkPos) bool { return !r.cell.Contains(pos) }) ||
		slices.ContainsFunc(msg.Enter, func(b nodemsg.Body) bool { return !r.cell.Contains(b.Pose.Chunk()) }) ||
		slices.ContainsFunc(msg.Edits, func(e nodemsg.Intent) bool { return !r.cell.Contains(e.Pos.Chunk()) }) {
		c.lands.mu.odd = append(c.lands.mu.odd, fmt.Sprintf("a message to %v is for another region: %+v", r.cell, msg))
	}
	c.confirm = max(c.confirm, msg.Confirm)
	for _, pos := range msg.Unwatch {
		delete(c.watch, pos)
		c.fresh = slices.DeleteFunc(c.fresh, func(p grid.ChunkPos) bool { return p == pos })
	}
	for _, pos := range msg.Watch {
		c.watch[pos] = true
		if !slices.Contains(c.fresh, pos) {
			c.fresh = append(c.fresh, pos)
		}
	}
	for _, b := range msg.Enter {
		r.crowd.Enter(crowd.Owner{Link: c.number}, b)
	}
	if len(msg.Moves) > 0 {
		c.lands.mu.moved++
	}
	for _, m := range msg.Moves {
		r.crowd.Move(c.number, m)
	}
	for _, id := range msg.Leave {
		r.crowd.Leave(c.number, id)
	}
	r.apply(msg.Edits, c)
	for _, u := range msg.Chat {
		if c.lands.mu.mute {
			u.Wall, u.Stamp = 0, nil
		}
		r.crowd.Chat("", u)
	}
	r.endTick()
	return nil
}

func twice[E comparable](list []E) bool {
	seen := make(map[E]bool)
	for _, e := range list {
		if seen[e] {
			return true
		}
		seen[e] = true
	}
	return false
}

func (c *testLink) Receive(ctx context.Context) (nodemsg.FromRegion, error) {
	for {
		c.lands.mu.Lock()
		if c.broken {
			c.lands.mu.Unlock()
			return nodemsg.FromRegion{}, errCut
		}
		var arrives <-chan time.Time
		if len(c.frames) > 0 {
			f, wait := c.frames[0], time.Until(c.due[0])
			if wait <= 0 {
				c.frames, c.due = c.frames[1:], c.due[1:]
				c.lands.mu.Unlock()
				return f, nil
			}
			arrives = time.After(wait)
		}
		c.lands.mu.Unlock()
		select {
		case <-ctx.Done():
			return nodemsg.FromRegion{}, ctx.Err()
		case <-c.wake:
		case <-arrives:
		}
	}
}

func (c *testLink) Close() error {
	c.lands.mu.Lock()
	defer c.lands.mu.Unlock()
	c.end()
	return nil
}

// saved returns a player's record on a node's disk.
func saved(disk *playerstest.Memory, id player.ID) (nodemsg.PlayerRecord, bool) {
	row, err := disk.Get(players.Table, id[:])
	if err != nil || row == nil {
		return nodemsg.PlayerRecord{}, false
	}
	r, err := nodemsg.DecodePlayerRecord(row)
	return r, err == nil
}

// pipeListener is a listener whose connections are pipes.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
	fail   chan error
}

func newDoorway() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{}), fail: make(chan error, 1)}
}

func (d *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case err := <-d.fail:
		return nil, err
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *pipeListener) Close() error   { d.close.Do(func() { close(d.closed) }); return nil }
func (d *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4002} }

// from is a pipe with a remote address.
type from struct {
	net.Conn
	address net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.address }

// applied returns how often a player's edit changed the land of any region.
func (l *lands) applied(id string, seq uint64) (times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, land := range l.mu.land {
		for e, n := range land.applied {
			if e.player.String() == id && e.seq == seq {
				times += n
			}
		}
	}
	return times
}

// watching returns the chunks watched at regions.
func (l *lands) watching() (all []grid.ChunkPos) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.mu.regions {
		for c := range r.links {
			for pos := range c.watch {
				all = append(all, pos)
			}
		}
	}
	return all
}
