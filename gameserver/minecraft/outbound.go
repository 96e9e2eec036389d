package minecraft

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file makes packets of what the session sends. The writer runs it, and the reader when the client begins to play.

// flySpeed keeps a player who sprints in the air below the gateway's speed limit: 19.6 blocks/s. The game's own is
// 0.05.
const flySpeed = .045

// SendTick shows a tick frame.
func (cl *Client) SendTick(frame []byte) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.state == isOver {
		return nil
	}
	return cl.mu.avatars.Read(frame)
}

// Send translates a message of the session.
func (cl *Client) Send(m sessionmsg.FromServer) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.state == isOver {
		return nil
	}
	switch m := m.(type) {
	case sessionmsg.Welcome:
		return cl.enter(m)
	case sessionmsg.ChunkData:
		cl.mu.lands[m.Chunk] = newLand(m.Data)
		return cl.showChunk(m.Chunk)
	case sessionmsg.Signs:
		writeSigns(cl, m)
	case sessionmsg.ChunkGone:
		cl.hideChunk(m.Chunk)
	case sessionmsg.Ack:
		cl.answer(m)
	case sessionmsg.Correction:
		cl.place(m.Pose)
	case sessionmsg.Notice:
		cl.notice(m.Text)
	case sessionmsg.Failure:
		cl.end(m.Message)
	}
	return nil
}

// enter lets the client log in, or puts one that plays into another session.
func (cl *Client) enter(m sessionmsg.Welcome) error {
	id, err := cl.mu.avatars.Begin(m)
	if err != nil {
		return err
	}
	if math.Abs(m.Pose.X) > maxAcross || math.Abs(m.Pose.Z) > maxAcross {
		cl.end("You are farther out than Minecraft can go. Come back with a browser first.")
		return nil
	}
	now := time.Now()
	cl.mu.welcome, cl.mu.since = m, now
	cl.mu.player.Begin(m.Pose, now)
	cl.mu.requests.begin(m.NextSeq, now)
	cl.mu.stance = games.Stance{}
	if cl.mu.state == inPlay {
		for at := range cl.mu.lands {
			cl.hideChunk(at)
		}
		self := cl.mu.avatars.self // who they are to their client
		cl.mu.avatars.unlist(self, cl.put)
		cl.mu.avatars.list(self, m.Name, cl.put)
		cl.place(m.Pose)
		return nil
	}
	cl.mu.avatars.self = id
	cl.put(begin(packetCompress).varint(compressFrom))
	cl.mu.compressed = true
	cl.put(append(begin(packetLoginSuccess), id[:]...).text(m.Name).varint(0))
	return nil
}

// configure sends the client the registries of the world.
func (cl *Client) configure() {
	cl.mu.state = inConfiguration
	for _, p := range configure(cl.height()) {
		cl.put(p)
	}
}

// play lets the client play, with all that the session has sent before.
func (cl *Client) play(now time.Time) error {
	cl.mu.state, cl.mu.alive.answered = inPlay, now
	w := &cl.mu.welcome
	view := across * (w.View + 1) // sessions keep chunks up to one beyond the view distance
	cl.put(begin(packetLogin).i32(selfEntity).u8(0).varint(1).text(dimension).varint(0).varint(view).varint(view).
		u8(0, 0, 0). // all of F3, no screen after a death, all recipes
		text(dimension).text(dimension).i64(0).u8(gameModeCreative, 0xff).u8(0, 0).u8(0).varint(0))
	cl.put(begin(packetAbilities).u8(abilityCreative).f32(flySpeed).f32(.1))
	cl.put(begin(packetHealth).f32(20).varint(20).f32(5))
	cl.mu.hands.fill(cl.put)
	cl.put(begin(packetSpawnPoint).position(cl.mu.player.Pose.Block()).f32(0))
	cl.mu.avatars.list(cl.mu.avatars.self, w.Name, cl.put)
	cl.mu.centre = columnOf(cl.mu.player.Pose)
	cl.putCentre()
	cl.place(cl.mu.player.Pose)
	for _, text := range cl.mu.early {
		cl.say(text)
	}
	cl.mu.early = nil
	if err := cl.mu.out.Flush(); err != nil {
		return err
	}
	err := cl.showAll()
	cl.mu.alive.answered = time.Now() // on a slow line that took long
	return err
}

// place puts the client where the player is.
func (cl *Client) place(at motion.Pose) {
	cl.mu.player.Pose = at
	if cl.mu.state != inPlay {
		return
	}
	cl.centre()
	cl.mu.teleport = teleport{number: (cl.mu.teleport.number + 1) & math.MaxInt32, pending: true}
	cl.put(begin(packetTeleport).f64(at.X, at.Y, at.Z).f32(degrees(at.Yaw)).f32(degrees(-at.Pitch)).u8(0).varint(cl.mu.teleport.number))
}

func degrees(radians float32) float32 { return float32(float64(radians) * 180 / math.Pi) }

// showDelta shows the changes of a chunk, except motion.
func (cl *Client) showDelta(n *sessionmsg.TickDelta) {
	if l := cl.mu.lands[n.Chunk]; l != nil {
		for _, b := range n.Blocks {
			l.Set(b.At, b.Block)
		}
		blocks := cl.mu.lands.blocks()
		for _, b := range n.Blocks {
			cl.change(b.At.Pos(n.Chunk), b.Block, blocks)
			changeSign(cl, l, b.At.Pos(n.Chunk), b.Block)
		}
	}
	for _, u := range n.Chat {
		if text, ok := games.Emote(u); ok {
			cl.say(textOf(text, ""))
			continue
		}
		cl.say(component{Extra: []component{textOf("<"+u.Name+"> ", "aqua"), textOf(u.Text, "")}})
	}
}
