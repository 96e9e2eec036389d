package gameserver

import (
	"cmp"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file handles the client's messages. It runs in the session's reader, which is the poller while a session whose
// player only walks is parked.

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
		if err := s.recall(); err != nil {
			return err
		}
	}
	if s.codec.IsMove(data) {
		pose, err := sessionmsg.DecodeMove(data)
		if err != nil {
			return err
		}
		s.changeStance()
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

// dispatch handles a message of any kind.
func (s *session) dispatch(msg sessionmsg.FromClient) error {
	defer func() {
		if s.view.change(s.g.now()) {
			s.updateView()
		}
		s.changeStance()
	}()
	switch m := msg.(type) {
	case sessionmsg.Move:
		return s.move(m.Pose)
	case sessionmsg.Edit:
		s.handleEdit(m)
	case sessionmsg.Bulk:
		s.handleBulk(m)
	case sessionmsg.Chat:
		return s.handleChat(m)
	case sessionmsg.Command:
		return s.handleCommand(m)
	case sessionmsg.Hit:
		s.handleHit(m)
	case sessionmsg.Gift:
		s.handleGift(m)
	case sessionmsg.View:
		s.handleView(m)
	case sessionmsg.Stance:
		s.handleStance(m)
	case sessionmsg.ChunkRequest:
		s.handleChunkRequest(m)
	case sessionmsg.Ping:
		return s.handlePing(m)
	case sessionmsg.NearbyRequest:
		return s.handleNearby()
	case sessionmsg.PeopleRequest:
		return s.handlePeople()
	case sessionmsg.MapRequest:
		return s.handleMap(m)
	case sessionmsg.Join, sessionmsg.Prove:
		return &wire.Error{Code: wire.FailUnexpected, Message: "you have joined already"}
	}
	return nil
}

// recall brings a player to where they left, if the network did not know that when they came, and has said it since. It
// ends the session of a guest whose name another one turns out to keep.
func (s *session) recall() error {
	_, home, _ := s.place.saved()
	record, waits, err := s.g.players.TakeRecall(s.body.Player, home, s.checkPassword)
	if err != nil {
		return wire.Stop(wire.FailNameTaken, notice.New("taken_unchecked",
			"a guest keeps the name {name} with a password, which could not be checked when you came: come again if it is yours", s.body.Name))
	}
	s.mayBeRecalled = waits
	if record == nil {
		return nil
	}
	if record.Home != nil {
		s.place.setHome(*record.Home)
	}
	s.out.Send(sessionmsg.Notice(notice.New("recalled", "You are back where you left: it was not known when you joined.")))
	s.teleport(record.Pose)
	return nil
}

// After anything but moves and pings the session reads by itself for actedFor, since more of the same is likely and
// must not wait for the poller's rounds. It also does so where chunks are about to be requested: if the next foresight
// moves are like the last one, they lead to another chunk.
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

// handleParked is the park.Handler of a session: it applies a move within the chunk, and leaves everything else to
// listen, also what makes it panic: there it ends this session only.
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
