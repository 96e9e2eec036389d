package gameserver

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/chat"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/gameserver/sessions"
	"github.com/voxelpopuli/voxeld/internal/netaddr"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file runs a session: handshake, arrival and end.

// serveSession runs a session, from its Join to its end. Join is nil if it has not been read yet.
func (g *Gateway) serveSession(ctx context.Context, c conn, join *sessionmsg.Join) {
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()
	s := &session{
		g: g, conn: c, out: outbox.New(func() { stopWriting(); c.cut() }), codec: codec.JSON,
		subs: make(subscriptions), limits: newActionLimits(g.settings.Load().Edits(), g.limits.Client(c.remote())),
		done: make(chan struct{}),
	}
	s.out.Owner = s
	if stream, ok := c.(*streamConn); ok {
		s.client.chunks.On, s.client.looks, s.body.Skin = stream.page.chunkHashes, stream.page.looks, stream.page.skin
		if socket := stream.webSocket(); socket != nil {
			socket.wake = s.out.Wake
		}
	}
	if _, adapted := c.(adaptedConn); adapted {
		s.out.Pace = int(games.TickEvery / region.TickEvery)
		s.client.looks = codec.Looks{Skins: true, Stances: true} // as pages, so that frames are encoded once
	}
	s.silenceTimer = time.AfterFunc(wire.HandshakeTimeout, func() { s.out.End(failureOf(errSilent)) })
	defer s.silenceTimer.Stop()
	var writer sync.WaitGroup
	writer.Go(func() { g.runWriter(writing, s.out, c) })
	if join != nil {
		s.setCodec(codec.Of(join.Encoding, s.client.looks))
	}
	stop := context.AfterFunc(ctx, func() { s.out.End(stoppingFailure()) })
	defer stop()
	err := errPanicked
	defer func() { // even if it panics
		if s.motion == nil { // they have not arrived
			g.metrics.noteRefusedJoin(err)
		}
		s.out.End(failureOf(err))
		writer.Wait()
		if !isClosed(err) {
			g.Logger.Info("session ended", "player", s.body.Name, "remote", c.remote().String(), "error", err)
		}
	}()
	err = s.serve(ctx, join)
}

// errPanicked is the error of a session that did not return one.
var errPanicked = errors.New("a panic")

// errSilent ends the session of a silent client.
var errSilent = &wire.Error{Code: wire.FailTimeout, Message: "no message arrived from you for too long"}

func stoppingFailure() sessionmsg.FromServer {
	return sessionmsg.Failure{Code: wire.FailShuttingDown, Message: "The server is stopping. Everything that was confirmed is saved."}
}

// failureOf returns the last message for a client whose session ends with the error; nil when the client is gone.
func failureOf(err error) sessionmsg.FromServer {
	if away, ok := errors.AsType[*redirectError](err); ok {
		return away.message
	}
	if refused, ok := errors.AsType[*wire.Error](err); ok {
		return sessionmsg.FailureOf(refused)
	}
	if isClosed(err) {
		return nil
	}
	return sessionmsg.Failure{Code: wire.FailInternal, Message: "Internal server error. Try again, or contact the operator."}
}

func (s *session) serve(ctx context.Context, opening *sessionmsg.Join) error {
	if opening == nil {
		join, err := expect[sessionmsg.Join](s, "open the session with a join message")
		if err != nil {
			return err
		}
		opening = &join
		s.setCodec(codec.Of(join.Encoding, s.client.looks))
	}
	join := *opening
	if s.g.shuttingDown() {
		return s.g.refuseJoin(ctx, gameOf(s.conn))
	}
	if !s.limits.client.Allow(admission.Join) {
		return &wire.Error{Code: wire.FailRate, Message: "Too many players are joining from your address. Try again in a few seconds."}
	}
	if err := s.admit(join); err != nil {
		return err
	}
	s.silenceTimer.Reset(silence)
	if err := s.replaceOlder(ctx); err != nil {
		return err
	}
	defer s.leave()
	if err := s.permissions.Judge(); err != nil { // what changed before the session had its place, judgePlayers has missed
		return err
	}
	s.limits.edit.SetLimit(s.editRate())
	s.g.metrics.sessions.Inc()
	defer s.g.metrics.sessions.Dec()

	record, known, err := s.g.players.Load(ctx, s.body.Player)
	if err != nil {
		return s.g.refuseUnread(ctx, gameOf(s.conn), err)
	}
	if err := s.checkPassword(record.Verifier); err != nil {
		return err
	}
	if s.verifier = record.Verifier; !known { // the name is theirs from now on, if they have chosen a password
		s.verifier = verifierOf(s.conn)
	}
	if s.login != nil && record.Login != nil && record.Login.At >= s.login.At { // the clocks of gateways differ
		if err := s.challenge(s.login.Key[:], record.Login.At+1); err != nil {
			return err
		}
		s.silenceTimer.Reset(silence)
	}
	s.g.players.NoteLoaded(record)
	pose := record.Pose
	if !known {
		pose = s.g.newcomers.Pose(ctx, s.g.spawnPose())
	} else if record.Home != nil {
		s.place.setHome(*record.Home)
	}
	s.clock = chat.NewClock(s.body.Player, chat.CountFrom(record, s.g.wall()))
	s.worldClock = chat.NewClock(s.body.Player, s.clock.Done())
	s.place.setEvents(s.clock.Done()) // not read before the player has a place
	if !s.place.moveTo(pose) {
		return outbox.ErrEnded // the player was redirected before they arrived
	}
	s.motion = player.NewMotion(s.g.rules, s.g.now(), pose.X, pose.Y, pose.Z)
	s.view.set(s.g.viewOf(join.View), s.g.now())
	s.g.metrics.joins.WithLabelValues("joined").Inc()
	s.out.Send(s.welcome())
	s.permissions.Greet()
	s.g.world.greet(s)
	if login := s.login; login != nil {
		s.g.run(func(ctx context.Context) {
			if err := s.permissions.SeenAt(ctx, s.g.Peer, *login); err != nil {
				s.g.Logger.Info("name or claim not confirmed", "player", s.body.Name, "error", err)
			}
		})
	}
	s.g.Logger.Info("player joined", "player", s.body.Name, "id", s.body.Player.String(),
		"remote", s.conn.remote().String(), "address", netaddr.Text(netaddr.ChargedFrom(s.conn.remote())))
	s.mayBeRecalled = true
	s.arrive()
	return s.listen()
}

// receive waits for the client's next message.
func (s *session) receive() (sessionmsg.FromClient, error) {
	data, err := s.conn.read()
	if err != nil {
		return nil, err
	}
	s.g.metrics.received(len(data))
	return s.codec.Decode(data)
}

// expect receives a message of one type, or refuses with the hint.
func expect[M sessionmsg.FromClient](s *session, hint string) (M, error) {
	msg, err := s.receive()
	if err != nil {
		return *new(M), err
	}
	m, ok := msg.(M)
	if !ok {
		return m, &wire.Error{Code: wire.FailUnexpected, Message: hint}
	}
	return m, nil
}

// admit checks the Join, and sets the session's player: a guest, or the owner of a key.
func (s *session) admit(join sessionmsg.Join) error {
	s.client.version = join.Version
	s.body.Name = join.Name
	s.body.Guest, s.body.Player, s.proof.Name = true, player.GuestID(join.Name), join.Name
	var key ed25519.PublicKey
	if join.Key != "" {
		var err error
		if key, err = hex.DecodeString(join.Key); err != nil || len(key) != ed25519.PublicKeySize {
			return &wire.Error{Code: wire.FailBadKey, Message: "key: want the 64 hex digits of an Ed25519 public key"}
		}
		if err := s.challenge(key, s.g.wall().UnixMilli()); err != nil {
			return err
		}
		s.body.Guest, s.body.Player = false, player.IDOf(key)
		s.proof = nodemsg.Proof{Key: [ed25519.PublicKeySize]byte(key)}
	}
	permissions, err := s.g.enforcer.Admit(s.body.Player, join.Name, key, s.conn.remote(), func(m sessionmsg.FromServer) { s.out.Send(m) })
	if err == nil {
		s.permissions, s.body.Name = permissions, permissions.Name()
	}
	return err
}

// challenge makes the client prove that it owns the key. The proof says that they log in here, at a time in Unix milliseconds.
func (s *session) challenge(key ed25519.PublicKey, at int64) error {
	login := player.Login{Key: [ed25519.PublicKeySize]byte(key), At: at}
	rand.Read(login.Salt[:])
	s.silenceTimer.Reset(wire.HandshakeTimeout)
	s.out.Send(sessionmsg.Challenge{Nonce: login.Nonce(s.g.Peer), World: s.g.World.ID()})
	prove, err := expect[sessionmsg.Prove](s, "answer the challenge with a prove message")
	if err != nil {
		return err
	}
	signature, err := hex.DecodeString(prove.Signature)
	if err != nil || len(signature) != ed25519.SignatureSize {
		return &wire.Error{Code: wire.FailBadSignature, Message: "signature: want 128 hex digits"}
	}
	login.Signature = [ed25519.SignatureSize]byte(signature)
	if !login.Proves(s.g.Peer, s.g.World.ID()) {
		return &wire.Error{Code: wire.FailBadSignature, Message: "the signature does not match the key"}
	}
	s.login = &login
	return nil
}

// checkPassword refuses a guest whose name is kept with a password, unless their client has proved that it knows it. A
// nil verifier is that of no password.
func (s *session) checkPassword(v *player.Verifier) error {
	if proved := verifierOf(s.conn); v == nil || proved != nil && *proved == *v {
		return nil
	}
	return wire.Stop(wire.FailNameTaken, notice.New("taken_with_password",
		"a guest keeps the name {name} with a password: choose another name", s.body.Name))
}

// replaceOlder takes the player's place on this gateway. A session that held it is ended first. An error means that the
// place was not taken. A guest's name proves nothing: without a password, a guest is replaced only by one from the same
// address, as their own new connection.
func (s *session) replaceOlder(ctx context.Context) error {
	for {
		older, err := s.g.sessions.Take(s.body.Player, s)
		switch {
		case errors.Is(err, sessions.ErrClosed):
			return s.g.refuseJoin(ctx, gameOf(s.conn))
		case err != nil:
			return wire.Stop(wire.FailNameTaken, notice.New("taken_by_original",
				"a guest called {name} is playing, with VoxelPopuli's own client: choose another name", s.body.Name))
		case older == nil:
			s.g.wakeFrameLoop()
			return nil
		}
		if older.place.taken() && older.verifier != nil {
			if err := s.checkPassword(older.verifier); err != nil {
				return err
			}
		} else if s.body.Guest && !admission.SameAddress(older.conn.remote(), s.conn.remote()) {
			return wire.Stop(wire.FailNameTaken, notice.New("taken_by_guest",
				"a guest called {name} is playing, from another address: choose another name", s.body.Name))
		}
		older.out.End(sessionmsg.Failure{Code: wire.FailReplaced, Message: "You joined from somewhere else."})
		select {
		case <-older.done:
		case <-ctx.Done():
			return ctx.Err() // the last message is queued
		}
	}
}

func (s *session) welcome() sessionmsg.Welcome {
	g := s.g
	return sessionmsg.Welcome{
		Version: s.client.version,
		World:   g.World.ID(), WorldName: g.World.Name, Sections: g.World.Sections,
		Player: s.body.Player.String(), Name: s.body.Name, Guest: s.body.Guest,
		NextSeq: firstSeq(g.wall()),
		Pose:    s.place.pose(), View: int(s.view.chunks.Load()), Reach: g.rules.Reach,
		TickMS:    int(region.TickEvery.Milliseconds()),
		TimeOfDay: g.timeOfDay(), DayMS: g.World.DayLength().Milliseconds(),
		Gateway: g.Peer, URL: g.HTTP, ServerName: g.Version, Map: g.hasMap(), People: g.hasMap(), Stances: true, Signed: !s.body.Guest, Textures: g.enforcer.Settings().Textures,
	}
}

// arrive adds the body to the world and watches the chunks around it.
func (s *session) arrive() {
	body := s.body
	body.Pose, body.Said = s.place.pose(), s.clock.Done()
	body.Gateway = s.g.p2p.GatewayID()
	s.bodySub = s.g.mirror.Enter(body, s)
	s.bodySubShared.Store(s.bodySub)
	s.updateView()
}

// leave removes the player from the world and queues their record; then the place is free.
func (s *session) leave() {
	for pos, sub := range s.subs {
		sub.Unwatch(pos, s)
		s.limits.client.Release(pos, admission.Near)
	}
	if s.bodySub == nil { // they have not arrived
		s.g.players.Forget(s.body.Player)
	} else {
		s.bodySub.Leave(s.body.Player, s)
		if s.place.detach() {
			s.g.players.Save(s.presence())
		}
	}
	s.g.interest.remove(&s.interestView)
	s.g.sessions.Remove(s.body.Player)
	close(s.done)
}
