package bot

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/histogram"
)

// meter counts what all players of a run do. It is safe for concurrent use.
type meter struct {
	start time.Time

	mu struct {
		sync.Mutex
		totals
		last totals // at the end of the last second, for the series
	}
}

// totals are the numbers of a run so far.
type totals struct {
	sent, received map[string]traffic
	bytesOut       uint64
	bytesIn        uint64

	players    int // in the world now
	joined     int
	failed     int
	lost       int
	playerTime time.Duration

	moves                          int // completed redirects
	edits, acked, unanswered       int
	failures, refused, corrections map[string]int
	causes                         map[string]string // of failures: the first cause of each code

	chunks Chunks

	join, move, ack, seen histogram.Histogram // seconds
}

type traffic struct{ count, bytes uint64 }

func newMeter() *meter {
	m := &meter{start: time.Now()}
	m.mu.totals = totals{
		sent: make(map[string]traffic), received: make(map[string]traffic),
		failures: make(map[string]int), causes: make(map[string]string), refused: make(map[string]int), corrections: make(map[string]int),
	}
	return m
}

// wrote counts one packet sent, and read one received. Sizes are those on the connection, newlines included.
func (m *meter) wrote(kind string, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tally(m.mu.sent, kind, bytes)
	m.mu.bytesOut += uint64(bytes)
}

func (m *meter) read(kind string, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tally(m.mu.received, kind, bytes)
	m.mu.bytesIn += uint64(bytes)
}

func tally(of map[string]traffic, kind string, bytes int) {
	t := of[kind]
	t.count++
	t.bytes += uint64(bytes)
	of[kind] = t
}

// entered counts a player who has joined and received the land they stand on; left counts one who has left since.
func (m *meter) entered(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.joined++
	m.mu.players++
	m.mu.join.Add(took.Seconds())
}

func (m *meter) left(stayed time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.players--
	m.mu.playerTime += stayed
}

// failure counts a player who could not join or, if joined, who lost the connection.
func (m *meter) failure(err error, joined bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	code := codeOf(err)
	if m.mu.failures[code]++; m.mu.failures[code] == 1 {
		m.mu.causes[code] = causeOf(err)
	}
	if joined {
		m.mu.lost++
	} else {
		m.mu.failed++
	}
}

// moved counts a player who has received the land they stand on from a new gateway.
func (m *meter) moved(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.moves++
	m.mu.move.Add(took.Seconds())
}

// unanswered counts the unanswered edits of a player who has left.
func (m *meter) unanswered(edits int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.totals.unanswered += edits
}

func (m *meter) corrected(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.corrections[reason]++
}

// crossed counts a player who walked from one chunk into another.
func (m *meter) crossed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.chunks.Borders++
}

// reconnected counts a chunk that is connected again after a reset.
func (m *meter) reconnected() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.chunks.Resets++
}

// resumed counts a player who continues after the chunk under them was reset for that long.
func (m *meter) resumed(after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.chunks.Pause = max(m.mu.chunks.Pause, millis(after))
}

func (m *meter) edited() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.edits++
}

// acknowledged counts the answer to an edit; refused is empty for a commit.
func (m *meter) acknowledged(after time.Duration, refused string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if refused != "" {
		m.mu.refused[refused]++
		return
	}
	m.mu.acked++
	m.mu.ack.Add(after.Seconds())
}

func (m *meter) seen(after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.seen.Add(after.Seconds())
}

// second returns what happened since its last call.
func (m *meter) second() Second {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, last := &m.mu.totals, &m.mu.last
	s := Second{
		At:       Seconds(time.Since(m.start).Seconds()),
		Players:  now.players,
		Sent:     packets(now.sent) - packets(last.sent),
		Received: packets(now.received) - packets(last.received),
		BytesOut: now.bytesOut - last.bytesOut,
		BytesIn:  now.bytesIn - last.bytesIn,
		Ack:      latencyOf(now.ack.Since(last.ack)),
		Seen:     latencyOf(now.seen.Since(last.seen)),
	}
	m.mu.last = totals{
		sent: maps.Clone(now.sent), received: maps.Clone(now.received),
		bytesOut: now.bytesOut, bytesIn: now.bytesIn,
		ack: now.ack.Clone(), seen: now.seen.Clone(),
	}
	return s
}

func packets(of map[string]traffic) uint64 {
	n := uint64(0)
	for _, t := range of {
		n += t.count
	}
	return n
}

// report returns the report of the run, with the caller's series.
func (m *meter) report(o Options, series []Second) Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &m.mu.totals
	elapsed := time.Since(m.start)
	r := Report{
		Target: o.Target, Mode: o.Mode, Protocol: o.Protocol, Players: o.Players, Seed: o.Seed, Elapsed: elapsed,
		Joined: t.joined, Failed: t.failed, Lost: t.lost, Moved: t.moves, Failures: maps.Clone(t.failures), Causes: maps.Clone(t.causes),
		Volume: Volume{
			Sent: list(t.sent, elapsed), Received: list(t.received, elapsed),
			BytesOut: t.bytesOut, BytesIn: t.bytesIn, PlayerTime: Seconds(t.playerTime.Seconds()),
		},
		Edits: t.edits, Acked: t.acked, EditsLost: t.unanswered, Refused: maps.Clone(t.refused), Corrections: maps.Clone(t.corrections),
		Chunks: t.chunks,
		Join:   latencyOf(t.join), Move: latencyOf(t.move), Ack: latencyOf(t.ack), Seen: latencyOf(t.seen),
		Series: series,
	}
	if s := t.playerTime.Seconds(); s > 0 {
		r.OutPerPlayer, r.InPerPlayer = float64(t.bytesOut)/s, float64(t.bytesIn)/s
	}
	return r
}

func list(of map[string]traffic, elapsed time.Duration) []Traffic {
	out := make([]Traffic, 0, len(of))
	for kind, t := range of {
		out = append(out, Traffic{Type: kind, Count: t.count, PerSecond: float64(t.count) / elapsed.Seconds(), Bytes: t.bytes})
	}
	slices.SortFunc(out, func(a, b Traffic) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Type, b.Type))
	})
	return out
}
