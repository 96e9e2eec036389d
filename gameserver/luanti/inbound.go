package luanti

import (
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file makes messages of a session of what the client sends. The reader runs it.

// moveAtLeast is how often the session is sent a move, even if the client is still loading.
const moveAtLeast = 5 * time.Second

// Read waits for the client's next message to the session.
func (cl *Client) Read() (sessionmsg.FromClient, error) {
	m := cl.mu.edits.Next()
	for m == nil {
		if err := cl.boundRead(); err != nil {
			return nil, err
		}
		n, err := cl.c.Read(cl.buffer)
		switch now := time.Now(); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			m = cl.stand(now)
		case err != nil:
			return nil, err
		case !cl.packets.AllowN(now, 1):
			return nil, wire.Refuse(wire.FailRate, "Your client sends more than %d packets a second.", games.PacketsPerSecond)
		default:
			if m, err = cl.translate(cl.buffer[:n], now); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// boundRead bounds the next read, unless the connection was closed: the client says nothing while it loads, or its
// player stands still. A connection whose client is gone ends by itself.
func (cl *Client) boundRead() error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.closed {
		return net.ErrClosed
	}
	return cl.c.SetReadDeadline(time.Now().Add(moveAtLeast))
}

// stand returns the move of a client that stays where it is.
func (cl *Client) stand(now time.Time) sessionmsg.FromClient {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.welcome.Player == "" {
		return nil
	}
	return sessionmsg.Move{Pose: cl.mu.player.NoteStill(now)}
}

// translate returns the message that a packet becomes; nil for none. Packets that have no meaning here are ignored.
func (cl *Client) translate(data []byte, now time.Time) (sessionmsg.FromClient, error) {
	f := &fields{rest: data}
	command := f.u16()
	switch command {
	case fromChatMessage:
		return games.ChatOf(f.wide()), nil
	case fromInit2, fromRequestMedia, fromClientReady:
		return nil, cl.load(command, f)
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if !cl.mu.ready {
		return nil, nil
	}
	switch command {
	case fromPlayerPos:
		if m := cl.readMove(f, now); m != nil {
			return m, nil
		}
	case fromInteract:
		if m, err := cl.readInteract(f, now); m != nil || err != nil {
			return m, err
		}
	case fromPlayerItem:
		if slot := int(f.u16()); slot < slotsAcross {
			cl.mu.held = slot
		}
	case fromInventoryAction:
		if cl.looks.AllowN(now, 1) {
			move(cl.mu.slots, string(f.rest))
			cl.a.arranged.Add(cl.mu.welcome.Player, slices.Clone(cl.mu.slots))
			cl.put(inventory(cl.mu.slots))
		}
	case fromDeletedBlocks:
		cl.noteHoles(f)
	}
	return cl.mu.stance.Change(cl.mu.slots[cl.mu.held], cl.mu.sneaks), nil
}

// load answers what a client sends before it is in the game.
func (cl *Client) load(command uint16, f *fields) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.welcome.Player == "" || cl.mu.ready {
		return nil
	}
	d := &cl.a.definitions
	switch command {
	case fromInit2:
		cl.put(d.items)
		cl.put(d.nodes)
		cl.put(d.announcement)
		cl.put(movement())
	case fromRequestMedia:
		n := int(f.u16())
		if n > len(d.media) {
			return wire.Refuse(wire.FailBadValue, "Your client asks for %d files; there are %d.", n, len(d.media))
		}
		var files packet
		for range n {
			name := f.text()
			data, known := d.media[name]
			if !known {
				return wire.Refuse(wire.FailBadValue, "There is no file %.40q.", name)
			}
			files = files.text(name).blob(data)
		}
		cl.put(append(begin(toMedia).u16(1).u16(0).u32(uint32(n)), files...)) //nolint:gosec // as many as there are files
	case fromClientReady:
		cl.mu.ready = true
		cl.enter()
	}
	return nil
}

// readMove returns the move to a place, unless the client has not gone on from where it was put.
func (cl *Client) readMove(f *fields, now time.Time) sessionmsg.FromClient {
	at := games.InWorld(cl.mu.origin.pose(readPlace(f)))
	known := !f.short
	cl.mu.sneaks = f.u32()&keySneak != 0
	if !cl.mu.player.Move(at, known, now, moveAtLeast) {
		return nil
	}
	pose := cl.mu.player.Pose
	if !cl.mu.origin.bears(pose) {
		cl.end("Your game's map ends here. Join again to go on.")
		return nil
	}
	return sessionmsg.Move{Pose: pose}
}

// readPlace reads where the client's player is: a place and a speed, in hundredths, and where they look.
func readPlace(f *fields) (at place) {
	const fine = 100
	at.x, at.y, at.z = float64(f.s32())/fine, float64(f.s32())/fine, float64(f.s32())/fine
	f.take(12)
	at.pitch, at.yaw = float64(f.s32())/fine, float64(f.s32())/fine
	return at
}

// keySneak is the bit of the key with which a player sneaks.
const keySneak = 1 << 6

// noteHoles notes which chunks the client has dropped a part of.
func (cl *Client) noteHoles(f *fields) {
	for range f.u8() {
		n := f.node()
		if f.short {
			return
		}
		n = node{n.x * side, n.y * side, n.z * side}
		if l := cl.mu.lands[cl.mu.origin.pos(n).Chunk()]; l != nil {
			l.holes = true
		}
	}
}

// movement is how the client's player moves: it is slower than the gateway allows.
func movement() packet {
	return begin(toMovement).f32(3, 2, 10, 4.5, 1.6, 12, 3, 6.5, 1, .5, 10, 9.81)
}
