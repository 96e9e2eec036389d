package gameserver

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/gameserver/chat"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// nodeWorldPerSecond and nodeWorldAtOnce are how many lines for the whole world the players of a gateway may send a
	// second, and at once. Other gateways take twice as many (elsewhere.lineRate).
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

	mu struct {
		sync.Mutex
		recent []sessionmsg.Line // the newest last, at most maxRecent
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

// enqueue shows a line to all players here, after those that it follows.
func (w *worldChat) enqueue(line nodemsg.WorldLine) {
	w.sequencer.Enqueue(w, []nodemsg.ChatEvent{line.Event()})
}

// PublishChat shows a line to all players here.
func (w *worldChat) PublishChat(e nodemsg.ChatEvent, stamp vclock.Stamp) {
	line := sessionmsg.Line{Channel: sessionmsg.ChannelWorld, Player: e.Player.String(), Name: e.Name, Text: e.Text}
	w.remember(line)
	now := w.g.now()
	for _, s := range w.g.sessions.All() {
		if s.place.joined() {
			s.worldClock.NoteSeen(stamp, now)
			s.out.Send(line)
		}
	}
}

// remember keeps a line for players who come later.
func (w *worldChat) remember(line sessionmsg.Line) {
	line.At = w.g.wall().UnixMilli()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mu.recent) == maxRecent {
		w.mu.recent = slices.Delete(w.mu.recent, 0, 1)
	}
	w.mu.recent = append(w.mu.recent, line)
}

// greet shows a player who has just come the last lines.
func (w *worldChat) greet(s *session) {
	since := w.g.wall().Add(-recentFor).UnixMilli()
	w.mu.Lock()
	recent := slices.Clone(w.mu.recent)
	w.mu.Unlock()
	for _, line := range recent {
		if line.At >= since {
			s.out.Send(line)
		}
	}
}

// sayToWorld shows a line of the player to all players of the world, or returns why it does not. An error ends the
// session, which is its reader's.
func (s *session) sayToWorld(text string) (why string, err error) {
	w := s.g.world
	if !s.limits.world.Allow() {
		return "", s.permissions.TooFast()
	}
	if why := s.permissions.Mute(); why != "" {
		return why, nil
	}
	if !w.limit.Allow() {
		return "too much is written to the whole world from this node; that was not sent: try again in a moment", nil
	}
	nobody := func(vclock.ID) bool { return false } // whose lines were shown in the last seconds is relevant
	stamp, err := s.worldClock.NextStamp(s.g.now(), nobody).Append(nil)
	if err != nil {
		panic(err) // no Owner's clock is too large
	}
	line := nodemsg.WorldLine{
		Player: s.body.Player, Name: s.body.Name, Guest: s.body.Guest, Text: text, Wall: s.g.wall().UnixMilli(), Stamp: stamp,
	}
	w.enqueue(line)
	s.g.Elsewhere.Say(line)
	return "", nil
}
