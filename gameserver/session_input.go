package gameserver

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/checks"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file handles the client's messages. It runs in the session's reader, which is the poller while a session whose player only
// walks is parked.

// listen handles messages until the client leaves or sends something invalid.
func (s *session) listen() error {
	s.walk.timerSet = s.g.now()
	s.walk.lastAction = s.walk.timerSet
	for {
		data, err := s.conn.read()
		if err != nil {
			return err
		}
		now := s.countMessage(data)
		if err := s.handle(data); err != nil {
			return err
		}
		if !s.walk.nearBorder && !s.mayBeRecalled && now-s.walk.lastAction >= cmp.Or(s.g.actedFor, actedFor) {
			s.park()
		}
	}
}

// countMessage counts a message, and returns the time.
func (s *session) countMessage(data []byte) time.Duration {
	s.g.metrics.received(len(data))
	now := s.g.now()
	if now-s.walk.timerSet > silence/64 { // resetting a timer costs more than comparing times
		s.walk.timerSet = now
		s.silenceTimer.Reset(silence)
	}
	return now
}

// handle handles one message. Most of them are moves.
func (s *session) handle(data []byte) error {
	if s.mayBeRecalled {
		s.recall()
	}
	if s.codec.IsMove(data) {
		pose, err := sessionmsg.DecodeMove(data)
		if err != nil {
			return err
		}
		return s.move(pose)
	}
	msg, err := s.codec.Decode(data)
	if err != nil {
		return err
	}
	if _, ping := msg.(sessionmsg.Ping); !ping { // a page pings every two seconds, whatever its player does
		s.walk.lastAction = s.g.now()
	}
	return s.dispatch(msg)
}

// recall brings a player to where they left, if the network did not know that when they came, and has said it since.
func (s *session) recall() {
	_, home, _ := s.place.saved()
	record, waits := s.g.players.TakeRecall(s.body.Player, home)
	s.mayBeRecalled = waits
	if record == nil {
		return
	}
	if record.Home != nil {
		s.place.setHome(*record.Home)
	}
	s.out.Send(sessionmsg.Notice{Code: "recalled", Text: "You are back where you left: it was not known when you joined."})
	teleport(s, record.Pose)
}

func (s *session) dispatch(msg sessionmsg.FromClient) error {
	defer func() {
		if s.view.change(s.g.now()) {
			s.updateView()
		}
	}()
	switch m := msg.(type) {
	case sessionmsg.Move:
		return s.move(m.Pose)
	case sessionmsg.Edit:
		s.edit(m)
	case sessionmsg.Chat:
		return s.chat(m.Text)
	case sessionmsg.Command:
		return s.g.command(s, m)
	case sessionmsg.Hit:
		s.interact(m.Player, nodemsg.Interaction{Kind: nodemsg.InteractionHit}, s.limits.hit)
	case sessionmsg.Gift:
		s.interact(m.Player, nodemsg.Interaction{Kind: nodemsg.InteractionGift, Block: chunk.Block(m.Block), Count: m.Count}, s.limits.gift)
	case sessionmsg.View:
		s.view.wanted = s.g.viewOf(m.View)
	case sessionmsg.ChunkRequest:
		if at := (grid.ChunkPos{X: m.X, Z: m.Z}); s.client.chunks.Request(at) {
			s.subs[at].Refresh(at, s)
		}
	case sessionmsg.Ping:
		if !s.limits.ping.Allow() {
			return &wire.Error{Code: wire.FailRate, Message: fmt.Sprintf("send at most %d pings a second", pingsPerSecond)}
		}
		s.out.Send(sessionmsg.Pong{Nonce: m.Nonce, TimeOfDay: s.g.timeOfDay()})
		if s.walk.teleport == nil { // who stands still sends no moves
			bringInside(s, s.place.pose())
		}
		if s.view.short && s.limits.view.Allow() {
			s.updateView()
		}
	case sessionmsg.NearbyRequest:
		at := s.place.pose().Chunk()
		return s.survey(sessionmsg.Nearby{}, func(ctx context.Context) sessionmsg.FromServer { return s.g.surroundings.Nearby(ctx, at) })
	case sessionmsg.PeopleRequest:
		return s.survey(sessionmsg.People{}, func(ctx context.Context) sessionmsg.FromServer { return s.g.surroundings.People(ctx) })
	case sessionmsg.MapRequest:
		if err := checkTile(m, s.place.pose().Chunk()); err != nil {
			return err
		}
		return s.survey(sessionmsg.MapTile{X: m.X, Z: m.Z}, func(ctx context.Context) sessionmsg.FromServer { return s.g.surroundings.Tile(ctx, m.X, m.Z) })
	case sessionmsg.Join, sessionmsg.Prove:
		return &wire.Error{Code: wire.FailUnexpected, Message: "you have joined already"}
	}
	return nil
}

// checkTile returns an error if a player in the chunk may not request the tile of the map.
func checkTile(m sessionmsg.MapRequest, at grid.ChunkPos) error {
	const side, reach = sessionmsg.MapTileChunks, sessionmsg.MapTileChunks * sessionmsg.MapReach
	if max(m.X*side-at.X, at.X-m.X*side, m.Z*side-at.Z, at.Z-m.Z*side) > reach {
		return &wire.Error{Code: wire.FailBadValue, Message: fmt.Sprintf("request tiles of the map at most %d tiles away", sessionmsg.MapReach)}
	}
	return nil
}

// survey answers a question about the surroundings in the background, one at a time; with none if players are shown no map.
func (s *session) survey(none sessionmsg.FromServer, answer func(context.Context) sessionmsg.FromServer) error {
	if !s.g.hasMap() {
		s.out.Send(none)
		return nil
	}
	if !s.surveying.CompareAndSwap(false, true) {
		return &wire.Error{Code: wire.FailRate, Message: "wait for the answer to your last nearby, people or map message"}
	}
	s.g.run(func(ctx context.Context) {
		defer s.g.metrics.panics.Recover("query", func() { s.out.End(failureOf(errPanicked)) }, "player", s.body.Name)
		if s.limits.survey.Wait(ctx) == nil {
			it := answer(ctx)
			s.surveying.Store(false)
			s.out.Send(it)
		}
	})
	return nil
}

// move applies a move if the rules allow it, else corrects the client.
func (s *session) move(pose motion.Pose) error {
	if !s.limits.move.Allow() {
		return &wire.Error{Code: wire.FailRate, Message: fmt.Sprintf("send at most %d moves a second", movesPerSecond)}
	}
	if !s.walk.arrived(pose) {
		if s.walk.reminds(s.g.now()) {
			s.out.Send(sessionmsg.Correction{Pose: *s.walk.teleport, Reason: teleported})
		}
		return nil
	}
	last := s.place.pose()
	if bringInside(s, last) {
		return nil
	}
	before := *s.motion
	ok, reason := s.motion.Check(s.g.now(), pose.X, pose.Y, pose.Z, pose.Yaw, pose.Pitch)
	switch {
	case !ok:
	case s.land().Blocked(last, pose):
		ok, reason = false, insideBlock
		*s.motion = before // a refused move costs nothing
	case s.permissions.Keeps(last.Block(), pose.Block()):
		ok, reason = false, wire.RefusedClaimed
		*s.motion = before
	}
	if ok && !s.permissions.MayGo(last, pose) {
		ok, reason = false, wire.RefusedOutsideBorder
		*s.motion = before
	}
	if !ok {
		s.g.metrics.corrections.WithLabelValues(reason).Inc()
		s.out.Send(sessionmsg.Correction{Pose: last, Reason: reason})
		s.bodySub.EndPrediction(s.body.Player, s)
		return nil
	}
	s.goTo(last, pose)
	return nil
}

// goTo moves the player from one pose to the next.
func (s *session) goTo(last, pose motion.Pose) {
	was := last.Chunk()
	if !s.place.moveTo(pose) {
		return // the player goes on from here at another gateway
	}
	at := pose.Chunk()
	if !s.bodySub.Covers(at) {
		s.bodySub.Leave(s.body.Player, s)
		body := s.body
		body.Pose, body.Said = pose, s.clock.Done()
		body.Gateway = s.g.p2p.GatewayID()
		s.bodySub = s.g.mirror.Enter(body, s)
		s.bodySubShared.Store(s.bodySub)
	} else if at != was || !s.g.p2p.Carries(avatar{s}) {
		if s.bodySub.Move(s.body.Player, pose, s, at == was && s.alone.Load()) {
			s.flush(s.bodySub)
		}
	}
	if at != was {
		s.updateView()
	}
	s.walk.predictBorder(last, pose)
}

// teleported is the reason of a correction by which a player is brought elsewhere.
const teleported = "teleported"

// A client that was brought elsewhere has arrived once it says that it is within arrivedWithin blocks of there. It has sent the moves before
// that one without knowing of the teleport: they are ignored, and the client is told again every remindEvery.
const (
	arrivedWithin = 5 // a slow page moves by four in one frame
	remindEvery   = 2 * time.Second
)

// teleport brings a session's player to a place in the world, and leaves them their angles.
func teleport(s *session, to motion.Pose) {
	last := s.place.pose()
	to.Yaw, to.Pitch = last.Yaw, last.Pitch
	to.Y = min(max(to.Y, 0), float64(s.g.World.Height()))
	s.walk.teleport, s.walk.toldTeleport = &to, s.g.now()
	s.motion = player.NewMotion(s.g.rules, s.g.now(), to.X, to.Y, to.Z)
	s.out.Send(sessionmsg.Correction{Pose: to, Reason: teleported})
	s.bodySub.EndPrediction(s.body.Player, s)
	s.goTo(last, to)
}

// bringInside brings a player back who is outside of the border of the world, and reports whether they were: to the lowest free place in the column of
// blocks that is not below them, or to the top of the world if that land is not known here.
func bringInside(s *session, at motion.Pose) bool {
	to, outside := s.permissions.BringInside(at)
	if !outside {
		return false
	}
	feet := to.Block()
	to.X, to.Z = float64(feet.X)+.5, float64(feet.Z)+.5
	known := false
	if sub := s.subs[feet.Chunk()]; sub != nil {
		_, known = sub.Block(grid.Pos{X: feet.X, Z: feet.Z})
	}
	if to.Y = max(math.Floor(at.Y), 0); !known {
		to.Y = float64(s.g.World.Height())
	}
	for land := s.land(); !land.Free([3]float64{to.X, to.Y, to.Z}); to.Y++ { // above the world it is
	}
	teleport(s, to)
	return true
}

// arrived reports whether the client is where the player was last brought, or has been there since. If so, the teleport is over.
func (w *walkState) arrived(pose motion.Pose) bool {
	to := w.teleport
	if to != nil && max(math.Abs(pose.X-to.X), math.Abs(pose.Y-to.Y), math.Abs(pose.Z-to.Z)) > arrivedWithin {
		return false
	}
	w.teleport = nil
	return true
}

// reminds reports whether the client is to be told again where the player was brought: it has had the time to arrive.
func (w *walkState) reminds(now time.Duration) bool {
	if now-w.toldTeleport < remindEvery {
		return false
	}
	w.toldTeleport = now
	return true
}

// insideBlock is the reason of a correction: the path leads into solid blocks. Clients receive it (docs/protocol.md): never change it.
const insideBlock = "inside_block"

// updateView watches the chunks around the player, nearest first, and unwatches those more than one chunk beyond the view
// distance, so that a walk to and fro costs nothing. Those for which the player's address has no room are left out, or taken out.
func (s *session) updateView() {
	at, view := s.place.pose().Chunk(), int(s.view.chunks.Load())
	s.permissions.Surround(at, view)
	for pos := range s.subs {
		if pos.Distance(at) > int64(view)+1 {
			s.unwatch(pos)
		}
	}
	if s.limits.client.SeesTooMuch() {
		s.narrowView(at)
	}
	var missing []grid.ChunkPos
	for x := -view; x <= view; x++ {
		for z := -view; z <= view; z++ {
			pos := grid.ChunkPos{X: at.X + int32(x), Z: at.Z + int32(z)}
			if s.subs[pos] == nil && pos.Valid() {
				missing = append(missing, pos)
			}
		}
	}
	slices.SortFunc(missing, func(a, b grid.ChunkPos) int {
		return cmp.Or(cmp.Compare(squaredDistance(a, at), squaredDistance(b, at)), a.Compare(b))
	})
	short := false
	for _, pos := range missing {
		reach := admission.Near
		if pos.Distance(at) > admission.NearView {
			reach = admission.Far
		}
		if !s.limits.client.Hold(pos, reach) {
			short = true
			continue
		}
		s.subs[pos] = s.g.mirror.Watch(pos, s)
	}
	if short && !s.view.short {
		s.limits.client.NoteRefusedLand()
	}
	if s.view.short = short; short && !s.view.explained {
		s.view.explained = true
		s.out.Send(shortView)
	}
}

// unwatch takes a chunk out of view.
func (s *session) unwatch(pos grid.ChunkPos) {
	s.subs[pos].Unwatch(pos, s)
	s.limits.client.Release(pos, admission.Near)
	delete(s.subs, pos)
	s.client.chunks.Remove(pos)
	s.out.RemoveChunk(pos)
}

// narrowView takes the farthest chunks out of view that no other player of the address sees, until the address sees no more than it may.
func (s *session) narrowView(at grid.ChunkPos) {
	farthest := slices.SortedFunc(maps.Keys(s.subs), func(a, b grid.ChunkPos) int {
		return cmp.Or(cmp.Compare(squaredDistance(b, at), squaredDistance(a, at)), a.Compare(b))
	})
	for _, pos := range farthest {
		if !s.limits.client.SeesTooMuch() {
			return
		}
		if pos.Distance(at) > admission.NearView+1 && s.limits.client.SeesAlone(pos) {
			s.unwatch(pos)
		}
	}
}

// shortView is sent once to a player who sees less than they want.
var shortView = sessionmsg.Notice{Code: "short_view", Text: fmt.Sprintf("Players from your address are far apart, so you may see only the "+
	"land within %d blocks. Stay closer together to see farther.", admission.NearView*grid.ChunkSize)}

// squaredDistance returns the squared distance of two chunks.
func squaredDistance(a, b grid.ChunkPos) int64 {
	dx, dz := int64(a.X)-int64(b.X), int64(a.Z)-int64(b.Z)
	return dx*dx + dz*dz
}

// firstSeq is the first edit sequence of a session: the microseconds since 1970, so that a player's sequences grow from session
// to session without a stored counter (docs/adr/0006).
func firstSeq(now time.Time) uint64 { return uint64(now.UnixMicro()) }

// seqAhead is how far an edit's sequence may be ahead of this gateway's clock. A player who reached the largest sequence could
// never edit again.
const seqAhead = 10 * time.Minute

// guestAhead is the same for guests. All of a name have one id, and a region remembers the 64 largest sequences of an id: with more time,
// the edits of one of them at their usual rate would make those of the others look too old.
const guestAhead = time.Second

// guestSeq returns the sequence of a guest's edit that the client has numbered: that number, unless it is ahead of the clock.
func (s *session) guestSeq(number uint64, now time.Time) uint64 {
	if number <= firstSeq(now.Add(guestAhead)) {
		return number
	}
	if seq, waits := s.edits.requested(number); waits {
		return seq
	}
	s.numbered = max(s.numbered+1, firstSeq(now))
	return s.numbered
}

// edit requests a block change, or refuses it at once.
func (s *session) edit(e sessionmsg.Edit) {
	if s.edits.closed() {
		return // the client sends it again at its new node
	}
	pos := grid.Pos{X: e.X, Y: e.Y, Z: e.Z}
	there, refused := s.checkEdit(pos, chunk.Block(e.Block))
	if refused == "" && e.Text != "" {
		refused = s.permissions.RefuseText(e)
	}
	if refused == "" && e.Seq > firstSeq(s.g.wall().Add(seqAhead)) {
		refused = wire.RefusedStale
	}
	if refused != "" && s.place.detached() {
		return // likewise: the player's moves do not count here any more, nor does their reach
	}
	if refused != "" {
		s.g.metrics.refusals.WithLabelValues(refused).Inc()
		s.out.Send(sessionmsg.Ack{Seq: e.Seq, Block: uint16(there), Error: refused})
		return
	}
	seq := e.Seq
	if s.body.Guest {
		seq = s.guestSeq(seq, s.g.wall())
	}
	if !s.edits.add(seq, e.Seq) {
		return // held since
	}
	s.permissions.NoteEdit(chunk.Block(e.Block) == chunk.Air)
	intent := nodemsg.Intent{Player: s.body.Player, Seq: seq, Pos: pos, Block: chunk.Block(e.Block), Text: e.Text, Proof: s.proof}
	hex.Decode(intent.Signature[:], []byte(e.Signature)) //nolint:errcheck // it was checked when it was decoded
	s.subs[pos.Chunk()].Edit(intent, s)
}

// checkEdit returns the block at the position, and why the player may not place the given one there.
func (s *session) checkEdit(pos grid.Pos, block chunk.Block) (there chunk.Block, refused string) {
	if pos.Y < 0 || pos.Y >= s.g.World.Height() || !pos.Chunk().Valid() {
		return chunk.Air, wire.RefusedOutOfWorld
	}
	sub := s.subs[pos.Chunk()]
	if sub == nil {
		return chunk.Air, wire.RefusedNotLoaded
	}
	there, loaded := sub.Block(pos)
	pose, forbidden, refused := s.place.pose(), s.permissions.RefuseEdit(pos), checks.BlockChange(there, block)
	switch {
	case !loaded:
		return there, wire.RefusedNotLoaded
	case forbidden != "":
		return there, forbidden
	case refused != "":
		return there, refused
	case !s.g.rules.InReach(pose.X, pose.Y+player.EyeHeight, pose.Z, pos):
		return there, wire.RefusedOutOfReach
	case block.Solid() && s.subs.occupied(pos, pose, s.body.Player):
		return there, wire.RefusedInsidePlayer
	case !s.limits.edit.Allow() || !s.limits.client.Allow(admission.Edit):
		return there, wire.RefusedRate
	}
	return there, ""
}

// chat sends a chat message to everybody who sees the player.
func (s *session) chat(text string) error {
	if !s.limits.chat.Allow() {
		return s.permissions.TooFast()
	}
	if why := s.permissions.Mute(); why != "" {
		s.sendText(why)
	} else if !s.sendEvent(text, nil) {
		s.sendText("The land here cannot be reached at the moment; that line was not sent.")
	}
	return nil
}

// After anything but moves and pings the session reads by itself for actedFor, since more of the same is likely and must not wait for the
// poller's rounds. It also does so where chunks are about to be requested: if the next foresight moves are like the last one,
// they lead to another chunk.
const (
	actedFor  = 5 * time.Second
	foresight = 2
)

// park lets the poller read until a message arrives that the session must handle.
func (s *session) park() {
	stream, ok := s.conn.(*streamConn)
	if !ok || stream.in.Buffered() > 0 {
		return
	}
	s.walk.parked = true
	possible := s.g.poller.Park(stream.detached(), stream.split, s.handleParked)
	if s.walk.parked = false; !possible {
		s.walk.lastAction = s.g.now() // it is tried again later
	}
}

// handleParked is the park.Handler of a session: it applies a move within the chunk, and leaves everything else to listen, also what
// makes it panic: there it ends this session only.
func (s *session) handleParked(data []byte) (taken, stay bool) {
	defer func() {
		if recover() != nil {
			taken, stay = false, false
		}
	}()
	if !s.codec.IsMove(data) {
		return false, false
	}
	pose, err := sessionmsg.DecodeMove(data)
	if err != nil || pose.Chunk() != s.place.pose().Chunk() {
		return false, false
	}
	if s.move(pose) != nil {
		return false, false
	}
	s.countMessage(data)
	return true, !s.walk.nearBorder
}

// predictBorder checks where a player will be who goes on as from one pose to the next.
func (w *walkState) predictBorder(last, pose motion.Pose) {
	ahead := pose
	ahead.X += foresight * (pose.X - last.X)
	ahead.Z += foresight * (pose.Z - last.Z)
	w.nearBorder = ahead.Chunk() != pose.Chunk()
}

// flush flushes a subscription's message to its region.
func (s *session) flush(sub *mirror.Subscription) {
	if s.walk.parked {
		s.g.poller.FlushAfterRound(sub)
	} else {
		sub.Wake()
	}
}
