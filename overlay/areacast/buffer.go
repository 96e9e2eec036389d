package areacast

import "math/rand/v2"

// buffer is the position update buffer: players whose newest update may still be forwarded, in random order. It holds
// at most one update per player.
type buffer struct{ of []*contact }

// put adds the player unless they are in the buffer already; the buffer always uses their newest update.
func (b *buffer) put(c *contact) {
	if c.kept < 0 {
		c.kept = len(b.of)
		b.of = append(b.of, c)
	}
}

func (b *buffer) remove(c *contact) {
	if c.kept < 0 {
		return
	}
	last := len(b.of) - 1
	b.of[c.kept] = b.of[last]
	b.of[c.kept].kept = c.kept
	b.of[last] = nil
	b.of = b.of[:last]
	c.kept = -1
}

// drop removes updates that have travelled as far as they may.
func (b *buffer) drop(maxAge int) {
	for i := len(b.of) - 1; i >= 0; i-- {
		if int(b.of[i].age) >= maxAge {
			b.remove(b.of[i])
		}
	}
}

// age increments the age of the first n updates.
func (b *buffer) age(n int) {
	for _, c := range b.of[:n] {
		c.age++
	}
}

// draw moves up to n random updates to the front and returns their number.
func (b *buffer) draw(n int, rng *rand.Rand) int {
	n = min(n, len(b.of))
	for i := range n {
		j := i + rng.IntN(len(b.of)-i)
		b.of[i], b.of[j] = b.of[j], b.of[i]
		b.of[i].kept, b.of[j].kept = i, j
	}
	return n
}
