package services

import (
	"context"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/chat"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

type chatRequest struct {
	Text string `json:"text"`
}

type chatAnswer struct {
	ID   string `json:"id"`
	AtMS int64  `json:"at_ms"`
}

// postChat shows a line to all players of the world.
func (s *Server) postChat(c *call) (any, error) {
	request, err := decode[chatRequest](c)
	if err != nil {
		return nil, err
	}
	if err := wire.CheckChat(request.Text); err != nil {
		return nil, badRequest("%v", err)
	}
	muted := false
	now := s.Wall()
	s.Policy(func(p *policy.State) {
		muted = p.Judge(policy.Subject{Player: c.service.ID, Name: c.service.Name}, now).Mute != nil
	})
	if muted {
		return nil, &Error{errOutside.status, "muted", "this service is muted"}
	}
	if !c.author.lines.Allow() || !s.lines.Allow() {
		return nil, errRate
	}
	nobody := func(vclock.ID) bool { return false }
	number := c.author.nextLine(uint64(now.UnixMilli())) //nolint:gosec // after 1970
	stamp, err := chat.NewClock(c.service.ID, number-1).NextStamp(0, nobody).Append(nil)
	if err != nil {
		return nil, err
	}
	line := nodemsg.WorldLine{Player: c.service.ID, Name: c.service.Name, Text: request.Text, Wall: now.UnixMilli(), Stamp: stamp}
	s.Say(line)
	return chatAnswer{lineID(line.Event()), line.Wall}, nil
}

// rosterFor is how long the names of players count that other nodes have sent.
const rosterFor = 2 * time.Second

// roster is the names of the players of the world as of a moment ago.
type roster struct {
	mu struct {
		sync.Mutex // also held while the other nodes are asked: a second at most
		names      []string
		players    uint64
		at         time.Time
	}
}

// get returns the names, and how many players there are. The caller must not change the names.
func (r *roster) get(ctx context.Context, ask func(context.Context) ([]string, uint64)) ([]string, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.mu.at) > rosterFor {
		r.mu.names, r.mu.players = ask(context.WithoutCancel(ctx)) // also for those who wait for the lock
		r.mu.at = time.Now()
	}
	return r.mu.names, r.mu.players
}
