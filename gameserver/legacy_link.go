package gameserver

import (
	"bufio"
	"context"
	"net"
	"sync"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/legacy"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// This file connects the gateway with package legacy, which serves original clients.

func (g *Gateway) legacyOptions() legacy.Options {
	return legacy.Options{
		World: g.World, Peer: g.Peer, Rules: g.rules, Burst: editsAtOnce,
		Permissions: legacy.Permissions{
			Admit: g.enforcer.AdmitOriginal, Registered: g.enforcer.Registered,
			RefuseEdit: g.enforcer.RefuseOriginal, Keeps: g.enforcer.KeepsOriginal, MayGo: g.enforcer.MayGoOriginal, Inside: g.enforcer.Inside,
			Edits:  func() rate.Limit { return g.enforcer.EditsOfGuests(g.settings.Load().Edits()) },
			Edited: func(by player.ID, block chunk.Block) { g.enforcer.NoteGuestsEdit(by, block == chunk.Air) },
		},
		Surface: g.Terrain.Surface, Spawn: g.spawnPose, Regions: g.Regions, Mirror: g.mirror, Players: g.players,
		Client: g.limits.Client, Reserve: g.reserve, Release: g.sessions.Release, SessionPose: g.sessionPose,
		Open: g.openLegacy, Connected: g.wakeFrameLoop, Now: g.now, Wall: g.wall,
		Corrections: g.metrics.corrections, Refusals: g.metrics.refusals, Logger: g.Logger, Registerer: g.Registerer,
	}
}

// reserve reserves an original client's player, unless a player here has the id.
func (g *Gateway) reserve(id player.ID) bool {
	if !g.sessions.Reserve(id) {
		return false
	}
	g.metrics.joins.WithLabelValues("joined_original").Inc()
	return true
}

// sessionPose returns where a player with a session is, and reports whether there is one.
func (g *Gateway) sessionPose(id player.ID) (pose motion.Pose, here bool) {
	s := g.sessions.Of(id)
	if s == nil || !s.place.taken() {
		return pose, false
	}
	return s.place.pose(), true
}

// legacyLink is a legacy.Link: a connection with its writer.
type legacyLink struct {
	resetConn
	out     *outbox.Outbox
	metrics *metrics
	writer  sync.WaitGroup
}

func (g *Gateway) openLegacy(c net.Conn, in *bufio.Reader, owner mirror.Subscriber) legacy.Link {
	l := &legacyLink{resetConn: resetConn{streamConn{Conn: c, in: in, framing: packets{}}}, metrics: g.metrics}
	ctx, stop := context.WithCancel(context.Background())
	l.out = outbox.New(func() { stop(); l.cut() })
	l.out.Owner, l.out.Mute = owner, true
	l.writer.Go(func() {
		defer stop()
		g.runWriter(ctx, l.out, &l.resetConn)
	})
	return l
}

func (l *legacyLink) Read() ([]byte, error) {
	data, err := l.read()
	if err == nil {
		l.metrics.received(len(data))
	}
	return data, err
}

func (l *legacyLink) Ready() bool                 { return l.ready() }
func (l *legacyLink) Put(packet []byte)           { l.out.Put(packet) }
func (l *legacyLink) Behind(c *mirror.Chunk) bool { return l.out.Behind(c) }

// End resets the connection: the protocol cannot send a reason. The client queries dht again.
func (l *legacyLink) End() { l.out.End(nil) }

func (l *legacyLink) Wait() {
	l.writer.Wait()
	l.cut()
}
