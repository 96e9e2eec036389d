package services

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file sends services what happens, as server-sent events. Nothing is stored for it: edits come from the history
// of the land, which the mirror says when to look at; lines to the world are those that players here are shown.
//
// The id of an event is a time, and every edit in the history before it was sent. Whoever goes on from there, at any
// node, is sent again what happened within overlap before it; by their "id" events are recognised that were sent before.

// Kinds of events.
const (
	kindEdits   = "edits"
	kindChat    = "chat"
	kindPlayers = "players"
)

const (
	// maxStreams and maxWatched bound the streams of a node, and the chunks that they watch together; a stream watches
	// maxStreamChunks at most.
	maxStreams, maxWatched, maxStreamChunks = 64, 1024, 64
	// streamEvery is how often a stream is sent what is new.
	streamEvery = 500 * time.Millisecond
	// aliveEvery is how often a silent stream is sent a comment.
	aliveEvery = 15 * time.Second
	// playersEvery is how often it is looked who plays.
	playersEvery = 2 * time.Second
	// writeTime bounds a write: who reads slower is dropped, and goes on from the last id.
	writeTime = 10 * time.Second
	// maxLines is the most lines that wait for a stream.
	maxLines = 256
	// overlap is how much is sent again to who goes on from an id: clocks of leaders differ, and an edit is dated when it
	// is proposed.
	overlap = 30 * time.Second
	// turnTime is how long a stream waits for its turn among the services that ask.
	turnTime = time.Second
	// askAgain is the pause before land is asked again that did not answer.
	askAgain = 2 * time.Second
	// pageOfEdits is how many edits of a chunk are read at once.
	pageOfEdits = 500
)

// streams are the streams of this node.
type streams struct {
	mu struct {
		sync.Mutex
		all     map[*stream]struct{}
		watched int // chunks
	}
}

// stream is the events of one request. The goroutine of the request owns it, but for what the lock guards.
type stream struct {
	s       *Server
	c       *call
	out     *http.ResponseController
	chunks  map[grid.ChunkPos]*position // those of which edits are sent
	box     grid.Box
	view    *view // nil: no edits are sent
	chat    bool
	players map[string]bool // who plays, of those that were listed; nil: they are not sent
	written time.Time       // when something was sent last
	looked  time.Time       // when it was looked last who plays
	began   time.Time

	replaced atomic.Bool // by a newer stream of the service

	mu struct {
		sync.Mutex
		lines   []nodemsg.ChatEvent // to be sent
		dropped bool                // there were too many
	}
}

// position is up to where the edits of a chunk were sent: those before a time, in Unix milliseconds, and so many of that
// time.
type position struct {
	at    int64
	sent  int
	dirty bool      // there may be more
	away  bool      // the land does not say when; it is asked once it does
	asked time.Time // when the land was asked last
	mute  bool      // it did not answer then
}

// PublishLine sends a line to the world to the streams.
func (s *Server) PublishLine(e nodemsg.ChatEvent) {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	for st := range s.streams.mu.all {
		if st.chat {
			st.add(e)
		}
	}
}

func (st *stream) add(e nodemsg.ChatEvent) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.mu.lines) < maxLines {
		st.mu.lines = append(st.mu.lines, e)
	} else {
		st.mu.dropped = true
	}
}

// takeLines returns the lines to be sent. It reports whether others were dropped.
func (st *stream) takeLines() (lines []nodemsg.ChatEvent, dropped bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	lines, st.mu.lines = st.mu.lines, nil
	return lines, st.mu.dropped
}

// open counts a stream, and has the oldest of its service end if that has too many: probably nobody reads it any more.
// The error is that of too many of all services.
func (s *Server) open(st *stream) error {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	var oldest *stream
	of := 0
	for other := range s.streams.mu.all {
		if other.c.service.ID == st.c.service.ID && !other.replaced.Load() {
			of++
			if oldest == nil || other.began.Before(oldest.began) {
				oldest = other
			}
		}
	}
	if len(s.streams.mu.all) >= maxStreams || s.streams.mu.watched+len(st.chunks) > maxWatched {
		return errBusy
	}
	if of >= streamsPerService {
		oldest.replaced.Store(true)
	}
	st.began = time.Now()
	s.streams.mu.all[st] = struct{}{}
	s.streams.mu.watched += len(st.chunks)
	s.metrics.streams.Inc()
	return nil
}

func (s *Server) close(st *stream) {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	delete(s.streams.mu.all, st)
	s.streams.mu.watched -= len(st.chunks)
	s.metrics.streams.Dec()
}

// newStream returns the stream that a request asks for, and the time from which on its events are sent.
func (s *Server) newStream(c *call) (st *stream, since int64, err error) {
	st = &stream{s: s, c: c, out: http.NewResponseController(c.w), chunks: make(map[grid.ChunkPos]*position)}
	now := s.Wall().UnixMilli()
	since = now
	cursor := c.Header.Get("Last-Event-ID")
	if cursor == "" {
		cursor = c.URL.Query().Get("after")
	}
	if cursor != "" {
		after, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil || after < 0 {
			return nil, 0, badRequest("Last-Event-ID %q: want the id of an event", cursor)
		}
		since = min(now, max(0, after-overlap.Milliseconds()))
	}
	kinds := c.URL.Query().Get("kinds")
	if kinds == "" {
		kinds = strings.Join([]string{kindEdits, kindChat, kindPlayers}, ",")
	}
	for kind := range strings.SplitSeq(kinds, ",") {
		switch kind {
		case kindEdits:
			if st.box, err = s.box(c); err != nil {
				return nil, 0, err
			}
			if countOf(st.box) > maxStreamChunks {
				return nil, 0, badRequest("a stream has the edits of %d chunks of 32×32 blocks at most", maxStreamChunks)
			}
			for _, at := range chunksOf(st.box) {
				st.chunks[at] = &position{at: since / history.Resolution * history.Resolution, dirty: true}
			}
		case kindChat:
			st.chat = true
		case kindPlayers:
			st.players = make(map[string]bool)
		default:
			return nil, 0, badRequest("kinds: want some of %s, %s, %s", kindEdits, kindChat, kindPlayers)
		}
	}
	return st, since, nil
}

// errEnd ends a stream whose service was told why.
var errEnd = errors.New("the stream has ended")

// getEvents sends events until the service leaves, reads too slowly or may not read any more.
func (s *Server) getEvents(c *call) (any, error) {
	st, since, err := s.newStream(c)
	if err != nil {
		return nil, err
	}
	s.Lines(func(recent []nodemsg.ChatEvent) {
		if err = s.open(st); err != nil || !st.chat {
			return
		}
		for _, e := range recent {
			if e.Wall >= since {
				st.add(e)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer s.close(st)
	if len(st.chunks) > 0 {
		if st.view, err = s.watch(c.Context(), c, slices.SortedFunc(maps.Keys(st.chunks), grid.ChunkPos.Compare)); err != nil {
			return nil, err
		}
		defer st.view.close()
	}
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.Header().Set("X-Accel-Buffering", "no") // nginx would hold events back
	//nolint:errcheck // what cannot be done ends the stream early
	st.out.SetReadDeadline(time.Time{})
	if st.write("ready", struct{}{}) != nil { // with an id to go on from
		return nil, nil
	}
	ticker := time.NewTicker(streamEvery)
	defer ticker.Stop()
	for {
		if err := st.send(c.Context()); err != nil {
			return nil, nil //nolint:nilerr // the service has left, or was told why
		}
		select {
		case <-ticker.C:
		case <-c.Context().Done():
			return nil, nil
		}
	}
}

// send sends what is new.
func (st *stream) send(ctx context.Context) error {
	v, _ := st.s.find(st.c.service.ID)
	if v == nil || !v.May(policy.ScopeRead, st.s.Wall()) || v.String() != st.c.service.String() {
		return st.end("bad_key", "the key is valid no longer, or what it may do has changed")
	}
	if st.replaced.Load() {
		return st.end("replaced", fmt.Sprintf("the service has opened %d newer streams at this node", streamsPerService))
	}
	if err := st.sendEdits(ctx); err != nil {
		return err
	}
	lines, dropped := st.takeLines()
	for _, e := range lines {
		if err := st.write("chat", st.lineOf(e)); err != nil {
			return err
		}
	}
	if dropped {
		return st.end("slow", "more lines were written than were read: go on from the last id")
	}
	if err := st.sendPlayers(ctx); err != nil {
		return err
	}
	if time.Since(st.written) >= aliveEvery {
		return st.flush([]byte(":\n\n"))
	}
	return nil
}

// editEvent is a change of a block.
type editEvent struct {
	ID string `json:"id"`
	change
}

// sendEdits sends the edits of the chunks in which there may be some. A chunk that does not answer is asked again.
func (st *stream) sendEdits(ctx context.Context) error {
	if st.view == nil {
		return nil
	}
	for _, at := range st.view.take() {
		st.chunks[at].dirty = true
	}
	for at, sub := range st.view.subs {
		p := st.chunks[at]
		p.away = !sub.Receives(at)
		p.dirty = p.dirty || p.away // also if it is not sent again
	}
	for _, at := range st.due() {
		for more := true; more; {
			if !st.s.turn(ctx) {
				return ctx.Err() // the rest has its turn next time
			}
			var err error
			if more, err = st.sendPage(ctx, at, st.chunks[at]); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn waits until a question may be asked, but not for long: lines must not wait behind edits.
func (s *Server) turn(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	return s.questions.Wait(ctx) == nil
}

// due returns the chunks that are to be asked for edits, the one that was asked longest ago first.
func (st *stream) due() (all []grid.ChunkPos) {
	for at, p := range st.chunks {
		if p.dirty && !p.away && (!p.mute || time.Since(p.asked) >= askAgain) {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b grid.ChunkPos) int { return st.chunks[a].asked.Compare(st.chunks[b].asked) })
	return all
}

// sendPage sends a page of the edits of a chunk, and reports whether there are more that can be read now.
func (st *stream) sendPage(ctx context.Context, at grid.ChunkPos, p *position) (more bool, err error) {
	low := at.Origin()
	q := rollback.Query{Most: p.sent + pageOfEdits}
	q.Since, q.Until = p.at, st.s.Wall().Add(overlap).UnixMilli() // leaders' clocks may be ahead of this node's
	q.Box = grid.Box{
		Min: grid.Pos{X: max(low.X, st.box.Min.X), Y: st.box.Min.Y, Z: max(low.Z, st.box.Min.Z)},
		Max: grid.Pos{X: min(low.X+grid.ChunkSize-1, st.box.Max.X), Y: st.box.Max.Y, Z: min(low.Z+grid.ChunkSize-1, st.box.Max.Z)},
	}
	found, err := st.s.History.Query(ctx, q)
	p.asked, p.mute = time.Now(), err != nil || len(found.Missing) > 0
	if p.mute {
		return false, nil //nolint:nilerr // the land is asked again
	}
	var changes []change
	st.s.Policy(func(state *policy.State) { changes = changesOf(state, found.Records) })
	ordinals := make(map[grid.Pos]int) // of the edits of a block at one time
	for i, e := range changes {
		if i > 0 && e.TimeMS != changes[i-1].TimeMS {
			clear(ordinals)
		}
		ordinals[e.At]++
		if e.TimeMS == p.at && i < p.sent {
			continue // it was sent
		}
		if e.TimeMS > p.at {
			p.at, p.sent = e.TimeMS, 0
		}
		p.sent++
		id := fmt.Sprintf("%d.%d.%d.%d.%d", e.At.X, e.At.Y, e.At.Z, e.TimeMS, ordinals[e.At])
		if err := st.write("edit", editEvent{id, e}); err != nil {
			return false, err
		}
	}
	p.dirty = found.More
	return found.More, nil
}

// lineEvent is a line to the world. Service means that a service has written it.
type lineEvent struct {
	ID      string `json:"id"`
	TimeMS  int64  `json:"time_ms"`
	Player  string `json:"by"`
	Name    string `json:"name"`
	Service bool   `json:"service"`
	Text    string `json:"text"`
}

func (st *stream) lineOf(e nodemsg.ChatEvent) lineEvent {
	line := lineEvent{ID: lineID(e), TimeMS: e.Wall, Player: e.Player.String(), Name: e.Name, Text: e.Text}
	st.s.Policy(func(p *policy.State) { line.Service = p.Service(e.Player) != nil })
	return line
}

// lineID returns the id of a line to the world.
func lineID(e nodemsg.ChatEvent) string {
	stamp, _ := e.Clock()
	return fmt.Sprintf("%v.%d", e.Player, stamp.Own())
}

// playersEvent is who plays when the stream begins.
type playersEvent struct {
	Names []string `json:"names"`
}

// playerEvent is who has come, or has left.
type playerEvent struct {
	Name string `json:"name"`
}

// sendPlayers sends who plays first, then who comes and who leaves.
func (st *stream) sendPlayers(ctx context.Context) error {
	if st.players == nil || time.Since(st.looked) < playersEvery {
		return nil
	}
	names, players := st.s.roster.get(ctx, st.s.Names)
	first := st.looked.IsZero()
	if st.looked = time.Now(); !first && uint64(len(names)) < players {
		return nil // another node has named some of its players only, each time others
	}
	now := make(map[string]bool)
	for _, name := range names {
		now[name] = true
	}
	before := st.players
	st.players = now
	if first {
		return st.write("players", playersEvent{slices.AppendSeq([]string{}, maps.Keys(now))})
	}
	for name := range now {
		if !before[name] {
			if err := st.write("join", playerEvent{name}); err != nil {
				return err
			}
		}
	}
	for name := range before {
		if !now[name] {
			if err := st.write("leave", playerEvent{name}); err != nil {
				return err
			}
		}
	}
	return nil
}

// cursor returns the id of an event that is sent now: the time before which all edits were sent.
func (st *stream) cursor() int64 {
	at := st.s.Wall().UnixMilli()
	for _, p := range st.chunks {
		if p.dirty {
			at = min(at, p.at)
		}
	}
	return at
}

// end sends the last event of a stream: why it ends.
func (st *stream) end(code, message string) error {
	return errors.Join(st.write("end", Error{Code: code, Message: message}), errEnd)
}

// write sends an event.
func (st *stream) write(event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: %s\n\n", st.cursor(), event, text)
	st.s.metrics.events.WithLabelValues(event).Inc()
	return st.flush(b.Bytes())
}

// flush sends bytes. A service that does not read them in time is dropped.
func (st *stream) flush(b []byte) error {
	st.written = time.Now()
	err := st.out.SetWriteDeadline(st.written.Add(writeTime))
	if err == nil {
		_, err = st.c.w.Write(b)
	}
	if err == nil {
		err = st.out.Flush()
	}
	return err
}
