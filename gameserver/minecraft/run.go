package minecraft

import (
	"context"
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// askEvery is how often the client is asked whether it is there, and answerWithin how long it may take to answer,
	// or to begin to play.
	askEvery, answerWithin = 10 * time.Second, 30 * time.Second
	// timeEvery is how often the client is sent the time of day. In between it goes on by itself, at the pace of
	// gameDay; in worlds with another day it does not, and is sent the time more often.
	timeEvery, otherTimeEvery = 10 * time.Second, 200 * time.Millisecond
	gameDay                   = 20 * time.Minute
)

// Tick sends what time brings.
func (cl *Client) Tick(now time.Time) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.state == isOver {
		return cl.mu.out.Flush()
	}
	if now.Sub(cl.mu.alive.answered) > answerWithin {
		cl.end("Your client did not answer for too long.")
		if err := cl.mu.out.Flush(); err != nil {
			return err
		}
		return context.DeadlineExceeded
	}
	if cl.mu.state == inPlay {
		if now.Sub(cl.mu.alive.asked) >= askEvery {
			cl.mu.alive.asked = now
			cl.put(begin(packetKeepAlive).i64(now.UnixMilli()))
		}
		cl.mu.avatars.move(now, cl.put)
		every, ticks := timeEvery, ticksOfDay(&cl.mu.welcome, now.Sub(cl.mu.since))
		if cl.mu.welcome.DayMS != gameDay.Milliseconds() {
			every, ticks = otherTimeEvery, -max(ticks, 1) // negative: it stands still in between
		}
		if now.Sub(cl.mu.timed) >= every {
			cl.mu.timed = now
			cl.put(begin(packetTime).i64(0).i64(ticks))
		}
	}
	return cl.mu.out.Flush()
}

const (
	dayTicks = 24000
	sunrise  = .25 // when the client's day begins
)

// ticksOfDay returns the time of day in the client's ticks since sunrise, some time after a welcome.
func ticksOfDay(w *sessionmsg.Welcome, after time.Duration) int64 {
	_, day := math.Modf(games.Days(w, after) + 1 - sunrise)
	return int64(day * dayTicks)
}
