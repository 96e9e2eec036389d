package classicube

import (
	"math"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file makes messages of a session of what the client sends. The reader runs it.

const (
	// nearPlace is how far from where it was put a client may be when it goes on from there, in blocks. Another level's places are farther
	// away: windows differ by more than that.
	nearPlace = 4
	// placeAgain is when a client that does not go on from where it was put is put there again.
	placeAgain = 2 * time.Second
	// moveAtLeast is how often the session is sent a move, even if the client stands still: otherwise it seems to be gone.
	moveAtLeast = 10 * time.Second
)

// Read waits for the client's next message to the session, in CBOR.
func (cl *Client) Read() ([]byte, error) {
	for {
		kind, body, err := cl.in.next()
		if err != nil {
			return nil, err
		}
		m, err := cl.translate(kind, body, time.Now())
		switch {
		case err != nil:
			return nil, err
		case m == nil:
			continue
		}
		if move, ok := m.(sessionmsg.Move); ok { // 20 a second
			cl.message = sessionmsg.AppendMove(cl.message[:0], move.Pose)
			return cl.message, nil
		}
		return sessionmsg.EncodeClientCBOR(m)
	}
}

// translate returns the message that a packet becomes; nil for none.
func (cl *Client) translate(kind byte, body fields, now time.Time) (sessionmsg.FromClient, error) {
	switch kind {
	case packetTeleport:
		body.u8() // the block in the player's hand, or 255
		return cl.readMove(place{x: body.u16(), y: body.u16(), z: body.u16(), yaw: body.u8(), pitch: body.u8()}, now)
	case packetSetBlockClient:
		return cl.readEdit(body, now)
	case packetMessage:
		return cl.readChat(body), nil
	case packetTwoWayPing:
		return nil, cl.answerPing(body)
	}
	return nil, wire.Refuse(wire.FailUnexpected, "Your client sent packet %#x at the wrong time.", kind)
}

// readMove returns the move to a place, unless the client has not gone on from where it was put.
func (cl *Client) readMove(at place, now time.Time) (sessionmsg.FromClient, error) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	due := now.Sub(cl.mu.sent) >= moveAtLeast
	pose := at.pose(cl.mu.window.origin())
	switch {
	case !cl.mu.loaded, !cl.mu.placed.IsZero() && distance(pose, cl.mu.pose) > nearPlace:
		pose = cl.mu.pose
	default:
		cl.mu.placed = time.Time{}
		due = due || pose != cl.mu.pose
	}
	if !due || cl.mu.welcome.Player == "" {
		return nil, nil
	}
	cl.mu.pose, cl.mu.sent = pose, now
	if cl.mu.loaded && cl.mu.placed.IsZero() && cl.mu.window.left(pose) {
		if err := cl.retarget(); err != nil {
			return nil, err
		}
	}
	return sessionmsg.Move{Pose: pose}, nil
}

func distance(a, b motion.Pose) float64 {
	return math.Sqrt((a.X-b.X)*(a.X-b.X) + (a.Y-b.Y)*(a.Y-b.Y) + (a.Z-b.Z)*(a.Z-b.Z))
}

// readEdit returns the edit of a block in the level.
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
	w := cl.mu.window
	switch {
	case !cl.mu.loaded, !cl.mu.placed.IsZero():
		return nil, nil // meant for another level, or from another place
	case int64(x) >= w.side(), int32(y) >= w.height, int64(z) >= w.side():
		return nil, wire.Refuse(wire.FailBadValue, "There is no block at %d, %d, %d of the level.", x, y, z)
	case len(cl.mu.pending) >= maxPending:
		return nil, wire.Refuse(wire.FailRate, "Too many of your edits wait for an answer.")
	}
	origin := w.origin()
	e := sessionmsg.Edit{Seq: cl.mu.seqs.Next(now), X: origin.X + int32(x), Y: int32(y), Z: origin.Z + int32(z), Block: uint16(block)}
	cl.mu.pending[e.Seq] = grid.Pos{X: e.X, Y: e.Y, Z: e.Z}
	return e, nil
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
