package crowd

import (
	"time"

	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// loading is what a fresh player needs until all land in view is here.
type loading struct {
	due      time.Time // when the player was to connect
	missing  int       // chunks
	received inbound
}

// load reads what the server has sent, and requests the chunks of which hashes have come. The crowd's lock is held.
func (c *Crowd) load(p *client) {
	n, ok := c.read(p)
	if !ok {
		return
	}
	l := p.loading
	err := l.received.each(c.carrier, c.buffer[:n], func(message []byte) error {
		if message[0] == sessionmsg.TickFrame {
			return nil
		}
		m, err := sessionmsg.DecodeServerCBOR(message)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case sessionmsg.ChunkHash:
			request, err := sessionmsg.EncodeClientCBOR(sessionmsg.ChunkRequest{X: m.Chunk.X, Z: m.Chunk.Z})
			if err != nil {
				return err
			}
			p.unsent = c.carrier.Append(p.unsent, request) // the next move sends them
		case sessionmsg.ChunkData:
			l.missing--
		}
		return nil
	})
	switch {
	case err != nil:
		c.remove(p, err)
	case l.missing <= 0:
		c.mu.Loaded.Add(time.Since(l.due).Seconds())
		p.loading = nil
	}
}
