package gameserver

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/gameserver/chat"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// nodeWorldPerSecond and nodeWorldAtOnce are how many lines for the whole world the players of a gateway may send a
	// second, and at once. Other gateways take more (elsewhere.lineRate).
	nodeWorldPerSecond, nodeWorldAtOnce = 5, 20
	// maxRecent is the most lines that a player is shown who has just come, and recentFor how old they are at most.
	maxRecent, recentFor = 20, 10 * time.Minute
)

// worldChat is the chat that all players of the world read. No machine passes all of it on: the author's gateway sends
// each line to the other gateways (elsewhere.Players.Say), and each shows its players what it gets in causal order
// (package chat). Any goroutine may use it.
type worldChat struct {
	g         *Gateway
	sequencer *chat.Sequencer
	limit     *rate.Limiter // of the players here together

	// Also guards which sessions are shown lines (session.readsWorld): each line once, and none before the welcome.
	mu struct {
		sync.Mutex
		recent []nodemsg.ChatEvent // the newest last, at most maxRecent
	}
}

func newWorldChat(g *Gateway) *worldChat {
	return &worldChat{
		g: g, limit: rate.NewLimiter(nodeWorldPerSecond, nodeWorldAtOnce),
		sequencer: chat.NewSequencer(chat.Options{
			Now: g.now, Awaited: chat.AwaitNamed, Unordered: g.unorderedChat, Registerer: channelOf(g.Registerer, "world"),
		}),
	}
}

// channelOf returns where the metrics of a channel of the chat are registered.
func channelOf(r prometheus.Registerer, channel string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"channel": channel}, r)
}

// maxAhead is how far the numbers of a line may be ahead of the time of the world, which they begin with: a gateway
// that lies could otherwise make all later lines of a player count as old ones. Records of players, from which their
// gateways count on, may be two days ahead (nodemsg.PlayerRecord).
const maxAhead = 3 * 24 * time.Hour

// accept shows a line of another gateway to all players here, after those that it follows, if its numbers can be true.
func (w *worldChat) accept(line nodemsg.WorldLine) {
	e := line.Event()
	stamp, _ := e.Clock()
	now := w.g.wall()
	most := uint64(now.Add(maxAhead).UnixMilli()) //nolint:gosec // after 1970
	for entry := range stamp.Clock.All() {
		if entry.N > most {
			return
		}
	}
	line.Wall = min(line.Wall, now.UnixMilli()) // not to be shown for ever to those who come
	w.enqueue(line)
}

// enqueue shows a line to all players here, after those that it follows.
func (w *worldChat) enqueue(line nodemsg.WorldLine) {
	w.sequencer.Enqueue(w, []nodemsg.ChatEvent{line.Event()})
}

// PublishChat shows a line to all players here.
func (w *worldChat) PublishChat(e nodemsg.ChatEvent, stamp vclock.Stamp) {
	line, now := w.lineOf(e), w.g.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mu.recent) == maxRecent {
		w.mu.recent = slices.Delete(w.mu.recent, 0, 1)
	}
	w.mu.recent = append(w.mu.recent, e)
	w.g.services.PublishLine(e)
	for _, s := range w.g.sessions.All() {
		if s.readsWorld {
			s.worldClock.NoteSeen(stamp, now)
			s.out.Send(line)
		}
	}
}

// lineOf returns the line as players are shown it: no player's name is like that of a service.
func (w *worldChat) lineOf(e nodemsg.ChatEvent) sessionmsg.Line {
	name := e.Name
	if w.g.enforcer.IsService(e.Player) {
		name += " [service]"
	}
	return sessionmsg.Line{Channel: sessionmsg.ChannelWorld, Player: e.Player.String(), Name: name, Text: e.Text, At: e.Wall}
}

// greet shows a player who has just come the last lines, but those of who may not write any more, and from now on all.
func (w *worldChat) greet(s *session) {
	since := w.g.wall().Add(-recentFor).UnixMilli()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.mu.recent {
		if e.Wall >= since && w.g.enforcer.MayWrite(e.Player, e.Name, e.Player == player.GuestID(e.Name)) {
			line := w.lineOf(e)
			line.Earlier = true
			s.out.Send(line)
		}
	}
	s.readsWorld = true
}

// sayToWorld shows a line of the player to all players of the world, or returns why it does not. An error ends the
// session, which is its reader's.
func (s *session) sayToWorld(text string) (why, err error) {
	w := s.g.world
	if !s.limits.world.Allow() {
		return nil, s.permissions.TooFast()
	}
	if why := s.permissions.Mute(); why != nil {
		return why, nil
	}
	if !w.limit.Allow() {
		return notice.New("world_chat_busy", "too much is written to the whole world from this node; that was not sent: try again in a moment"), nil
	}
	nobody := func(vclock.ID) bool { return false } // whose lines were shown in the last seconds is relevant
	stamp, err := s.worldClock.NextStamp(s.g.now(), nobody).Append(nil)
	if err != nil {
		panic(err) // no Owner's clock is too large
	}
	line := nodemsg.WorldLine{
		Player: s.body.Player, Name: s.body.Name, Guest: s.body.Guest, Text: text, Wall: s.g.wall().UnixMilli(), Stamp: stamp,
	}
	w.send(line)
	return nil, nil
}

// send shows a line to all players of the world.
func (w *worldChat) send(line nodemsg.WorldLine) {
	w.enqueue(line)
	w.g.Elsewhere.Say(line)
}

// read calls begin with the last lines, while none is added.
func (w *worldChat) read(begin func(recent []nodemsg.ChatEvent)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin(w.mu.recent)
}
