package outbox

import (
	"container/list"

	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
)

// waitingChunks is a queue of chunks. Each is in it once, and can be removed from anywhere.
type waitingChunks struct {
	order list.List // of *mirror.Chunk
	at    map[grid.ChunkPos]*list.Element
}

// add adds a chunk at the end, unless it is in the queue.
func (w *waitingChunks) add(c *mirror.Chunk) {
	if w.at == nil {
		w.at = make(map[grid.ChunkPos]*list.Element)
	}
	if w.at[c.At()] == nil {
		w.at[c.At()] = w.order.PushBack(c)
	}
}

// remove removes the chunk at a position, if it is in the queue.
func (w *waitingChunks) remove(pos grid.ChunkPos) {
	if e := w.at[pos]; e != nil {
		w.order.Remove(e)
		delete(w.at, pos)
	}
}

// take removes and returns the first chunks, at most n.
func (w *waitingChunks) take(n int) (first []*mirror.Chunk) {
	for len(first) < n && w.order.Len() > 0 {
		c := w.order.Front().Value.(*mirror.Chunk)
		w.remove(c.At())
		first = append(first, c)
	}
	return first
}
