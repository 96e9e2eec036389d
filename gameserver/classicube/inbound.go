package classicube

import (
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file makes messages of a session of what the client sends. The reader runs it.

// moveAtLeast is how often the session is sent a move.
const moveAtLeast = 10 * time.Second

// Read waits for the client's next message to the session.
func (cl *Client) Read() (sessionmsg.FromClient, error) {
	m := cl.mu.edits.Next()
	for m == nil {
		kind, body, err := cl.in.next()
		if err != nil {
			return nil, err
		}
		if m, err = cl.translate(kind, body, time.Now()); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// translate returns the message that a packet becomes; nil for none.
func (cl *Client) translate(kind byte, body fields, now time.Time) (sessionmsg.FromClient, error) {
	switch kind {
	case packetTeleport:
		if m := cl.hold(body.u8()); m != nil {
			return m, nil // the next of these packets, a twentieth of a second later, has the place
		}
		return cl.readMove(place{x: body.u16(), y: body.u16(), z: body.u16(), yaw: body.u8(), pitch: body.u8()}, now)
	case packetSetBlockClient:
		return cl.readEdit(body, now)
	case packetPlayerClick:
		return cl.readClick(body, now)
	case packetMessage:
		return cl.readChat(body), nil
	case packetTwoWayPing:
		return nil, cl.answerPing(body)
	}
	return nil, wire.Refuse(wire.FailUnexpected, "Your client sent packet %#x at the wrong time.", kind)
}

// hold returns the message that another block is in the player's hand; nil if it is the same. Only clients with HeldBlock
// say which it is.
func (cl *Client) hold(id byte) sessionmsg.FromClient {
	block, known := blocktable.FromClassic(id)
	if !known || !cl.features[extHeldBlock] {
		return nil
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.welcome.Player == "" {
		return nil
	}
	return cl.mu.stance.Change(block, false)
}

// readMove returns the move to a place, unless the client has not gone on from where it was put. Places of another
// level are far from there.
func (cl *Client) readMove(at place, now time.Time) (sessionmsg.FromClient, error) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if !cl.mu.player.Move(games.InWorld(at.pose(cl.mu.window.origin())), cl.mu.loaded, now, moveAtLeast) || cl.mu.welcome.Player == "" {
		return nil, nil
	}
	pose := cl.mu.player.Pose
	if !cl.away() && cl.mu.window.left(pose) && cl.levels.AllowN(now, 1) {
		if err := cl.retarget(); err != nil {
			return nil, err
		}
	}
	return sessionmsg.Move{Pose: pose}, nil
}

// readEdit returns the first edit of a block in the level. The others are the next.
func (cl *Client) readEdit(body fields, now time.Time) (sessionmsg.FromClient, error) {
	x, y, z := body.u16(), body.u16(), body.u16()
	place, id := body.u8() != 0, body.u8()
	if !place {
		id = 0
	}
	block, known := blocktable.FromClassic(id)
	if !known {
		return nil, wire.Refuse(wire.FailBadValue, "There is no block %d.", id)
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	pos, inside := cl.mu.window.pos(x, y, z)
	switch {
	case cl.away(), place && cl.usedDoor && inside:
		if cl.looks.AllowN(now, 1) {
			cl.showThere(pos)
		}
		return nil, nil
	case !inside:
		return nil, wire.Refuse(wire.FailBadValue, "There is no block at %d, %d, %d of the level.", x, y, z)
	case !cl.looks.AllowN(now, 1):
		return cl.mu.edits.AddAll([]games.Change{{Pos: pos, To: block}}, now)
	case block == chunk.Air:
		return cl.mu.edits.AddAll(cl.predicted().Break(pos), now)
	}
	block = blocktable.PlacedBy(float64(cl.mu.player.Pose.Yaw), [3]int32{0, 1, 0}, 0).Block(block)
	changes := cl.predicted().Place(pos, block)
	if len(changes) == 0 {
		cl.showThere(pos)
	}
	return cl.mu.edits.AddAll(changes, now)
}

// predicted returns the blocks as the client shows them.
func (cl *Client) predicted() games.Blocks { return cl.mu.edits.Predict(cl.mu.lands.blocks()) }

// showThere shows what is in place of a block that the client has placed. The next tick flushes it.
func (cl *Client) showThere(pos grid.Pos) {
	b, _ := cl.predicted()(pos)
	cl.showBlock(pos, b)
}

// away reports whether what the client does is meant for another level, or from another place.
func (cl *Client) away() bool { return !cl.mu.loaded || cl.mu.player.Unconfirmed() }

// What a click is.
const (
	rightButton = 1
	isPressed   = 0
)

// readClick returns the edit of a door, a gate or a trapdoor that is clicked. For other clicks the client sends edits.
func (cl *Client) readClick(body fields, now time.Time) (sessionmsg.FromClient, error) {
	button, action := body.u8(), body.u8()
	body.u16() // where the player looks
	body.u16()
	body.u8() // the player who is clicked
	x, y, z := body.u16(), body.u16(), body.u16()
	if action != isPressed {
		return nil, nil
	}
	cl.usedDoor = false
	cl.mu.Lock()
	defer cl.mu.Unlock()
	pos, inside := cl.mu.window.pos(x, y, z) // mostly of no block
	if button != rightButton || cl.away() || !inside || !cl.looks.AllowN(now, 1) {
		return nil, nil
	}
	changes := cl.predicted().Use(pos)
	cl.usedDoor = len(changes) > 0
	return cl.mu.edits.AddAll(changes, now)
}

// readChat returns the chat line, or the command, that a message completes.
func (cl *Client) readChat(body fields) sessionmsg.FromClient {
	more := body.u8() != 0 && cl.features[extLongerMessages]
	if more { // then the packet is full: spaces at its end belong to the text
		if text := decodeBytes(body); len(cl.partial)+len(text) <= wire.MaxChat {
			cl.partial += text
		}
		return nil
	}
	text := cl.partial + body.text()
	cl.partial = ""
	if !strings.HasPrefix(text, "/") { // a password may look like a colour
		text = stripColours(text)
	}
	return games.ChatOf(text)
}

// answerPing answers a ping of the client.
func (cl *Client) answerPing(body fields) error {
	if fromServer := body.u8() != 0; fromServer {
		return nil
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.put(begin(packetTwoWayPing).u8(0).u16(body.u16())) // the next tick flushes it
	return nil
}
