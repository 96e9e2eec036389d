package classicube

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/blocktable"
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
		return cl.enter(m)
	case sessionmsg.ChunkData:
		return cl.showChunk(m)
	case sessionmsg.ChunkGone:
		delete(cl.mu.lands, m.Chunk)
		cl.mu.avatars.Gone(m.Chunk)
	case sessionmsg.Ack:
		cl.acknowledge(m)
	case sessionmsg.Correction:
		return cl.correct(m)
	case sessionmsg.Notice:
		cl.notice(m.Text)
	case sessionmsg.Permissions:
		cl.showRole(m)
	case sessionmsg.Failure:
		cl.end(m.Message)
	}
	return nil
}

// enter begins the session.
func (cl *Client) enter(m sessionmsg.Welcome) error {
	if _, err := cl.mu.avatars.Begin(m); err != nil {
		return err
	}
	if cl.mu.welcome.Player == "" {
		cl.showInventory()
	}
	now := time.Now()
	cl.mu.welcome, cl.mu.since = m, now
	cl.mu.player.Begin(m.Pose, now)
	cl.mu.edits.Begin(m.NextSeq, now)
	cl.mu.stance = games.Stance{}
	clear(cl.mu.lands)
	cl.put(begin(packetIdentification).u8(protocolVersion).text(m.WorldName).text("The land is being loaded.").u8(0))
	return cl.retarget()
}

// showInventory sends the client the shapes of blocks, the order of its inventory, and a hotbar. It keeps them as long as
// it is connected.
func (cl *Client) showInventory() {
	level := cl.features.level()
	if level == blocktable.ClassicShaped {
		for _, s := range blocktable.ClassicShapes() {
			cl.put(defineBlock(s))
		}
	}
	if cl.features[extInventoryOrder] {
		order := make([]byte, blocktable.ClassicBlocks(level))
		for i, id := range blocktable.ClassicInventory(level) {
			order[id] = byte(i + 1) //nolint:gosec // at most as many as blocks
		}
		for id, place := range order[1:] { // 0 hides a block
			cl.put(begin(packetInventoryOrder).u8(byte(id+1), place)) //nolint:gosec // at most 255
		}
	}
	if cl.features[extSetHotbar] {
		for i, b := range games.AtHand {
			cl.put(begin(packetSetHotbar).u8(blocktable.ToClassic(b, level), byte(i)))
		}
	}
}

// How a block is drawn and stops bodies, and the usual speed on it.
const (
	collideNone, collideSolid, collideLadder = 0, 2, 7
	usualSpeed                               = 128
	soundWood, soundStone                    = 1, 4
	drawOpaque, drawTransparent              = 0, 1
)

// defineBlock returns the packet that tells a client to draw a block.
func defineBlock(s blocktable.ClassicShape) packet {
	name := strings.ReplaceAll(s.Block.Name(), "_", " ")
	collide, sound, bright, light, draw := byte(collideNone), byte(soundWood), byte(0), byte(1), byte(drawTransparent)
	switch {
	case s.Block.Base() == chunk.Ladder:
		collide = collideLadder
	case s.Block.Glow() > 0:
		bright = 1
	case s.Block.Joinable():
		collide, draw = collideSolid, drawOpaque
	case s.Block.Opens():
		if s.Block.Solid() {
			collide = collideSolid
		}
	default:
		collide, sound, light, draw = collideSolid, soundStone, 0, drawOpaque
	}
	top, side, bottom := s.Textures[0], s.Textures[1], s.Textures[2]
	p := begin(packetDefineBlockExt).u8(s.ID).text(name).u8(collide, usualSpeed, top, side, side, side, side, bottom, light, sound, bright)
	return append(append(p, s.Box.Low[:]...), s.Box.High[:]...).u8(draw, 0, 0, 0, 0) // no fog
}

// retarget chooses the window around the player. It is sent as soon as its land is here.
func (cl *Client) retarget() error {
	cl.mu.window = windowAround(cl.mu.player.Pose.Chunk(), cl.mu.welcome.View, int32(cl.mu.welcome.Sections)*grid.ChunkSize) //nolint:gosec // at most MaxSections
	cl.mu.loaded = false
	return cl.showLevel()
}

// showChunk keeps a chunk, and shows what is new of it.
func (cl *Client) showChunk(m sessionmsg.ChunkData) error {
	before := cl.mu.lands[m.Chunk]
	now := games.NewLand(m.Data)
	cl.mu.lands[m.Chunk] = now
	switch {
	case !cl.mu.loaded:
		return cl.showLevel()
	case before == nil, !cl.mu.window.contains(m.Chunk):
		return nil
	}
	return cl.showDifference(m.Chunk, before, now)
}

// maxDifference is how many blocks of a chunk are changed one by one. More are sent with the whole level.
const maxDifference = 8192

// showDifference shows how a chunk of the level differs from before.
func (cl *Client) showDifference(at grid.ChunkPos, before, now *games.Land) error {
	old, err := before.Load()
	if err != nil {
		return err
	}
	blocks, err := now.Load()
	if err != nil {
		return err
	}
	was, is := old.Blocks(), blocks.Blocks()
	var changed []chunk.Index
	for i := range is {
		if i >= len(was) || is[i] != was[i] {
			changed = append(changed, chunk.Index(i)) //nolint:gosec // of a column
		}
	}
	if len(changed) > maxDifference {
		cl.mu.loaded = false
		return cl.showLevel()
	}
	for _, i := range changed {
		cl.showBlock(i.Pos(at), is[i])
	}
	return nil
}

// showLevel sends the window, if its land is here and the client does not have it.
func (cl *Client) showLevel() error {
	w := cl.mu.window
	if cl.mu.loaded || cl.mu.welcome.Player == "" || !cl.mu.lands.has(w) {
		return nil
	}
	key, shared := cl.mu.lands.key(w, cl.features)
	level, err := cl.a.levels.Get(key, shared, func() ([][]byte, error) { // not while the client, which may be slow, is sent it
		var level bytes.Buffer
		err := cl.mu.lands.writeLevel(&level, w, cl.features)
		return [][]byte{level.Bytes()}, err
	})
	if err != nil {
		return err
	}
	cl.mu.avatars.forget(cl.put)
	head := begin(packetLevelBegin)
	if cl.features[extFastMap] {
		head = head.u32(w.volume())
	}
	cl.put(head)
	sent, size := 0, len(level[0])
	for part := range slices.Chunk(level[0], levelPart) {
		sent += len(part)
		p := begin(packetLevelData).u16(uint16(len(part))) //nolint:gosec // at most levelPart
		p = append(append(p, part...), make([]byte, levelPart-len(part))...)
		cl.put(p.u8(byte(100 * sent / size))) //nolint:gosec // at most 100
	}
	cl.put(begin(packetLevelEnd).u16(uint16(w.side())).u16(uint16(w.height)).u16(uint16(w.side()))) //nolint:gosec // all below 1024
	cl.a.Land.Inc()
	cl.mu.loaded = true
	cl.showSelf()
	return cl.mu.out.Flush()
}

// showSelf puts the client's own player into a new level, with what the player may do there.
func (cl *Client) showSelf() {
	own := placeOf(cl.mu.player.Pose, cl.mu.window.origin(), selfEyes)
	name := cl.mu.welcome.Name
	if cl.features[extPlayerList] {
		cl.put(begin(packetAddPlayerName).u16(selfID).text(name).text(name).text("Players").u8(0))
		cl.put(begin(packetAddEntity2).u8(selfID).text(name).text(name).place(own))
	} else {
		cl.put(begin(packetSpawn).u8(selfID).text(name).place(own))
	}
	cl.mu.player.Put(time.Now())
	if cl.features[extClickDistance] {
		cl.put(begin(packetClickDistance).u16(uint16(cl.mu.welcome.Reach * unit)))
	}
	if cl.features[extHackControl] { // flying, noclip, speeding, respawning, third person; the usual height of jumps
		cl.put(begin(packetHackControl).u8(1, 0, 0, 1, 1).u16(0xffff))
	}
	if cl.features[extMapAspect] { // nothing around the level, and clouds above it
		for property, value := range []uint32{0, 0, 0, uint32(cl.mu.window.height) + 2} { //nolint:gosec // positive
			cl.put(begin(packetMapProperty).u8(byte(property)).u32(value))
		}
	}
	cl.mu.clock = clock{}
	if !cl.features[extMessageTypes] {
		at := cl.mu.player.Pose.Block()
		cl.say(fmt.Sprintf("%sYou are at %d %d %d. The level is the land around you.", colourNotice, at.X, at.Y, at.Z))
	}
}

// place puts the client where the player is.
func (cl *Client) place(now time.Time) {
	cl.mu.player.Put(now)
	cl.put(begin(packetTeleport).u8(selfID).place(placeOf(cl.mu.player.Pose, cl.mu.window.origin(), selfEyes)))
}

// correct puts the client where the gateway has the player.
func (cl *Client) correct(m sessionmsg.Correction) error {
	cl.mu.player.Pose = m.Pose
	if !cl.mu.loaded || cl.mu.window.left(m.Pose) {
		cl.mu.player.Put(time.Now())
		return cl.retarget()
	}
	cl.place(time.Now())
	return nil
}

// acknowledge shows what an edit has come to: the client has shown what it asked for.
func (cl *Client) acknowledge(m sessionmsg.Ack) {
	edit, waits := cl.mu.edits.Answer(m, time.Now())
	if !waits {
		return
	}
	if m.Error == "" { // the change may come a tick later
		games.SetBlock(cl.mu.lands, edit.Pos, chunk.Block(m.Block))
	}
	cl.a.CountRefused(edit, m.Error, cl.notice)
	cl.showBlock(edit.Pos, chunk.Block(m.Block))
}

// showBlock shows a block, if it is in the level.
func (cl *Client) showBlock(pos grid.Pos, b chunk.Block) {
	w := cl.mu.window
	if !cl.mu.loaded || !w.contains(pos.Chunk()) || pos.Y < 0 || pos.Y >= w.height {
		return
	}
	o := w.origin()
	cl.put(begin(packetSetBlock).u16(uint16(pos.X - o.X)).u16(uint16(pos.Y)).u16(uint16(pos.Z - o.Z)). //nolint:gosec // inside the level
														u8(blocktable.ToClassic(b, cl.features.level())))
}

// showDelta shows the changes of a chunk, except motion.
func (cl *Client) showDelta(n *sessionmsg.TickDelta) {
	if l := cl.mu.lands[n.Chunk]; l != nil {
		for _, b := range n.Blocks {
			l.Set(b.At, b.Block)
			cl.showBlock(b.At.Pos(n.Chunk), b.Block)
		}
	}
	for _, u := range n.Chat {
		if text, ok := games.Emote(u); ok {
			cl.say(colourChat + escape(text))
			continue
		}
		cl.say(colourName + u.Name + colourChat + ": " + escape(u.Text))
	}
}

// say shows a message, in as many lines as it takes.
func (cl *Client) say(text string) {
	for _, line := range wrap(encodeText(text, cl.features[extFullCP437])) {
		cl.put(begin(packetMessage).u8(0).line(line))
	}
}

// notice shows a message of the server.
func (cl *Client) notice(text string) { cl.say(colourNotice + escape(text)) }

// showRole makes a moderator an operator of the level, and others none.
func (cl *Client) showRole(m sessionmsg.Permissions) {
	operator := byte(0)
	if m.Role == "moderator" || m.Role == "admin" || m.Role == "owner" {
		operator = 100
	}
	cl.put(begin(packetUserType).u8(operator))
}

// end sends the reason for the end of the connection. One that is too long for it is said before.
func (cl *Client) end(why string) {
	why = strings.TrimSpace(escape(why))
	if len(why) > textBytes {
		cl.say(colourNotice + why)
	}
	cl.put(disconnect(why))
	cl.mu.ended = true
}
