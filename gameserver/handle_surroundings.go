package gameserver

import (
	"context"
	"fmt"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file answers a client's questions about the surroundings.

func (s *session) handleNearby() error {
	at := s.place.pose().Chunk()
	return s.survey(sessionmsg.Nearby{}, func(ctx context.Context) sessionmsg.FromServer { return s.g.surroundings.Nearby(ctx, at) })
}

func (s *session) handlePeople() error {
	return s.survey(sessionmsg.People{}, func(ctx context.Context) sessionmsg.FromServer { return s.g.surroundings.People(ctx) })
}

func (s *session) handleMap(m sessionmsg.MapRequest) error {
	if err := checkTile(m, s.place.pose().Chunk()); err != nil {
		return err
	}
	return s.survey(sessionmsg.MapTile{X: m.X, Z: m.Z}, func(ctx context.Context) sessionmsg.FromServer { return s.g.surroundings.Tile(ctx, m.X, m.Z) })
}

// survey answers a question about the surroundings in the background, one at a time; with none if players are shown no
// map.
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

// checkTile returns an error if a player in the chunk may not request the tile of the map.
func checkTile(m sessionmsg.MapRequest, at grid.ChunkPos) error {
	const side, reach = sessionmsg.MapTileChunks, sessionmsg.MapTileChunks * sessionmsg.MapReach
	if max(m.X*side-at.X, at.X-m.X*side, m.Z*side-at.Z, at.Z-m.Z*side) > reach {
		return &wire.Error{Code: wire.FailBadValue, Message: fmt.Sprintf("request tiles of the map at most %d tiles away", sessionmsg.MapReach)}
	}
	return nil
}
