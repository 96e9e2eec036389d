package gameserver

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/checks"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/offers"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file holds the parts of a session's state that know nothing of the session.

// Limits on a session's messages: per second, and in a burst. A client that sends a move in each of 60 frames a second
// stays below.
const (
	movesPerSecond, movesAtOnce = 100, 200
	// The rate is admission.Settings's; the burst is below what a region remembers of a player (world, recentWindow).
	editsAtOnce                       = 50
	chatPerSecond, chatAtOnce         = 1, 5
	worldPerSecond, worldAtOnce       = .5, 4
	commandsPerSecond, commandsAtOnce = 1, 10
	hitsPerSecond, hitsAtOnce         = 2, 4
	giftsPerSecond, giftsAtOnce       = 1, 5
	stancesPerSecond, stancesAtOnce   = 4, 4 // each is sent to all who see the player
	pingsPerSecond, pingsAtOnce       = 10, 50
	surveysPerSecond, surveysAtOnce   = 10, 40 // a map has 25 tiles
)

// actionLimits limit how often a client does what. The session's reader owns them, but survey, which its survey owns.
type actionLimits struct {
	move, edit, chat, world, command, hit, gift, stance, ping, survey *rate.Limiter
	view                                                              *rate.Limiter // requests for what is missing in view, while the player stands still

	client admission.Client // all clients of the address
}

// clientState is what a session's client can do, and what it has of the land.
type clientState struct {
	version int           // of the protocol, as sent by the client
	chunks  offers.Chunks // any goroutine's
	looks   codec.Looks   // that it understands in tick frames
}

// viewDistance is how far a client sees. The session's reader owns it, except where it says otherwise.
type viewDistance struct {
	chunks  atomic.Int32 // in each direction; any goroutine may read it
	wanted  int32
	changed time.Duration // by the gateway's clock

	short     bool // some chunks are not watched: the player's address has no room for them
	explained bool // the player was told why
}

// viewKept is how long a view distance stays before it becomes smaller: each time that it grows again may cost hundreds
// of chunks.
const viewKept = 5 * time.Second

// set sets the view distance of a client that joins.
func (v *viewDistance) set(chunks int32, now time.Duration) {
	v.chunks.Store(chunks)
	v.wanted, v.changed = chunks, now
}

// change changes the view distance to the one that the client wants, and reports whether it did. If it is too early to
// make it smaller, a later call does.
func (v *viewDistance) change(now time.Duration) bool {
	current := v.chunks.Load()
	if v.wanted == current || v.wanted < current && now-v.changed < viewKept {
		return false
	}
	v.set(v.wanted, now)
	return true
}

func newActionLimits(edits rate.Limit, client admission.Client) actionLimits {
	return actionLimits{
		client: client,

		move: rate.NewLimiter(movesPerSecond, movesAtOnce),
		edit: rate.NewLimiter(edits, editsAtOnce),
		chat: rate.NewLimiter(chatPerSecond, chatAtOnce), world: rate.NewLimiter(worldPerSecond, worldAtOnce), command: rate.NewLimiter(commandsPerSecond, commandsAtOnce),
		hit:    rate.NewLimiter(hitsPerSecond, hitsAtOnce),
		gift:   rate.NewLimiter(giftsPerSecond, giftsAtOnce),
		stance: rate.NewLimiter(stancesPerSecond, stancesAtOnce),
		ping:   rate.NewLimiter(pingsPerSecond, pingsAtOnce),
		view:   rate.NewLimiter(1, 1),

		survey: rate.NewLimiter(surveysPerSecond, surveysAtOnce),
	}
}

// place is where a session's player is. Its lock is a leaf; any goroutine may use it.
type place struct {
	mu struct {
		sync.Mutex
		pose     motion.Pose
		joined   bool         // the player is in the world, or about to be
		placed   bool         // the player is in the world, or about to enter it
		detached bool         // the player has moved to another gateway, and is neither moved nor saved here
		events   uint64       // number of the player's events, including one that is just being made
		home     *motion.Pose // never changed, only replaced; nil: none
	}
}

// home returns the player's home, and reports whether they have one.
func (p *place) home() (home motion.Pose, set bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.home == nil {
		return home, false
	}
	return *p.mu.home, true
}

// setHome sets the player's home. It reports false if they have moved to another gateway already.
func (p *place) setHome(home motion.Pose) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.detached {
		return false
	}
	p.mu.home = &home
	return true
}

// moveTo moves the player. It reports false if they have moved to another gateway already.
func (p *place) moveTo(pose motion.Pose) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.detached {
		return false
	}
	p.mu.pose, p.mu.joined, p.mu.placed = pose, true, true
	return true
}

func (p *place) pose() motion.Pose {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.pose
}

// taken reports whether the player has a place, which they keep until they are saved at the end.
func (p *place) taken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.placed
}

// joined reports whether the player is here.
func (p *place) joined() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.joined
}

// detached reports whether the player has moved to another gateway already.
func (p *place) detached() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.detached
}

// setEvents sets the number of the player's events. It reports false when the player has moved to another gateway,
// which might assign the same number.
func (p *place) setEvents(n uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.detached {
		return false
	}
	p.mu.events = n
	return true
}

// saved returns what is saved of the player.
func (p *place) saved() (pose motion.Pose, home *motion.Pose, events uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.pose, p.mu.home, p.mu.events
}

// detach stops the player where they are: from now on this gateway neither moves nor saves them, and sends nothing on
// their behalf. It reports whether they were here.
func (p *place) detach() (here bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	here, p.mu.joined, p.mu.detached = p.mu.joined, false, true
	return here
}

// walkState is the state of a session that decides whether to park it, and that its moves need. It belongs to the
// session's reader, which is the poller while the session is parked.
type walkState struct {
	timerSet     time.Duration     // by the gateway's clock: when silent was set
	lastAction   time.Duration     // likewise: when the client last sent anything but a move or a ping
	nearBorder   bool              // see predictBorder
	parked       bool              // the poller reads
	teleport     *motion.Pose      // where the player was brought, until the client says that it is there; else nil
	toldTeleport time.Duration     // by the gateway's clock: when the client was last told of it
	obstacles    []checks.Obstacle // scratch of land
}

// noticePause is the time in which a repeated notice of several subscriptions is sent once.
const noticePause = 5 * time.Second

// lastNotice is the newest notice of a session. Its lock is a leaf.
type lastNotice struct {
	mu struct {
		sync.Mutex
		text string
		at   time.Time
	}
}

// isNew records a notice, and reports whether it was not the newest one just now.
func (l *lastNotice) isNew(n sessionmsg.Notice) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.Text == l.mu.text && time.Since(l.mu.at) < noticePause {
		return false
	}
	l.mu.text, l.mu.at = n.Text, time.Now()
	return true
}

// pendingEdits is a session's unanswered edits: the client's numbers, by those under which they were requested. Its
// lock is a leaf.
type pendingEdits struct {
	mu struct {
		sync.Mutex
		seqs    map[uint64]uint64
		settled chan struct{} // nil until hold; closed when no edit waits any more
	}
}

// add adds an edit. It reports false when the session accepts no more.
func (o *pendingEdits) add(seq, clients uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.settled != nil {
		return false
	}
	if o.mu.seqs == nil {
		o.mu.seqs = make(map[uint64]uint64)
	}
	o.mu.seqs[seq] = clients
	return true
}

// numberOf returns the number that the client has given an edit.
func (o *pendingEdits) numberOf(seq uint64) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if number, waits := o.mu.seqs[seq]; waits {
		return number
	}
	return seq
}

// requested returns under which number an edit is requested that the client has numbered, and reports whether it is.
func (o *pendingEdits) requested(number uint64) (seq uint64, waits bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for seq, other := range o.mu.seqs {
		if other == number {
			return seq, true
		}
	}
	return 0, false
}

// closed reports whether the session accepts no more.
func (o *pendingEdits) closed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.settled != nil
}

// answered removes an edit.
func (o *pendingEdits) answered(seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, waits := o.mu.seqs[seq]; !waits {
		return
	}
	if delete(o.mu.seqs, seq); len(o.mu.seqs) == 0 && o.mu.settled != nil {
		close(o.mu.settled)
	}
}

// close stops accepting edits. The channel is closed when all are answered. It is called once.
func (o *pendingEdits) close() (settled <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.settled = make(chan struct{})
	if len(o.mu.seqs) == 0 {
		close(o.mu.settled)
	}
	return o.mu.settled
}
