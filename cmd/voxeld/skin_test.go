package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// enters records the avatars that enter, by name.
type enters struct{ skins map[string]player.Skin }

func (e enters) Tick(uint16) {}

func (e enters) Motion(grid.ChunkPos, *sessionmsg.Motion) {}

func (e enters) Delta(n *sessionmsg.TickDelta) {
	for _, a := range n.Enter {
		e.skins[a.Name] = a.Skin
	}
}

// skinOf joins by WebSocket in CBOR, waits until a player enters, and returns their skin.
func skinOf(t *testing.T, url, name, other string) player.Skin {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, url, nil) //nolint:bodyclose // the library closes it
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	ws.SetReadLimit(1 << 20)
	if err := ws.Write(ctx, websocket.MessageText, []byte(`{"type":"join","version":2,"name":"`+name+`","view":1,"encoding":"cbor"}`)); err != nil {
		t.Fatal(err)
	}
	seen := enters{skins: make(map[string]player.Skin)}
	for {
		kind, data, err := ws.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if kind != websocket.MessageBinary || data[0] != sessionmsg.TickFrame {
			continue
		}
		if err := sessionmsg.ReadTick(data, seen); err != nil {
			t.Fatal(err)
		}
		if skin, here := seen.skins[other]; here {
			return skin
		}
	}
}

// A player's skin is seen from another node, by clients that understand skins.
func TestSkins(t *testing.T) {
	t.Parallel()
	first := startDaemon(t)
	second := startDaemon(t, "--join", first.invite())
	if _, status := welcome(t, http.DefaultClient, "ws://"+first.HTTP+"/ws?skin=red", "eve", nil); status != http.StatusBadRequest {
		t.Errorf("a skin without a number: status %d", status)
	}
	welcome(t, http.DefaultClient, "ws://"+first.HTTP+"/ws?skin=03fa10cd", "ada", nil)
	welcome(t, http.DefaultClient, "ws://"+first.HTTP+"/ws?skin=", "bob", nil)
	url := "ws://" + second.HTTP + "/ws"
	if got := skinOf(t, url+"?skin=", "gus", "ada"); got != 0x03fa10cd {
		t.Errorf("on the other node ada's skin is %08x", got)
	}
	if got := skinOf(t, url+"?skin=", "gil", "bob"); got != 0 {
		t.Errorf("on the other node bob's skin is %08x", got)
	}
	if got := skinOf(t, url, "old", "ada"); got != 0 {
		t.Errorf("an older client gets ada's skin %08x", got)
	}
}
