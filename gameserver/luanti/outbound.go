package luanti

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file makes packets of what the session sends. The writer runs it.

// SendTick shows a tick frame.
func (cl *Client) SendTick(frame []byte) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.ended {
		return nil
	}
	return cl.mu.avatars.Read(frame)
}

// Send translates a message of the session.
func (cl *Client) Send(m sessionmsg.FromServer) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.ended {
		return nil
	}
	switch m := m.(type) {
	case sessionmsg.Welcome:
		return cl.accept(m)
	case sessionmsg.ChunkData:
		cl.mu.lands[m.Chunk] = &land{Land: games.NewLand(m.Data), signs: make(map[chunk.Index]string)}
	case sessionmsg.Signs:
		return cl.writeSigns(m)
	case sessionmsg.ChunkGone:
		delete(cl.mu.lands, m.Chunk)
		cl.mu.avatars.Gone(m.Chunk)
	case sessionmsg.Ack:
		return cl.acknowledge(m)
	case sessionmsg.Correction:
		cl.mu.player.Pose = m.Pose
		cl.place(time.Now())
	case sessionmsg.Notice:
		cl.notice(m.Text)
	case sessionmsg.Failure:
		cl.end(m.Message)
	}
	return nil
}

// accept begins the session. The client asks for the definitions next.
func (cl *Client) accept(m sessionmsg.Welcome) error {
	if _, err := cl.mu.avatars.Begin(m); err != nil {
		return err
	}
	now := time.Now()
	again := cl.mu.welcome.Player != ""
	cl.mu.welcome, cl.mu.since = m, now
	cl.mu.player.Begin(m.Pose, now)
	cl.mu.edits.Begin(m.NextSeq, now)
	cl.mu.stance = games.Stance{}
	if slots, kept := cl.a.arranged.Get(m.Player); kept {
		cl.mu.slots = slices.Clone(slots)
	}
	if again {
		clear(cl.mu.lands)
		cl.put(inventory(cl.mu.slots))
		if !cl.mu.origin.bears(m.Pose) {
			cl.mu.origin = originNear(m.Pose) // what the client has is sent again
		}
		cl.place(now)
		return cl.mu.failed
	}
	cl.mu.origin = originNear(m.Pose)
	const interval = .09 // of what the client sends, in seconds; it does not care
	cl.put(begin(toAuthAccept).place(cl.mu.origin.place(m.Pose)).u64(0).f32(interval).u32(authSRP))
	return cl.mu.failed
}

// Parts of the screen.
const (
	hudHotbar, hudCrosshair, hudHand, hudMinimap = 1, 4, 8, 32
	hudAll                                       = 0x7f
)

// enter puts the client into the game, when it has loaded.
func (cl *Client) enter() {
	now := time.Now()
	cl.put(begin(toPrivileges).u16(4).text("interact").text("shout").text("fly").text("fast"))
	cl.put(inventoryForm(cl.mu.slots))
	cl.put(inventory(cl.mu.slots))
	cl.put(begin(toHP).u16(20))
	cl.put(begin(toHUDFlags).u32(hudHotbar | hudCrosshair | hudHand | hudMinimap).u32(hudAll))
	own := object(selfID, cl.mu.welcome.Name, cl.mu.origin.place(cl.mu.player.Pose), false)
	cl.put(objects(nil, []packet{own}))
	cl.place(now)
	cl.showTime(now)
	if cl.kept != "" && cl.kept == cl.mu.welcome.Name {
		cl.notice("The password of your game's menu keeps the name " + cl.kept + " for you, until you have been away for 30 days. " +
			"For claims and roles, and to sign what you build, type /register PASSWORD.")
		return
	}
	cl.notice("The password of your game's menu is not checked: anybody can play under your name until it is registered.")
}

// place puts the client where the player is.
func (cl *Client) place(now time.Time) {
	if !cl.mu.ready {
		return
	}
	cl.mu.player.Put(now)
	at := cl.mu.origin.place(cl.mu.player.Pose)
	cl.put(begin(toMovePlayer).place(at).f32(at.pitch, at.yaw))
}

// timeEvery is how often the client is told the time of day. It keeps the connection in use, too.
const timeEvery = 5 * time.Second

// showTime sends the client the time of day, if it is due.
func (cl *Client) showTime(now time.Time) {
	w := &cl.mu.welcome
	if now.Sub(cl.mu.clocked) < timeEvery || w.DayMS <= 0 {
		return
	}
	cl.mu.clocked = now
	const units, dayMS = 24000, 24 * 3600 * 1000
	at := uint16(int64(games.Days(w, now.Sub(cl.mu.since))*units) % units) //nolint:gosec // positive
	cl.put(begin(toTimeOfDay).u16(at).f32(dayMS / float64(w.DayMS)))
	// The client's own light of the sky sinks to 0.35 at dusk, and in the night to half of that.
	const dawn, dusk, light = 5125, units - 5125, 35 << 16 / 100
	cl.put(begin(toSkyLight).flag(at < dawn || at > dusk).u16(light))
}

// placeEvery is how often the place is shown.
const placeEvery = 500 * time.Millisecond

// showPlace shows the player's coordinates in the world, at the bottom right: those of the game differ.
func (cl *Client) showPlace(now time.Time) {
	if now.Sub(cl.mu.located) < placeEvery {
		return
	}
	cl.mu.located = now
	const element, isText, itsText, white = 0, 1, 3, 0xffffff
	at := cl.mu.player.Pose.Block()
	line, before := fmt.Sprintf("%d %d %d", at.X, at.Y, at.Z), cl.mu.line
	switch cl.mu.line = line; before {
	case line:
	case "":
		corner, scale, leftAndUp, away := []float64{1, 1}, []float64{100, 100}, []float64{-1, -1}, []float64{-10, -10}
		cl.put(begin(toHUDAdd).u32(element).u8(isText).f32(corner...).text("place").f32(scale...).text(line).
			u32(white).u32(0).u32(0).f32(leftAndUp...).f32(away...))
	default:
		cl.put(begin(toHUDChange).u32(element).u8(itsText).text(line))
	}
}

// sendNearest sends the nearest chunk that the client does not have, and reports whether there was one.
func (cl *Client) sendNearest() (bool, error) {
	at, found := cl.mu.lands.nearest(cl.mu.player.Pose.Chunk())
	if !found {
		return false, nil
	}
	l := cl.mu.lands[at]
	l.sent, l.holes = true, false
	land, unchanged := l.Unchanged()
	packets, err := cl.a.columns.Get(landKey{cl.mu.origin, at, land}, unchanged && len(l.signs) == 0, func() ([][]byte, error) {
		blocks, err := l.Load()
		if err != nil {
			return nil, err
		}
		col := lightColumn(blocks)
		col.signs = l.signs
		return cl.a.uniform.packColumn(col, cl.mu.origin.node(grid.Pos{X: at.Origin().X, Z: at.Origin().Z + grid.ChunkSize - 1}))
	})
	for _, p := range packets {
		cl.put(p)
	}
	cl.a.Land.Inc()
	return true, errors.Join(err, cl.mu.failed)
}

// acknowledge shows what an edit has come to: the client has shown what it asked for.
func (cl *Client) acknowledge(m sessionmsg.Ack) error {
	edit, waits := cl.mu.edits.Answer(m, time.Now())
	if !waits {
		return nil
	}
	if m.Error == "" { // the change may come a tick later
		games.SetBlock(cl.mu.lands, edit.Pos, chunk.Block(m.Block))
	}
	cl.a.CountRefused(edit, m.Error, cl.notice)
	return cl.putBack(edit.Pos, chunk.Block(m.Block))
}

// showBlock shows a block. Half of a door may be the upper one, or make the one above that.
func (cl *Client) showBlock(pos grid.Pos, b chunk.Block) {
	if b == chunk.Air {
		cl.put(begin(toRemoveNode).node(cl.mu.origin.node(pos)))
		return
	}
	if !b.Door() {
		cl.showNode(pos, nodeOf(b, chunk.Air))
		return
	}
	blocks := cl.mu.lands.blocks()
	below, _ := blocks(grid.Pos{X: pos.X, Y: pos.Y - 1, Z: pos.Z})
	cl.showNode(pos, nodeOf(b, below))
	upper := grid.Pos{X: pos.X, Y: pos.Y + 1, Z: pos.Z}
	if above, _ := blocks(upper); above == b {
		cl.showNode(upper, nodeOf(above, b))
	}
}

func (cl *Client) showNode(pos grid.Pos, id uint16) {
	cl.put(begin(toAddNode).node(cl.mu.origin.node(pos)).u16(id).u8(0, 0).flag(false))
}

// showDelta shows the changes of a chunk, except motion.
func (cl *Client) showDelta(n *sessionmsg.TickDelta) {
	if l := cl.mu.lands[n.Chunk]; l != nil {
		for _, b := range n.Blocks {
			l.Set(b.At, b.Block)
			delete(l.signs, b.At) // to the client, too
			if l.sent {
				cl.showBlock(b.At.Pos(n.Chunk), b.Block)
			}
		}
	}
	for _, u := range n.Chat {
		if text, ok := games.Emote(u); ok {
			cl.notice(text)
		} else {
			cl.say(u.Name, u.Text)
		}
	}
}

// Kinds of chat messages.
const (
	chatNormal = 1
	chatSystem = 3
)

// say shows a message of a player, or of the server. Escape sequences of the client in it have no effect.
func (cl *Client) say(name, text string) {
	kind := byte(chatNormal)
	if name == "" {
		kind = chatSystem
	}
	text = strings.ReplaceAll(text, "\x1b", "")
	cl.put(begin(toChatMessage).u8(1, kind).wide(name).wide(text).u64(uint64(time.Now().Unix()))) //nolint:gosec // after 1970
}

// notice shows a message of the server.
func (cl *Client) notice(text string) { cl.say("", text) }

// end sends the reason for the end of the connection.
func (cl *Client) end(why string) {
	cl.put(deny(strings.TrimSpace(why)))
	cl.mu.ended = true
}
