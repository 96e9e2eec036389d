package gameserver

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A client that understands hashes gets those first, and the data of the chunks that it requests, once for each hash.
func TestChunkHashes(t *testing.T) {
	address := serveReal(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	enter := func(name, query string) (send func(string), receive func() sessionmsg.FromServer) {
		ws, _, err := websocket.Dial(ctx, "ws://"+address+"/ws"+query, nil) //nolint:bodyclose // the library closes it
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ws.CloseNow() })
		ws.SetReadLimit(1 << 20)
		send = func(text string) {
			t.Helper()
			if err := ws.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		receive = func() sessionmsg.FromServer {
			t.Helper()
			_, data, err := ws.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			m, err := sessionmsg.DecodeServer(data)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		send(fmt.Sprintf(`{"type":"join","version":1,"name":%q,"view":1,"encoding":"json"}`, name))
		return send, receive
	}

	_, receive := enter("old", "")
	hashes := make(map[grid.ChunkPos][]byte) // of the data that a client gets which does not understand hashes
	for len(hashes) < 9 {
		switch m := receive().(type) {
		case sessionmsg.ChunkHash:
			t.Fatalf("an older client got %+v", m)
		case sessionmsg.ChunkData:
			hashes[m.Chunk] = sessionmsg.HashChunk(m.Data)
		}
	}

	send, receive := enter("new", "?hashes=")
	var offered []grid.ChunkPos
	for len(offered) < 9 {
		switch m := receive().(type) {
		case sessionmsg.ChunkData:
			t.Fatalf("got the data of %v before requesting it", m.Chunk)
		case sessionmsg.ChunkHash:
			if !slices.Equal(m.Hash, hashes[m.Chunk]) {
				t.Errorf("chunk %v: hash %x, want %x", m.Chunk, m.Hash, hashes[m.Chunk])
			}
			offered = append(offered, m.Chunk)
		}
	}
	request := func(at grid.ChunkPos) { send(fmt.Sprintf(`{"type":"chunk","x":%d,"z":%d}`, at.X, at.Z)) }
	request(grid.ChunkPos{X: 1000}) // not in view: ignored
	request(offered[0])
	request(offered[0]) // again: ignored
	request(offered[1])
	send(`{"type":"ping","nonce":1}`)
	var got []grid.ChunkPos
	for pong := false; !pong || len(got) < 2; {
		switch m := receive().(type) {
		case sessionmsg.ChunkData:
			if !slices.Equal(sessionmsg.HashChunk(m.Data), hashes[m.Chunk]) {
				t.Errorf("chunk %v: the data is not that of the hash", m.Chunk)
			}
			got = append(got, m.Chunk)
		case sessionmsg.Pong:
			if pong { // everything that was sent before is here
				continue
			}
			pong = true
		}
	}
	slices.SortFunc(got, func(a, b grid.ChunkPos) int { return slices.Index(offered, a) - slices.Index(offered, b) })
	if !slices.Equal(got, offered[:2]) {
		t.Errorf("got the data of %v, want that of %v", got, offered[:2])
	}
	request(offered[0]) // its data was sent
	send(`{"type":"ping","nonce":2}`)
	for {
		switch m := receive().(type) {
		case sessionmsg.ChunkData:
			t.Errorf("got the data of %v again", m.Chunk)
		case sessionmsg.Pong:
			return
		}
	}
}
