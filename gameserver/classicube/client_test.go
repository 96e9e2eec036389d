package classicube

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/gameserver/games/gamestest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

func TestLogin(t *testing.T) {
	for name, c := range map[string]struct {
		sent []byte
		code string
		want string // the extensions
	}{
		"plain":               {hello("ada", 7, 0), "", ""},
		"CPE":                 {append(hello("ada", 7, cpeMark), extensionsOf(extFastMap, "NotHere", extPlayerList)...), "", extFastMap + extPlayerList},
		"custom blocks":       {append(append(hello("ada", 7, cpeMark), extensionsOf(extCustomBlocks)...), packetCustomBlocks, 1), "", extCustomBlocks},
		"another version":     {hello("ada", 6, 0), wire.FailWrongVersion, ""},
		"no name":             {hello("", 7, 0), wire.FailBadName, ""},
		"a bad name":          {hello("ada lovelace", 7, 0), wire.FailBadName, ""},
		"another packet":      {here(), wire.FailUnexpected, ""},
		"no packet":           {[]byte{0x99}, wire.FailUnknownMessage, ""},
		"too many extensions": {append(hello("ada", 7, cpeMark), begin(packetExtInfo).text("").u16(maxExtensions+1)...), wire.FailBadValue, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := readLogin(gamestest.NewScript(), newPacketReader(gamestest.NewScript(c.sent)))
			refused, _ := errors.AsType[*wire.Error](err)
			if c.code == "" && err != nil || c.code != "" && (refused == nil || refused.Code != c.code) {
				t.Fatalf("%v, want %q", err, c.code)
			}
			for _, e := range extensions {
				if l.features[e.name] != strings.Contains(c.want, e.name) {
					t.Errorf("%s is %v", e.name, l.features[e.name])
				}
			}
		})
	}
}

// The directions of the two games agree: both sides look at the same thing.
func TestAngles(t *testing.T) {
	for _, c := range []struct {
		yaw, pitch byte // in Classic: 0 looks along -Z, 64 along +X, and pitch 64 straight down
		look       [3]float64
	}{
		{0, 0, [3]float64{0, 0, -1}},
		{64, 0, [3]float64{1, 0, 0}},
		{128, 0, [3]float64{0, 0, 1}},
		{0, 64, [3]float64{0, -1, 0}},
		{0, 192, [3]float64{0, 1, 0}},
	} {
		gamestest.CheckLook(t, place{yaw: c.yaw, pitch: c.pitch}.pose(grid.Pos{}), c.look)
	}
}

// Windows keep in view while the player walks, and no level is larger than clients bear.
func TestWindows(t *testing.T) {
	for view := 1; view <= wire.MaxView; view++ {
		for sections := 1; sections <= wire.MaxSections; sections++ {
			w := windowAround(grid.ChunkPos{X: 5, Z: -3}, view, int32(sections*grid.ChunkSize))
			if w.volume() > maxVolume && w.radius > 1 || w.radius < 1 {
				t.Errorf("view %d, %d sections: radius %d, %d blocks", view, sections, w.radius, w.volume())
			}
			if int64(w.radius)+w.travel() > int64(view)+1 || int64(w.radius) > int64(view) {
				t.Errorf("view %d, %d sections: radius %d is out of view after %d chunks", view, sections, w.radius, w.travel())
			}
			if w.travel() >= int64(w.radius) && w.radius > 1 {
				t.Errorf("view %d: the player gets to the edge", view)
			}
		}
	}
}

// moveTo is the packet of a client that is at a place of the level of playing.
func moveTo(x, y, z float64) []byte {
	return begin(packetTeleport).u8(selfID).place(placeOf(motion.Pose{X: x, Y: y, Z: z}, grid.Pos{X: -32, Z: -32}, eyes))
}

// What a client sends before it is where it was put is meant for another level: it has no effect.
func TestClientIsIgnoredUntilItIsWhereItWasPut(t *testing.T) {
	edit := begin(packetSetBlockClient).u16(33).u16(10).u16(34).u8(1, 45)
	sent := append(append(moveTo(-20, 10, -20), edit...), moveTo(1.5, 10, 2.5)...)
	sent = append(append(sent, edit...), moveTo(2, 10, 2.5)...)
	cl, _ := playing(t, sent)
	if e := gamestest.Read[sessionmsg.Edit](t, cl); e.Seq != 100 || e.X != 1 || e.Y != 10 || e.Z != 2 || chunk.Block(e.Block) != chunk.Brick {
		t.Errorf("the client edits %+v", e)
	}
	if m := gamestest.Read[sessionmsg.Move](t, cl); m.X != 2 || m.Y != 10 || m.Z != 2.5 {
		t.Errorf("the client moves to %+v", m)
	}
}

// A refused edit is put back, a correction puts the client back, and what others build is shown.
func TestAnswersAreShown(t *testing.T) {
	cl, s := playing(t, append(here(), begin(packetSetBlockClient).u16(33).u16(9).u16(34).u8(0, 1)...))
	gamestest.Read[sessionmsg.Edit](t, cl)
	s.Out.Reset()
	gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 100, Block: uint16(chunk.Stone), Error: wire.RefusedClaimed})
	want := begin(packetSetBlock).u16(33).u16(9).u16(34).u8(1)
	if got := s.Out.String(); !strings.Contains(got, string(want)) || !strings.Contains(got, "claim") {
		t.Errorf("a refusal is shown as %q", got)
	}
	s.Out.Reset()
	gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 100, Block: uint16(chunk.Stone)})
	if s.Out.Len() > 0 {
		t.Errorf("an answer to nothing is shown as %q", s.Out.String())
	}
	gamestest.Receive(t, cl, sessionmsg.Correction{Pose: motion.Pose{X: 1, Y: 10, Z: 1}, Reason: "too_fast"})
	if got := s.Out.Bytes(); len(got) != 10 || got[0] != packetTeleport || got[1] != selfID {
		t.Errorf("a correction is shown as %x", got)
	}
	s.Out.Reset()
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: grid.Pos{X: 3, Y: 12, Z: 4}, To: chunk.Lamp})
	if want := begin(packetSetBlock).u16(35).u16(12).u16(36).u8(41); s.Out.String() != string(want) {
		t.Errorf("a lamp is shown as %x, want %x", s.Out.Bytes(), want)
	}
}

// A block that the client places before it is where it was put back to is taken from it again.
func TestEditAfterCorrection(t *testing.T) {
	brick := begin(packetSetBlockClient).u16(33).u16(10).u16(34).u8(1, 45)
	cl, s := playing(t, slices.Concat(here(), moveTo(2, 10, 2.5), brick))
	gamestest.Read[sessionmsg.Move](t, cl)
	gamestest.Receive(t, cl, sessionmsg.Correction{Pose: motion.Pose{X: 1, Y: 10, Z: 1}, Reason: "too_fast"})
	s.Out.Reset()
	if _, err := cl.Read(); err != io.EOF {
		t.Fatal(err)
	}
	gamestest.Tick(t, cl, time.Now())
	if want := begin(packetSetBlock).u16(33).u16(10).u16(34).u8(0); !strings.Contains(s.Out.String(), string(want)) {
		t.Errorf("it is not taken back: %x", s.Out.Bytes())
	}
}

// A client that says that it is far away, again and again, is not sent a level each time.
func TestLevelsAreBounded(t *testing.T) {
	cl, _ := playing(t, nil)
	levels := 0
	move := func(p motion.Pose) {
		if _, err := cl.readMove(placeOf(p, cl.mu.window.origin(), eyes), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	far := gamestest.Start
	far.X += 500
	for range 10 * levelsAtOnce {
		move(gamestest.Start)
		move(far)
		if !cl.mu.loaded {
			levels++
		}
		gamestest.Receive(t, cl, sessionmsg.Correction{Pose: gamestest.Start, Reason: "too_fast"})
		if !cl.mu.loaded || cl.mu.window.left(gamestest.Start) {
			t.Fatal("the client is not put back")
		}
	}
	if levels == 0 || levels > 2*levelsAtOnce {
		t.Errorf("the client was sent %d levels", levels)
	}
}

// A client that draws shapes is told of them, sees and places them. A door has two halves; it and stairs turn with the
// player.
func TestShapes(t *testing.T) {
	shaped := func(b chunk.Block) byte { return blocktable.ToClassic(b, blocktable.ClassicShaped) }
	door, upper := shaped(chunk.Door), blocktable.Placing{Looks: "east", Upper: true}.Block(chunk.StoneStairs)
	cl, s := playing(t, slices.Concat([]byte{packetCustomBlocks, 1}, here(),
		begin(packetSetBlockClient).u16(33).u16(10).u16(35).u8(1, door), begin(packetSetBlockClient).u16(33).u16(9).u16(36).u8(1, door),
		begin(packetSetBlockClient).u16(33).u16(10).u16(36).u8(1, shaped(chunk.CobbleSlab+1)),
		begin(packetSetBlockClient).u16(34).u16(10).u16(36).u8(1, shaped(chunk.StoneStairs)),
		begin(packetSetBlockClient).u16(36).u16(10).u16(36).u8(1, shaped(upper)),
	), extCustomBlocks, extBlockDefs, extBlockDefsExt)
	for name, packet := range map[string]packet{
		"slabs": begin(packetDefineBlockExt).u8(shaped(chunk.CobbleSlab+1)).text("cobble slab upper").
			u8(2, 128, 16, 16, 16, 16, 16, 16, 0, 4, 0).u8(0, 8, 0, 16, 16, 16).u8(0, 0, 0, 0, 0),
		"fences": begin(packetDefineBlockExt).u8(shaped(chunk.PlankFence)).text("plank fence").
			u8(2, 128, 4, 4, 4, 4, 4, 4, 1, 1, 0).u8(4, 0, 4, 12, 16, 12).u8(0, 0, 0, 0, 0),
	} {
		if !strings.Contains(s.Out.String(), string(packet)) {
			t.Errorf("the client is not told of %s", name)
		}
	}
	cl.mu.player.Pose.Yaw = 0 // it looks south
	cl.mu.lands[grid.ChunkPos{}].Set(chunk.IndexOf(1, 10, 4), chunk.Stone)
	gamestest.ReadEdits(t, cl,
		games.Change{Pos: grid.Pos{X: 1, Y: 10, Z: 3}, To: chunk.Door + 2},
		games.Change{Pos: grid.Pos{X: 1, Y: 11, Z: 3}, To: chunk.Door + 2},
		games.Change{Pos: grid.Pos{X: 1, Y: 10, Z: 4}, To: chunk.CobbleSlab + 1}, // no room for the other door
		games.Change{Pos: grid.Pos{X: 2, Y: 10, Z: 4}, To: chunk.StoneStairs + 2},
		games.Change{Pos: grid.Pos{X: 4, Y: 10, Z: 4}, To: upper + 2},
	)
	s.Out.Reset()
	gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 100, Block: uint16(chunk.Door + 2)})
	if want := begin(packetSetBlock).u16(33).u16(10).u16(35).u8(door + 2); !strings.HasSuffix(s.Out.String(), string(want)) {
		t.Errorf("a door is shown as %x", s.Out.Bytes())
	}
	if b, _ := cl.predicted()(grid.Pos{X: 1, Y: 10, Z: 3}); b != chunk.Door+2 {
		t.Errorf("what is done next is done with %v", b)
	}
}

// A right click uses both halves of a door, and the block that the client asks for beside it is put back. Other clicks
// have no effect.
func TestDoors(t *testing.T) {
	click := func(button, action byte, x, y, z uint16) []byte {
		return begin(packetPlayerClick).u8(button, action).u16(0).u16(0).u8(255).u16(x).u16(y).u16(z).u8(1)
	}
	brick := func(x, y, z uint16) []byte { return begin(packetSetBlockClient).u16(x).u16(y).u16(z).u8(1, 45) }
	cl, s := playing(t, slices.Concat(here(),
		click(rightButton, isPressed, 33, 11, 35), brick(33, 11, 34), click(rightButton, 1, 33, 11, 35), click(rightButton, isPressed, 33, 10, 35),
		click(0, isPressed, 33, 10, 35), click(rightButton, isPressed, 0xffff, 0xffff, 0xffff), click(rightButton, isPressed, 34, 9, 35), brick(34, 10, 35),
		begin(packetSetBlockClient).u16(33).u16(11).u16(35).u8(0, 45),
	), extPlayerClick)
	lower, upper := grid.Pos{X: 1, Y: 10, Z: 3}, grid.Pos{X: 1, Y: 11, Z: 3}
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: lower, To: chunk.Door}, games.Change{Pos: upper, To: chunk.Door})
	s.Out.Reset()
	gamestest.ReadEdits(t, cl,
		games.Change{Pos: upper, To: chunk.Door + 4}, games.Change{Pos: lower, To: chunk.Door + 4},
		games.Change{Pos: lower, To: chunk.Door}, games.Change{Pos: upper, To: chunk.Door}, // before the answer
		games.Change{Pos: grid.Pos{X: 2, Y: 10, Z: 3}, To: chunk.Brick},
		games.Change{Pos: upper}, games.Change{Pos: lower},
	)
	gamestest.Tick(t, cl, time.Now())
	if want := begin(packetSetBlock).u16(33).u16(11).u16(34).u8(0); !strings.Contains(s.Out.String(), string(want)) {
		t.Errorf("the block beside the door is not put back: %x", s.Out.Bytes())
	}
}

// The hotbar, the inventory and the shapes are sent once: the client's own hotbar outlasts another level, and a login.
func TestHotbarIsKept(t *testing.T) {
	cl, s := playing(t, []byte{packetCustomBlocks, 1}, extSetHotbar, extInventoryOrder, extCustomBlocks, extBlockDefs, extBlockDefsExt)
	kinds := [][]byte{
		begin(packetSetHotbar).u8(62, 8), begin(packetInventoryOrder).u8(1, 1), begin(packetInventoryOrder).u8(44, 0),
		defineBlock(blocktable.ClassicShapes()[0]),
	}
	for _, p := range kinds {
		if !strings.Contains(s.Out.String(), string(p)) {
			t.Errorf("the client is not sent %x", p)
		}
	}
	s.Out.Reset()
	gamestest.Receive(t, cl, cl.mu.welcome)
	for x := int32(-1); x <= 1; x++ {
		for z := int32(-1); z <= 1; z++ {
			gamestest.Receive(t, cl, gamestest.Floor(t, grid.ChunkPos{X: x, Z: z}))
		}
	}
	if !cl.mu.loaded {
		t.Fatal("there is no other level")
	}
	for _, p := range kinds {
		if strings.Contains(s.Out.String(), string(p)) {
			t.Errorf("the client is sent %x again", p)
		}
	}
}

// Each extension is used by clients that have it, and only by them.
func TestExtensionsAreUsed(t *testing.T) {
	packets := map[string]byte{ // what a client is sent
		extClickDistance: packetClickDistance, extCustomBlocks: packetCustomBlocks, extPlayerList: packetAddPlayerName, extEnvColors: packetEnvColor,
		extMapAspect: packetMapProperty, extHackControl: packetHackControl, extSetHotbar: packetSetHotbar, extInventoryOrder: packetInventoryOrder, extBlockDefsExt: packetDefineBlockExt,
	}
	sizes := map[byte]int{
		packetIdentification: 130, packetPing: 0, packetLevelBegin: 0, packetLevelData: 1027, packetLevelEnd: 6, packetSpawn: 73, packetTeleport: 9, packetMessage: 65,
		packetExtInfo: 66, packetExtEntry: 68, packetClickDistance: 2, packetCustomBlocks: 1, packetAddPlayerName: 195, packetEnvColor: 7, packetHackControl: 7,
		packetAddEntity2: 137, packetDefineBlockExt: 87, packetMapProperty: 5, packetSetHotbar: 2, packetInventoryOrder: 2,
	}
	for _, e := range extensions {
		var sent []byte
		has := []string{e.name}
		if e.name == extBlockDefsExt {
			has = append(has, extBlockDefs, extCustomBlocks) // which it needs
		}
		custom := slices.Contains(has, extCustomBlocks)
		if custom { // the client's answer
			sent = []byte{packetCustomBlocks, 1}
		}
		cl, s := playing(t, sent, has...)
		if !cl.features[e.name] || len(cl.features) != len(has) {
			t.Errorf("with %s the client has %v", e.name, cl.features)
		}
		gamestest.Tick(t, cl, time.Now())
		got := make(map[byte]bool)
		for out := s.Out.Bytes(); len(out) > 0; {
			kind := out[0]
			size, known := sizes[kind]
			if kind == packetLevelBegin && e.name == extFastMap {
				size += 4
			}
			if !known || len(out) < 1+size {
				t.Fatalf("with %s the client is sent %x", e.name, out[:min(len(out), 40)])
			}
			got[kind], out = true, out[1+size:]
		}
		for name, kind := range packets {
			if got[kind] != slices.Contains(has, name) {
				t.Errorf("with %s the client is sent packet %#x of %s: %v", e.name, kind, name, got[kind])
			}
		}
	}
}

// A chunk that comes again is shown by what differs.
func TestChunkThatComesAgain(t *testing.T) {
	cl, s := playing(t, nil)
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: grid.Pos{X: 3, Y: 12, Z: 4}, To: chunk.Lamp})
	s.Out.Reset()
	gamestest.Receive(t, cl, gamestest.Floor(t, grid.ChunkPos{}))
	if want := begin(packetSetBlock).u16(35).u16(12).u16(36).u8(0); s.Out.String() != string(want) {
		t.Errorf("the chunk without the lamp is shown as %x, want %x", s.Out.Bytes(), want)
	}
}

// idsOf returns the ids of the players who are shown.
func idsOf(a *avatars) map[byte]bool {
	used := make(map[byte]bool)
	for _, v := range a.All() {
		if v.As.on {
			used[v.As.id] = true
		}
	}
	return used
}

// More players than ids are shown as soon as others have gone; nobody has the id of another.
func TestMorePlayersThanIDs(t *testing.T) {
	for _, c := range []struct {
		features []string
		ids      int
	}{{nil, plainIDs}, {[]string{extPlayerList}, extendedIDs}} {
		cl, _ := playing(t, nil, c.features...)
		gamestest.ReceiveDelta(t, cl, 1, gamestest.Entering(300, 3))
		now := time.Now()
		gamestest.Tick(t, cl, now)
		if n := len(idsOf(&cl.mu.avatars)); n != c.ids {
			t.Fatalf("%d players are shown, want %d", n, c.ids)
		}
		var gone sessionmsg.TickDelta
		for i := range uint32(290) {
			gone.Leave = append(gone.Leave, i)
		}
		gamestest.ReceiveDelta(t, cl, 2, gone)
		gamestest.Tick(t, cl, now.Add(games.TickEvery))
		if used := idsOf(&cl.mu.avatars); len(used) != 10 || len(cl.mu.avatars.All()) != 10 || len(cl.mu.avatars.free) != c.ids-10 {
			t.Errorf("%d players are shown, of %d; %d ids are free", len(used), len(cl.mu.avatars.All()), len(cl.mu.avatars.free))
		}
	}
}

func TestChat(t *testing.T) {
	for _, c := range []struct {
		sent [][]byte
		want sessionmsg.FromClient
	}{
		{[][]byte{begin(packetMessage).u8(0).text("hello")}, sessionmsg.Chat{Text: "hello"}},
		{[][]byte{begin(packetMessage).u8(0).text("%4he&fllo 100% &")}, sessionmsg.Chat{Text: "hello 100% &"}},
		{[][]byte{begin(packetMessage).u8(0).text("/tp 1 2 3")}, sessionmsg.Command{Text: "tp 1 2 3"}},
		{[][]byte{begin(packetMessage).u8(0).line([]byte{'h', 0x81, 'h'})}, sessionmsg.Chat{Text: "hüh"}},
		{[][]byte{
			begin(packetMessage).u8(1).text(strings.Repeat("a", 63) + " "), begin(packetMessage).u8(0).text("b"),
		}, sessionmsg.Chat{Text: strings.Repeat("a", 63) + " b"}},
		{[][]byte{begin(packetMessage).u8(0).text("&4"), begin(packetMessage).u8(0).text("x")}, sessionmsg.Chat{Text: "x"}},
	} {
		cl, _ := playing(t, slices.Concat(c.sent...), extLongerMessages)
		if got, err := cl.Read(); err != nil || got != c.want {
			t.Errorf("%q becomes %#v, %v", c.sent, got, err)
		}
	}
}

// A client's ping is answered, and its answer to one is not.
func TestPing(t *testing.T) {
	cl, s := playing(t, slices.Concat(begin(packetTwoWayPing).u8(0).u16(7), begin(packetTwoWayPing).u8(1).u16(8), here()), extTwoWayPing)
	s.Out.Reset()
	if _, err := cl.Read(); err == nil {
		t.Error("a ping becomes a message")
	}
	cl.mu.out.Flush() //nolint:errcheck // into memory
	if want := begin(packetTwoWayPing).u8(0).u16(7); s.Out.String() != string(want) {
		t.Errorf("pings are answered by %x", s.Out.Bytes())
	}
}

func TestReasonsForTheEnd(t *testing.T) {
	long := strings.Repeat("because ", 20)
	for why, want := range map[string]string{ // the beginning of the reason
		"You are banned.": "You are banned.", long: long[:textBytes-1],
	} {
		cl, s := playing(t, nil)
		s.Out.Reset()
		gamestest.Receive(t, cl, sessionmsg.Failure{Code: wire.FailBanned, Message: why})
		out := s.Out.Bytes()
		last := out[len(out)-1-textBytes:]
		if last[0] != packetDisconnect || decodeText(last[1:]) != want {
			t.Errorf("%q ends with %q", why, last)
		}
		s.Out.Reset()
		gamestest.Receive(t, cl, sessionmsg.Notice{Text: "late"})
		gamestest.Tick(t, cl, time.Now())
		if s.Out.Len() > 0 {
			t.Errorf("%q comes after the end", s.Out.String())
		}
	}
}

// The sky is darkest at midnight and lightest at noon.
func TestDaylight(t *testing.T) {
	if daylight(0) != 0 || daylight(.5) != 1 || math.Abs(daylight(1.25)-.5) > 1e-9 {
		t.Errorf("daylight at midnight %v, at noon %v, at six %v", daylight(0), daylight(.5), daylight(1.25))
	}
}

// What is in the hand is sent to the session when it changes, if the client says it.
func TestHeldBlock(t *testing.T) {
	holds := here()
	holds[1] = blocktable.ToClassic(chunk.Brick, blocktable.ClassicPlain)
	sent := append(slices.Concat(holds, holds), begin(packetMessage).u8(0).text("x")...)
	for _, want := range []struct {
		features []string
		messages []sessionmsg.FromClient
	}{
		{nil, []sessionmsg.FromClient{sessionmsg.Chat{Text: "x"}}},
		{[]string{extHeldBlock}, []sessionmsg.FromClient{sessionmsg.Stance{Held: uint16(chunk.Brick)}, sessionmsg.Chat{Text: "x"}}},
	} {
		cl, _ := playing(t, sent, want.features...)
		for _, m := range want.messages {
			if got, err := cl.Read(); err != nil || got != m {
				t.Errorf("with %v the client sends %#v, %v; want %#v", want.features, got, err, m)
			}
		}
	}
}
