package moderation

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
	"github.com/voxelpopuli/voxeld/player"
)

// This file acts on players who flood the chat: who sends more than is allowed is warned, and who goes on is muted for
// a minute, on this node and also after joining again. If the policy says so, who then goes on may not join this node
// for some time.

const (
	// floodLines is how many lines or commands within floodTime, beyond those that are allowed, are a flood.
	floodLines = 5
	floodTime  = 10 * time.Second
	// floodMute is how long who floods the chat is muted.
	floodMute = time.Minute
	// maxFlooders is the number of flooders who are remembered: those who flooded last.
	maxFlooders = 4096
)

// Outcomes of lines that were sent too fast: the label outcome of a metric.
const (
	floodWarned = "warned"
	floodMuted  = "muted"
	floodBanned = "banned"
)

// flooder is a player who has sent lines too fast.
type flooder struct {
	since  time.Time // of the lines that count
	lines  int
	muted  time.Time // until when
	banned time.Time // until when
}

// floods are the flooders of a gateway.
type floods struct {
	outcomes *prometheus.CounterVec

	mu struct {
		sync.Mutex
		players *lru.Cache[player.ID, flooder]
	}
}

func newFloods(r prometheus.Registerer) *floods {
	f := &floods{outcomes: metric.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_chat_floods_total",
		Help: "Players who sent lines or commands too fast: warned, muted for a minute, or banned from this node (set floodban).",
	}, metric.Values("outcome", floodWarned, floodMuted, floodBanned))}
	r.MustRegister(f.outcomes)
	players, err := lru.New[player.ID, flooder](maxFlooders)
	if err != nil {
		panic(err) // the size is positive
	}
	f.mu.players = players
	return f
}

// of returns what is known of a player.
func (f *floods) of(id player.ID) flooder {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, _ := f.mu.players.Peek(id)
	return known
}

// note counts a line that was sent too fast, and returns what follows; empty if nothing does. Ban is for how long a
// flood of a player who is muted bans them; 0: not at all.
func (f *floods) note(id player.ID, now time.Time, ban time.Duration) (outcome string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	it, _ := f.mu.players.Get(id)
	if now.Sub(it.since) > floodTime {
		it.since, it.lines = now, 0
		outcome = floodWarned
	}
	if it.lines++; it.lines == floodLines {
		outcome = floodMuted
		if now.Before(it.muted) && ban > 0 {
			outcome, it.banned = floodBanned, now.Add(ban)
		}
		it.muted, it.since = now.Add(floodMute), time.Time{}
	}
	f.mu.players.Add(id, it)
	if outcome != "" {
		f.outcomes.WithLabelValues(outcome).Inc()
	}
	return outcome
}
