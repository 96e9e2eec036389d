package minecraft

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file makes messages of a session of what the client sends. The reader runs it.

// moveAtLeast is how often the session is sent a move.
const moveAtLeast = 10 * time.Second

// Read waits for the client's next message to the session.
func (cl *Client) Read() (sessionmsg.FromClient, error) {
	m := cl.mu.requests.edits.Next()
	for m == nil {
		frame, err := cl.in.next()
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if !cl.packets.AllowN(now, 1) {
			return nil, wire.Refuse(wire.FailRate, "Your client sends more than %d packets a second.", games.PacketsPerSecond)
		}
		if m, err = cl.translate(frame, now); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// translate returns the message that a frame becomes; nil for none.
func (cl *Client) translate(frame []byte, now time.Time) (m sessionmsg.FromClient, err error) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.compressed { // since a time at which the client sends nothing
		if frame, err = cl.in.inflate(frame); err != nil {
			return nil, err
		}
	}
	f := fields{data: frame}
	kind := f.varint()
	switch cl.mu.state {
	case atLogin:
		if !f.bad && kind == packetLoginAck && cl.mu.welcome.Player != "" {
			cl.configure()
			return nil, cl.mu.out.Flush()
		}
		f.bad = true
	case inConfiguration:
		switch kind {
		case packetConfigFinish:
			return nil, cl.play(now)
		case packetConfigSettings:
			m = cl.readSettings(&f)
		}
	case inPlay:
		if m, err = cl.readPlay(kind, &f, now); m == nil && err == nil {
			held, _ := blocktable.FromMinecraft(cl.mu.hands.item(0))
			m = cl.mu.stance.Change(held, cl.mu.sneaks)
		}
	case isOver:
		return nil, nil
	}
	if f.bad || kind < 0 || kind > lastPlayPacket {
		return nil, wire.Refuse(wire.FailBadValue, "Your client sent packet %#x, which cannot be read.", kind)
	}
	return m, err
}

// readPlay returns the message that a packet becomes. Packets about what this world does not have are ignored.
func (cl *Client) readPlay(kind int32, f *fields, now time.Time) (sessionmsg.FromClient, error) {
	pose, f64 := cl.mu.player.Pose, f.f64
	switch kind {
	case packetConfirmTeleport:
		if f.varint() == int32(cl.mu.teleport.number) { //nolint:gosec // counts from 0
			cl.mu.teleport.pending = false
		}
		return nil, nil
	case packetMovePosition:
		pose.X, pose.Y, pose.Z = f64(), f64(), f64()
		return cl.move(pose, f, now)
	case packetMovePositionLook:
		pose.X, pose.Y, pose.Z = f64(), f64(), f64()
		readLook(f, &pose)
		return cl.move(pose, f, now)
	case packetMoveLook:
		readLook(f, &pose)
		return cl.move(pose, f, now)
	case packetMoveOnGround:
		return cl.move(pose, f, now)
	case packetKeepAliveAnswer:
		f.u64()
		cl.mu.alive.answered = now
		return cl.move(pose, f, now)
	case packetDig:
		return cl.readDig(f, now)
	case packetPlayerAction:
		f.varint() // which entity
		switch f.varint() {
		case actionSneak:
			cl.mu.sneaks = true
		case actionStand:
			cl.mu.sneaks = false
		}
	case packetWriteSign:
		return cl.readSign(f, now)
	case packetUseItemOn:
		return cl.readUseItemOn(f, now)
	case packetUseItem:
		return cl.readUseItem(f, now)
	case packetSelectSlot:
		return nil, cl.mu.hands.readSelected(f)
	case packetSetCreativeSlot:
		cl.mu.hands.readSlot(f, cl.put) // the next tick flushes it
	case packetChat:
		return readChat(f), nil
	case packetCommand:
		return readCommand(f), nil
	case packetSettings:
		return cl.readSettings(f), nil
	case packetInteract:
		return cl.readInteract(f), nil
	}
	return nil, nil
}

// readLook reads where the player looks, in degrees: the same yaw as here, and pitch grows downwards there.
func readLook(f *fields, p *motion.Pose) {
	p.Yaw = float32(math.Remainder(float64(f.f32())*math.Pi/180, 2*math.Pi))
	p.Pitch = float32(max(-math.Pi/2, min(math.Pi/2, -float64(f.f32())*math.Pi/180)))
}

// move returns the move to a pose, unless the client has not confirmed where it was put.
func (cl *Client) move(to motion.Pose, f *fields, now time.Time) (sessionmsg.FromClient, error) {
	if f.bad {
		return nil, nil
	}
	to = games.InWorld(to)
	if to.Valid() != nil || math.Abs(to.X) > maxAcross || math.Abs(to.Z) > maxAcross {
		return nil, wire.Refuse(wire.FailBadValue, "Your client says that you are in no place of the world.")
	}
	if !cl.mu.player.Move(to, !cl.mu.teleport.pending, now, moveAtLeast) {
		return nil, nil
	}
	cl.centre()
	return sessionmsg.Move{Pose: cl.mu.player.Pose}, nil
}

// readSettings returns the change of the view distance.
func (cl *Client) readSettings(f *fields) sessionmsg.FromClient {
	f.text(16)                    // the language
	distance := int(int8(f.u8())) //nolint:gosec // signed
	if f.bad {
		return nil
	}
	return sessionmsg.View{View: max(1, min(maxView, (distance+1)/2))}
}

// readChat returns the chat line that a message becomes. Its signature, if it has one, is of an account: nobody here
// checks it.
func readChat(f *fields) sessionmsg.FromClient {
	text := f.text(wire.MaxChat)
	if f.bad {
		return nil
	}
	return games.ChatOf(text)
}

// readCommand returns a command.
func readCommand(f *fields) sessionmsg.FromClient {
	text := f.text(wire.MaxChat)
	if f.bad {
		return nil
	}
	return games.ChatOf("/" + text)
}

// readInteract returns the hit of another player.
func (cl *Client) readInteract(f *fields) sessionmsg.FromClient {
	entity, action := f.varint(), f.varint()
	id, known := cl.mu.avatars.player(entity)
	if f.bad || !known || action != interactAttack {
		return nil
	}
	return sessionmsg.Hit{Player: id.String()}
}
