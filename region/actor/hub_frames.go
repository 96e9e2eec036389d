package actor

import (
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// frameBytes bounds the estimated size of a frame. What is more is sent in further frames of the same tick. The link of
// a gateway to which a frame of more than wire.MaxFrame is sent would break, and so would its next one. Only a chunk's
// edits, which a frame has together, may exceed the estimate: they fit into wire.MaxFrame.
const frameBytes = wire.MaxFrame / 2

// The most bytes that these take in a message, without their texts.
const (
	frameHead   = 32
	deltaHead   = 128 // with the head of a ChunkState
	blockBytes  = 12
	moveBytes   = 54
	leaveBytes  = 17
	resultBytes = 48
)

func bodyBytes(b *nodemsg.Body) int      { return 128 + len(b.Name) + len(b.Gateway) }
func signBytes(s *nodemsg.SignAt) int    { return 16 + len(s.Text) }
func chatBytes(u *nodemsg.ChatEvent) int { return 160 + len(u.Name) + len(u.Text) + len(u.Stamp) }

func sumBytes[T any](all []T, bytes func(*T) int) (n int) {
	for i := range all {
		n += bytes(&all[i])
	}
	return n
}

// deltaBytes returns the most bytes that a delta takes in a message.
func deltaBytes(d *nodemsg.ChunkDelta) int {
	n := deltaHead + sumBytes(d.Enter, bodyBytes) + leaveBytes*len(d.Leave) + moveBytes*len(d.Moves) + blockBytes*len(d.Blocks) +
		sumBytes(d.Signs, signBytes) + sumBytes(d.Chat, chatBytes)
	if s := d.State; s != nil {
		n += sumBytes(s.Bodies, bodyBytes) + blockBytes*len(s.Edits) + sumBytes(s.Signs, signBytes)
	}
	return n
}

// frameSize returns the most bytes that a frame takes.
func frameSize(f *nodemsg.FromRegion) int {
	n := frameHead + len(f.Closed) + sumBytes(f.Results, func(r *nodemsg.EditResult) int { return resultBytes + len(r.Refused) })
	for i := range f.Chunks {
		n += deltaBytes(&f.Chunks[i])
	}
	return n
}

// put sends a frame of changes, in parts if it is large. It reports false if the gateway does not read its frames.
func (s *subscriber) put(f nodemsg.FromRegion) bool {
	if frameSize(&f) <= frameBytes && len(f.Chunks) <= wire.MaxWatch {
		return s.out.Put(f)
	}
	parts := divideFrame(f)
	parts[len(parts)-1].Confirmed, parts[len(parts)-1].AsOf = f.Confirmed, f.AsOf // it has everything only now
	for _, part := range parts {
		if !s.out.Put(part) {
			return false
		}
	}
	return true
}

// divideFrame divides a frame into some that are small enough. The deltas of a chunk remain in order.
func divideFrame(f nodemsg.FromRegion) (parts []nodemsg.FromRegion) {
	part := nodemsg.FromRegion{Tick: f.Tick, Results: f.Results}
	room := frameBytes - frameSize(&part)
	next := func() {
		parts = append(parts, part)
		part = nodemsg.FromRegion{Tick: f.Tick}
		room = frameBytes - frameSize(&part)
	}
	for _, d := range f.Chunks {
		if len(part.Chunks) == wire.MaxWatch || deltaBytes(&d) > room && len(part.Chunks)+len(part.Results) > 0 {
			next()
		}
		for deltaBytes(&d) > room && !isEmpty(&d) {
			var first nodemsg.ChunkDelta
			first, d = cut(d, room)
			part.Chunks = append(part.Chunks, first)
			next()
		}
		if !isEmpty(&d) {
			part.Chunks = append(part.Chunks, d)
			room -= deltaBytes(&d)
		}
	}
	if len(part.Chunks)+len(part.Results) > 0 {
		parts = append(parts, part)
	}
	return parts
}

func isEmpty(d *nodemsg.ChunkDelta) bool {
	return d.State == nil && len(d.Base)+len(d.Enter)+len(d.Leave)+len(d.Moves)+len(d.Blocks)+len(d.Signs)+len(d.Chat) == 0
}

// cut divides a delta into what fits into the room, at least something, and the rest. Bodies of a whole chunk for which
// there is no room enter it then.
func cut(d nodemsg.ChunkDelta, room int) (first, rest nodemsg.ChunkDelta) {
	first.Chunk, rest.Chunk = d.Chunk, d.Chunk
	room -= deltaHead
	if d.State != nil {
		state := *d.State
		room -= blockBytes*len(state.Edits) + sumBytes(state.Signs, signBytes)
		state.Bodies, rest.Enter = takeSome(state.Bodies, &room, bodyBytes)
		first.State = &state
		return first, rest
	}
	first.Base = d.Base
	first.Blocks, rest.Blocks = takeAlike(d.Blocks, &room, blockBytes)
	first.Signs, rest.Signs = takeSome(d.Signs, &room, signBytes) // none if there is no room for the blocks before them
	first.Enter, rest.Enter = takeSome(d.Enter, &room, bodyBytes)
	first.Leave, rest.Leave = takeAlike(d.Leave, &room, leaveBytes)
	first.Moves, rest.Moves = takeAlike(d.Moves, &room, moveBytes)
	first.Chat, rest.Chat = takeSome(d.Chat, &room, chatBytes)
	return first, rest
}

// takeSome takes as many elements from the beginning of a list as there is room for. If not all fit, no room is left.
func takeSome[T any](all []T, room *int, bytes func(*T) int) (first, rest []T) {
	for i := range all {
		if *room -= bytes(&all[i]); *room < 0 {
			return all[:i:i], all[i:]
		}
	}
	return all, nil
}

// takeAlike is take for elements that all take as many bytes.
func takeAlike[T any](all []T, room *int, bytes int) (first, rest []T) {
	return takeSome(all, room, func(*T) int { return bytes })
}
