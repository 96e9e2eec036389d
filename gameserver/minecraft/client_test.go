package minecraft

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"image/png"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Tnze/go-mc/nbt"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/gameserver/games/gamestest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// has reports whether a packet is among those received.
func has(packets [][]byte, want packet) bool {
	return slices.ContainsFunc(packets, func(p []byte) bool { return bytes.Equal(p, want) })
}

func TestHandshake(t *testing.T) {
	for _, c := range []struct {
		name string
		sent []byte
		want string // the refusal; empty: the client may log in
	}{
		{"a player", hello("ada", protocolVersion, wantLogin), ""},
		{"another version", hello("ada", 763, wantLogin), "1.20.2"},
		{"blanks", hello("a b", protocolVersion, wantLogin), "letters"},
		{"a long name", hello(strings.Repeat("a", 17), protocolVersion, wantLogin), "letters"},
		{"neither status nor login", hello("ada", protocolVersion, 3), "handshake"},
		{"a long packet", []byte{0xff, 0xff, 0xff, 0x7f}, "bytes"},
	} {
		_, join, err := newTestAdapter().Open(t.Context(), gamestest.NewScript(c.sent))
		switch {
		case c.want == "" && (err != nil || join.Name != "ada"):
			t.Errorf("%s: %+v, %v", c.name, join, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// The status names the version also for other ones, and a ping is answered.
func TestStatus(t *testing.T) {
	handshake := begin(packetHandshake).varint(47).text("localhost").i16(25566).varint(wantStatus)
	frames := appendFrame(appendFrame(nil, handshake, false), begin(packetStatusRequest), false)
	s := gamestest.NewScript(appendFrame(frames, begin(packetStatusPing).i64(77), false))
	if _, _, err := newTestAdapter().Open(t.Context(), s); err != errStatus {
		t.Fatal(err)
	}
	got := received(t, s, false)
	if len(got) != 2 || !has(got, begin(packetStatusPong).i64(77)) {
		t.Fatalf("the client is sent %x", got)
	}
	var status struct {
		Version struct{ Protocol int }
		Players struct {
			Online, Max int
			Sample      []struct{ Name, ID string }
		}
		Description struct{ Text string }
		Favicon     string
	}
	f := fields{data: got[0][1:]}
	if err := json.Unmarshal([]byte(f.text(math.MaxInt16)), &status); err != nil {
		t.Fatal(err)
	}
	if status.Version.Protocol != 764 || status.Players.Online != 3 || status.Players.Max != 4 || status.Description.Text != "a world" {
		t.Errorf("the status is %+v", status)
	}
	if s := status.Players.Sample; len(s) != 3 || s[2].Name != "eve" || len(s[2].ID) != 36 {
		t.Errorf("the players are %+v", s)
	}
	encoded, _ := strings.CutPrefix(status.Favicon, "data:image/png;base64,")
	drawn, err := png.DecodeConfig(base64.NewDecoder(base64.StdEncoding, strings.NewReader(encoded)))
	if err != nil || drawn.Width != 64 || drawn.Height != 64 { // the client takes no other size
		t.Errorf("the icon is %+v, %v", drawn, err)
	}
}

// The ping of old clients is answered at once, without waiting for a frame.
func TestOldPing(t *testing.T) {
	s := gamestest.NewScript([]byte{0xfe, 1})
	if _, _, err := newTestAdapter().Open(t.Context(), s); err != errStatus {
		t.Fatal(err)
	}
	want := []byte("\xff\x00\x19")
	for _, letter := range "§1\x00127\x001.20.2\x00a world\x003\x004" {
		want = append(want, 0, byte(letter))
	}
	if got := s.Out.Bytes(); !bytes.Equal(got, want) {
		t.Errorf("it is answered by %q, want %q", got, want)
	}
}

// The client climbs ladders, and knows fences, by the tags of their numbers in the game's registry.
func TestTags(t *testing.T) {
	const ladder, oakFence = 196, 254
	for _, p := range configure(256) {
		if p[0] != packetConfigTags {
			continue
		}
		f, all := fields{data: p[1:]}, make(map[string][]int32)
		for range f.varint() {
			registry := f.text(64)
			for range f.varint() {
				name := registry + " " + f.text(64)
				for range f.varint() {
					all[name] = append(all[name], f.varint())
				}
			}
		}
		if f.bad || len(f.data) > 0 {
			t.Fatal("the packet cannot be read")
		}
		if !slices.Equal(all["minecraft:block minecraft:climbable"], []int32{ladder}) || !slices.Contains(all["minecraft:block minecraft:fences"], oakFence) ||
			!slices.Equal(all["minecraft:fluid minecraft:water"], []int32{2, 1}) {
			t.Errorf("the tags are %v", all)
		}
		return
	}
	t.Error("there are no tags")
}

// What the client is told about the world is what the library of another project reads.
func TestRegistries(t *testing.T) {
	var got registries
	d := nbt.NewDecoder(strings.NewReader(string(registriesFor(256))))
	d.NetworkFormat(true)
	if _, err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if e := got.Dimensions.Value[0]; e.Name != dimension || e.Element.Height != 256 || e.Element.MinY != 0 || !e.Element.HasSkylight {
		t.Errorf("the world is %+v", e)
	}
	if got.Biomes.Value[0].Name != biome || len(got.Damages.Value) != 44 || got.Damages.Value[43].ID != 43 {
		t.Errorf("the registries are %+v", got)
	}
}

// What a client sends before it confirms where it was put has no effect.
func TestClientIsIgnoredUntilItConfirms(t *testing.T) {
	moveTo := func(x float64) packet { return begin(packetMovePosition).f64(x, 10, 2.5).u8(1) }
	cl, s := playing(t, sent(
		moveTo(-20), useOn(1, 9, 2, 1), begin(packetConfirmTeleport).varint(9), moveTo(-21), confirm(), moveTo(2), useOn(1, 9, 2, 2),
	))
	if m := gamestest.Read[sessionmsg.Move](t, cl); m.X != 2 || m.Y != 10 || m.Z != 2.5 {
		t.Errorf("the client moves to %+v", m)
	}
	if e := gamestest.Read[sessionmsg.Edit](t, cl); e.Seq != 100 || e.X != 1 || e.Y != 10 || e.Z != 2 || chunk.Block(e.Block) != chunk.Stone {
		t.Errorf("the client edits %+v", e)
	}
	gamestest.Tick(t, cl, time.Now())
	if got := received(t, s, true); !has(got, begin(packetAckBlock).varint(1)) {
		t.Errorf("the request without effect is answered by %x", got)
	}
}

// A block goes to the face that was clicked, but into water and plants; items that are no block place nothing.
func TestWhereBlocksGo(t *testing.T) {
	choose := begin(packetSetCreativeSlot).i16(37).u8(1).varint(int(blocktable.MinecraftItem(chunk.Lamp))).u8(64, 10, 0)
	sword := begin(packetSetCreativeSlot).i16(38).u8(1).varint(800).u8(1, 0)
	cl, _ := playing(t, sent(
		confirm(), useOn(1, 9, 2, 1), choose, begin(packetSelectSlot).i16(1), useOn(3, 10, 3, 2),
		sword, begin(packetSelectSlot).i16(2), useOn(1, 9, 2, 3), dig(1, 9, 2, 4),
	))
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: grid.Pos{X: 3, Y: 10, Z: 3}, To: chunk.Poppy})
	gamestest.ReadEdits(t, cl,
		games.Change{Pos: grid.Pos{X: 1, Y: 10, Z: 2}, To: chunk.Stone},
		games.Change{Pos: grid.Pos{X: 3, Y: 10, Z: 3}, To: chunk.Lamp},
		games.Change{Pos: grid.Pos{X: 1, Y: 9, Z: 2}, To: chunk.Air},
	)
}

// Requests are acknowledged when all up to them are answered; a refused one is put back, with the reason.
func TestAnswersAreShown(t *testing.T) {
	cl, s := playing(t, sent(confirm(), dig(1, 9, 2, 0), dig(1, 9, 3, 1)))
	gamestest.Read[sessionmsg.Edit](t, cl)
	gamestest.Read[sessionmsg.Edit](t, cl)
	gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 101, Block: uint16(chunk.Air)})
	got := received(t, s, true)
	if !has(got, begin(packetBlock).position(grid.Pos{X: 1, Y: 9, Z: 3}).varint(0)) || len(got) != 1 {
		t.Errorf("the second answer is shown as %x", got)
	}
	gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 100, Block: uint16(chunk.Stone), Error: wire.RefusedClaimed})
	got = received(t, s, true)
	if len(got) != 3 || !strings.Contains(string(got[0]), "claim") ||
		!has(got, begin(packetBlock).position(grid.Pos{X: 1, Y: 9, Z: 2}).varint(1)) || !has(got, begin(packetAckBlock).varint(1)) {
		t.Errorf("the refusal is shown as %x", got)
	}
	gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 100, Block: uint16(chunk.Stone)})
	if got := received(t, s, true); len(got) > 0 {
		t.Errorf("an answer to nothing is shown as %x", got)
	}
	gamestest.Receive(t, cl, sessionmsg.Correction{Pose: motion.Pose{X: 1, Y: 10, Z: 1}, Reason: "too_fast"})
	want := begin(packetTeleport).f64(1, 10, 1).f32(0).f32(float32(math.Copysign(0, -1))).u8(0).varint(2)
	if got := received(t, s, true); !has(got, want) {
		t.Errorf("a correction is shown as %x", got)
	}
}

// Texts of signs are shown when they arrive, and when their chunk is shown. One that is made blank is blank there, too.
func TestSignsAreShown(t *testing.T) {
	cl, s := playing(t, nil)
	at := chunk.IndexOf(1, 9, 2)
	front := begin(packetBlockEntity).position(at.Pos(grid.ChunkPos{})).varint(signEntity)
	shows := func(what string, want ...string) {
		t.Helper()
		var shown [][]string
		for _, p := range received(t, s, true) {
			if data, is := strings.CutPrefix(string(p), string(front)); is {
				var d signData
				decoder := nbt.NewDecoder(strings.NewReader(data))
				decoder.NetworkFormat(true)
				if _, err := decoder.Decode(&d); err != nil {
					t.Fatal(err)
				}
				shown = append(shown, d.Front.Lines)
			}
		}
		if len(shown) != 1 || !slices.Equal(shown[0], want) {
			t.Errorf("%s: shown is %q, want %q", what, shown, want)
		}
	}
	gamestest.Receive(t, cl, sessionmsg.SignsOf(grid.ChunkPos{}, []nodemsg.SignAt{{At: at, Text: "to the\nharbour 🌍"}}))
	want := []string{`{"text":"to the"}`, `{"text":"harbour \ud83c\udf0d"}`, `{"text":""}`, `{"text":""}`}
	shows("a text", want...)
	if err := cl.showChunk(grid.ChunkPos{}); err != nil {
		t.Fatal(err)
	}
	gamestest.Tick(t, cl, time.Now())
	shows("after its chunk", want...)
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: at.Pos(grid.ChunkPos{}), To: chunk.Sign})
	gamestest.Tick(t, cl, time.Now())
	shows("made blank", `{"text":""}`, `{"text":""}`, `{"text":""}`, `{"text":""}`)
	if signs := cl.mu.lands[grid.ChunkPos{}].signs; len(signs) > 0 {
		t.Errorf("kept are %q", signs)
	}
}

// Others come into the list and into sight, move, and go again.
func TestOthersAreShown(t *testing.T) {
	cl, s := playing(t, nil)
	id := player.ID{1, 2, 3}
	frame := func(tick uint64, d sessionmsg.TickDelta) {
		gamestest.ReceiveDelta(t, cl, tick, d)
		gamestest.Tick(t, cl, time.Now())
	}
	enter := func(x float64) sessionmsg.TickDelta {
		at := sessionmsg.PlaceOf(grid.ChunkPos{}, motion.Pose{X: x, Y: 10, Z: 3})
		return sessionmsg.TickDelta{Enter: []sessionmsg.TickAvatar{{Index: 4, Player: id, Name: "a-name-of-20-letters", Place: at}}}
	}
	frame(1, enter(3))
	got := received(t, s, true)
	want := append(begin(packetPlayers).u8(playerAddAndList).varint(1), id[:]...).text("a-name-of-20-let").varint(0).varint(1).u8(1)
	if !has(got, want) || !strings.HasPrefix(string(got[1]), string(append(begin(packetSpawnEntity).varint(2), id[:]...))) {
		t.Fatalf("a player is shown as %x", got)
	}
	if hit, known := cl.mu.avatars.player(2); !known || hit != id {
		t.Errorf("entity 2 is %v", hit)
	}
	frame(2, enter(4))
	if got := received(t, s, true); !has(got, begin(packetMoveEntity).varint(2).i16(unit).i16(0).i16(0).u8(0, 0, 1)) {
		t.Errorf("a step is shown as %x", got)
	}
	frame(3, enter(24))
	if got := received(t, s, true); len(got) != 1 || got[0][0] != packetTeleportEntity {
		t.Errorf("a jump is shown as %x", got)
	}
	sneaking, standing := enter(24), enter(24)
	sneaking.Enter[0].Stance = nodemsg.Stance{Held: chunk.Brick, Sneaks: true}
	standing.Enter[0].Stance = nodemsg.Stance{Held: math.MaxUint16} // of a later version
	data := func(flags, pose byte) packet {
		return begin(packetEntityData).varint(2).u8(entityFlags, dataByte, flags, entityPose, dataPose, pose, dataEnd)
	}
	frame(4, sneaking)
	brick := begin(packetEquipment).varint(2).u8(0, 1).varint(int(blocktable.MinecraftItem(chunk.Brick))).u8(1, 0)
	if got := received(t, s, true); len(got) != 2 || !has(got, brick) || !has(got, data(flagSneaks, poseSneaks)) {
		t.Errorf("a player who sneaks with a brick is shown as %x", got)
	}
	frame(4, standing)
	if got := received(t, s, true); len(got) != 2 || !has(got, begin(packetEquipment).varint(2).u8(0, 0)) || !has(got, data(0, poseStands)) {
		t.Errorf("a player who stands again is shown as %x", got)
	}
	frame(5, sessionmsg.TickDelta{Leave: []uint32{4}})
	if got := received(t, s, true); !has(got, begin(packetRemoveEntities).varint(1).varint(2)) || len(cl.mu.avatars.entities) > 0 {
		t.Errorf("a player who has gone is shown as %x", got)
	}
}

// A client that does not answer is disconnected.
func TestSilentClientIsDisconnected(t *testing.T) {
	cl, s := playing(t, nil)
	now := time.Now()
	if err := cl.Tick(now.Add(askEvery)); err != nil {
		t.Fatal(err)
	}
	if got := received(t, s, true); len(got) != 2 || got[0][0] != packetKeepAlive || got[1][0] != packetTime {
		t.Errorf("the client is sent %x", got)
	}
	if err := cl.Tick(now.Add(answerWithin + time.Second)); err == nil {
		t.Error("the client goes on")
	}
	if got := received(t, s, true); len(got) != 1 || got[0][0] != packetDisconnect {
		t.Errorf("the client is sent %x", got)
	}
}

func TestChat(t *testing.T) {
	for _, c := range []struct {
		sent packet
		want sessionmsg.FromClient
	}{
		{chatPacket(" hello "), sessionmsg.Chat{Text: "hello"}},
		{chatPacket(strings.Repeat("ü", 200)), sessionmsg.Chat{Text: strings.Repeat("ü", 128)}},
		{begin(packetCommand).text("tp 1 2 3").i64(0), sessionmsg.Command{Text: "tp 1 2 3"}},
	} {
		cl, _ := playing(t, sent(chatPacket(" "), c.sent))
		gamestest.Read[sessionmsg.Stance](t, cl)
		if got, err := cl.Read(); err != nil || got != c.want {
			t.Errorf("%q becomes %#v, %v", c.sent, got, err)
		}
	}
	cl, s := playing(t, nil)
	gamestest.Receive(t, cl, sessionmsg.Notice{Text: `a §4"b"`})
	if got := received(t, s, true); len(got) != 1 || !strings.Contains(string(got[0]), `{"text":"a \"b\"","color":"yellow"}`) {
		t.Errorf("a notice is shown as %q", got)
	}
}

// A kick has the form that the state of the connection requires.
func TestReasonsForTheEnd(t *testing.T) {
	banned := sessionmsg.Failure{Code: wire.FailBanned, Message: "You are banned."}
	cl, s := playing(t, nil)
	gamestest.Receive(t, cl, banned)
	gamestest.Receive(t, cl, sessionmsg.Notice{Text: "late"})
	if got := received(t, s, true); len(got) != 1 || got[0][0] != packetDisconnect || !strings.Contains(string(got[0]), banned.Message) {
		t.Errorf("the client is sent %q", got)
	}

	s = gamestest.NewScript(hello("ada", protocolVersion, wantLogin))
	opened, _, err := newTestAdapter().Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	gamestest.Receive(t, opened, sessionmsg.Notice{Text: "early"})
	gamestest.Receive(t, opened, banned)
	if got := received(t, s, false); len(got) != 1 || got[0][0] != packetLoginRefused || !strings.Contains(string(got[0]), banned.Message) {
		t.Errorf("a client that logs in is sent %q", got)
	}
}

// The client's day begins at sunrise.
func TestTicksOfDay(t *testing.T) {
	for minutes, want := range map[float64]int64{360: 0, 720: 6000, 0: 18000, 1439: 17983} {
		if got := ticksOfDay(&sessionmsg.Welcome{TimeOfDay: minutes, DayMS: 1000}, 2*time.Second); got != want {
			t.Errorf("minute %v is tick %d, want %d", minutes, got, want)
		}
	}
}

// readStates returns the states of a section's container, and what follows it.
func readStates(t *testing.T, f *fields) (states [sectionBlocks]uint16) {
	t.Helper()
	width := int(f.u8())
	var palette []uint16
	switch {
	case width == 0:
		palette = []uint16{uint16(f.varint())}
	case width <= 8:
		palette = make([]uint16, f.varint())
		for i := range palette {
			palette[i] = uint16(f.varint())
		}
	}
	words := make([]uint64, f.varint())
	for i := range words {
		words[i] = f.u64()
	}
	for i := range states {
		index := uint16(0)
		if width > 0 {
			each := 64 / width
			index = uint16(words[i/each] >> (i % each * width) & (1<<width - 1))
		}
		if states[i] = index; palette != nil {
			states[i] = palette[index]
		}
	}
	return states
}

// readColumn reads the packet of a column: where it is, its states, Y first, then Z, then X, and what follows them.
func readColumn(t *testing.T, p []byte, height int) (at column, states []uint16, rest fields) {
	t.Helper()
	f := fields{data: p[1:]}
	for _, v := range []*int32{&at.x, &at.z} {
		*v = int32(binary.BigEndian.Uint32(f.next(4)))
	}
	var heights heightmaps
	d := nbt.NewDecoder(strings.NewReader(string(f.data)))
	d.NetworkFormat(true)
	if _, err := d.Decode(&heights); err != nil || height == grid.ChunkSize && len(heights.Motion) != 26 { // 10 values of 6 bits in each
		t.Fatalf("heights %v, %v", heights, err)
	}
	f.next(len(marshal(heights)))
	sections := fields{data: f.next(int(f.varint()))}
	for y := 0; y < height; y += sectionSize {
		filled := int(sections.i16())
		section := readStates(t, &sections)
		for _, state := range section {
			if state != 0 {
				filled--
			}
		}
		if biomes := sections.next(3); filled != 0 || string(biomes) != "\x00\x00\x00" {
			t.Fatalf("the section has %d blocks more, and biomes %x", filled, biomes)
		}
		states = append(states, section[:]...)
	}
	if f.u8() != 0 || len(sections.data) > 0 {
		t.Fatal("there are entities, or more sections")
	}
	return at, states, f
}

// looks returns the state in which a block is seen.
func looks(pos grid.Pos, at func(grid.Pos) chunk.Block) uint16 {
	b, beside := at(pos), blocktable.Beside(0)
	for bit, d := range map[blocktable.Beside]grid.Pos{
		blocktable.JoinedEast: {X: 1}, blocktable.JoinedWest: {X: -1}, blocktable.JoinedSouth: {Z: 1}, blocktable.JoinedNorth: {Z: -1},
	} {
		if b.Joinable() && b.Joins(at(grid.Pos{X: pos.X + d.X, Y: pos.Y, Z: pos.Z + d.Z})) {
			beside |= bit
		}
	}
	if b.Door() && at(grid.Pos{X: pos.X, Y: pos.Y - 1, Z: pos.Z}) == b {
		beside |= blocktable.LowerHalf
	}
	return blocktable.ToMinecraftBeside(b, beside)
}

// checkColumns checks the packets of a chunk of one of our sections.
func checkColumns(t *testing.T, blocks []chunk.Block) {
	t.Helper()
	c, err := chunk.FromBlocks(blocks)
	if err != nil {
		t.Fatal(err)
	}
	at := grid.ChunkPos{X: -1, Z: 2}
	get := func(pos grid.Pos) chunk.Block {
		if pos.Chunk() != at || pos.Y < 0 {
			return chunk.Air
		}
		return c.Get(chunk.At(pos))
	}
	packets, _ := chunkPackets(at, c)
	for i, p := range packets {
		x, z := i%2*columnSize, i/2*columnSize
		column, states, f := readColumn(t, p, c.Height())
		if column.x != int32(-2+i%2) || column.z != int32(4+i/2) {
			t.Fatalf("packet %d is of column %v", i, column)
		}
		for i, state := range states {
			pos := chunk.IndexOf(x+i%16, i/256, z+i/16%16).Pos(at)
			if state != looks(pos, get) {
				t.Fatalf("%v is sent as state %d", get(pos), state)
			}
		}
		checkLight(t, &f, c.Height()/sectionSize+2)
	}
}

// Fences, panes and doors look as in the whole world, however its chunks arrive and change: within them, over their
// borders, and above each other.
func TestFittings(t *testing.T) {
	const height, rounds = grid.ChunkSize, 60
	random := rand.New(rand.NewPCG(1, 2))
	kinds := []chunk.Block{chunk.Air, chunk.Stone, chunk.Glass, chunk.PlankFence, chunk.PinePlankFence, chunk.GlassPane, chunk.Door, chunk.Door + 5, chunk.Torch}
	some := func() (grid.ChunkPos, chunk.Index, chunk.Block) { // near the corner of four chunks
		pos := grid.Pos{X: 30 + random.Int32N(4), Y: 10 + random.Int32N(3), Z: 30 + random.Int32N(4)}
		return pos.Chunk(), chunk.At(pos), kinds[random.IntN(len(kinds))]
	}
	world := make(map[grid.ChunkPos]*chunk.Chunk)
	for _, at := range []grid.ChunkPos{{}, {X: 1}, {Z: 1}, {X: 1, Z: 1}} {
		c, err := chunk.FromBlocks(make([]chunk.Block, chunk.SectionBlocks))
		if err != nil {
			t.Fatal(err)
		}
		world[at] = c
	}
	get := func(pos grid.Pos) chunk.Block { return world[pos.Chunk()].Get(chunk.At(pos)) }
	for range 100 {
		at, i, b := some()
		world[at].Set(i, b)
	}
	cl, s := playing(t, nil)
	seen := make(map[grid.Pos]uint16)
	arrive := func(at grid.ChunkPos) { gamestest.Receive(t, cl, gamestest.ChunkData(t, at, world[at].Blocks())) }
	for at := range world {
		arrive(at)
	}
	for round := range rounds {
		at, i, b := some()
		switch round % 6 {
		case 5: // a chunk goes and comes again, changed
			gamestest.Receive(t, cl, sessionmsg.ChunkGone{Chunk: at})
			world[at].Set(i, b)
			arrive(at)
		default:
			delta := sessionmsg.TickDelta{Chunk: at}
			for range 1 + random.IntN(4) {
				other, i, b := some()
				if other == at {
					world[at].Set(i, b)
					delta.Blocks = append(delta.Blocks, nodemsg.BlockAt{At: i, Block: b})
				}
			}
			gamestest.ReceiveDelta(t, cl, uint64(round), delta)
		}
		for _, p := range received(t, s, true) {
			switch f := (fields{data: p[1:]}); p[0] {
			case packetColumn:
				column, states, _ := readColumn(t, p, height)
				for i, state := range states {
					seen[grid.Pos{X: column.x*16 + int32(i%16), Y: int32(i / 256), Z: column.z*16 + int32(i/16%16)}] = state
				}
			case packetBlock:
				seen[f.position()] = uint16(f.varint())
			}
		}
		for x := range int32(6) {
			for y := range int32(5) {
				for z := range int32(6) {
					pos := grid.Pos{X: 29 + x, Y: 9 + y, Z: 29 + z}
					if want := looks(pos, get); seen[pos] != want {
						t.Fatalf("round %d: %s at %v is seen as state %d, want %d", round, get(pos).Name(), pos, seen[pos], want)
					}
				}
			}
		}
	}
}

// The fittings of a chunk that are kept are bounded, however many are built. The others are seen, but not joined.
func TestFittingsAreBounded(t *testing.T) {
	const joined, unjoined = 3, 5 // heights
	blocks := make([]chunk.Block, chunk.SectionBlocks)
	for i := range blocks[:maxFittings+chunk.IndexOf(0, 2, 0)] {
		blocks[i] = chunk.Door
	}
	cl, s := playing(t, nil)
	at := grid.ChunkPos{X: 1}
	gamestest.Receive(t, cl, gamestest.ChunkData(t, at, blocks))
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: grid.Pos{X: 32, Y: 20}, To: chunk.GlassPane})
	if kept := len(cl.mu.lands[at].fittings); kept != maxFittings {
		t.Errorf("%d are kept", kept)
	}
	lower, upper := blocktable.ToMinecraft(chunk.Door), blocktable.ToMinecraftBeside(chunk.Door, blocktable.LowerHalf)
	for _, p := range received(t, s, true) {
		if p[0] != packetColumn {
			continue
		}
		_, states, _ := readColumn(t, p, grid.ChunkSize)
		if got := states[joined*256]; got != upper {
			t.Errorf("a joined door is sent as %d, want %d", got, upper)
		}
		if got := states[unjoined*256]; got != lower {
			t.Errorf("another one is sent as %d, want %d", got, lower)
		}
	}
}

// A click uses both halves of a door, also with an empty hand, and a door is placed and broken as two. All edits of a
// request are answered before it is acknowledged.
func TestDoors(t *testing.T) {
	lower, upper := grid.Pos{X: 1, Y: 10, Z: 3}, grid.Pos{X: 1, Y: 11, Z: 3}
	const door = chunk.Door + 2 // the player looks south
	item := func(b chunk.Block) packet {
		return begin(packetSetCreativeSlot).i16(firstBarSlot).u8(1).varint(int(blocktable.MinecraftItem(b))).u8(1, 0)
	}
	empty := begin(packetSetCreativeSlot).i16(firstBarSlot).u8(0)
	for name, c := range map[string]struct {
		lower, upper chunk.Block // there already
		item, sent   packet
		want         []games.Change
	}{
		"place": {0, 0, item(chunk.Door), useOn(1, 9, 3, 7), []games.Change{{Pos: lower, To: door}, {Pos: upper, To: door}}},
		"open":  {door, door, item(chunk.Stone), useOn(1, 11, 3, 7), []games.Change{{Pos: upper, To: door + 4}, {Pos: lower, To: door + 4}}},
		"close": {door + 4, door + 4, empty, useOn(1, 10, 3, 7), []games.Change{{Pos: lower, To: door}, {Pos: upper, To: door}}},
		"break": {door, door, empty, dig(1, 10, 3, 7), []games.Change{{Pos: lower}, {Pos: upper}}},
		"stack": {chunk.StoneSlab, 0, item(chunk.StoneSlab), useOn(1, 10, 3, 7), []games.Change{{Pos: lower, To: chunk.Stone}}},
		"gate":  {chunk.PlankFenceGate, chunk.PlankFenceGate, item(chunk.Stone), useOn(1, 10, 3, 7), []games.Change{{Pos: lower, To: chunk.PlankFenceGate + 4}}},
		"hatch": {chunk.Trapdoor + 12, 0, empty, useOn(1, 10, 3, 7), []games.Change{{Pos: lower, To: chunk.Trapdoor + 4}}},
		"hang":  {0, 0, item(chunk.PineTrapdoor), useOn(1, 9, 3, 7), []games.Change{{Pos: lower, To: chunk.PineTrapdoor + 2}}},
		"full":  {0, chunk.Stone, item(chunk.Door), useOn(1, 9, 3, 7), nil},
	} {
		t.Run(name, func(t *testing.T) {
			cl, s := playing(t, sent(confirm(), c.item, c.sent, begin(packetMoveLook).f32(9).f32(0).u8(1)))
			gamestest.ReceiveBlocks(t, cl, games.Change{Pos: lower, To: c.lower}, games.Change{Pos: upper, To: c.upper})
			gamestest.ReadEdits(t, cl, c.want...)
			gamestest.Read[sessionmsg.Move](t, cl) // and nothing else before it
			for i := range c.want {
				s.Out.Reset()
				gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 100 + uint64(i), Block: uint16(c.want[i].To)})
				if acked := has(received(t, s, true), begin(packetAckBlock).varint(7)); acked != (i == len(c.want)-1) {
					t.Errorf("acknowledged after %d answers: %v", i+1, acked)
				}
			}
		})
	}
}

// Stairs that are being broken, or have just been, are no neighbours of others; those that are being placed are,
// and become corners once the others are there.
func TestStairsBeforeAnswers(t *testing.T) {
	item := begin(packetSetCreativeSlot).i16(firstBarSlot).u8(1).varint(int(blocktable.MinecraftItem(chunk.StoneStairs))).u8(1, 0)
	look := func(yaw float32) packet { return begin(packetMoveLook).f32(yaw).f32(0).u8(1) }
	const east, south = chunk.StoneStairs, chunk.StoneStairs + 2
	outer, _ := blocktable.Named("stone_stairs_outer_east")
	first, second := grid.Pos{X: 1, Y: 10, Z: 3}, grid.Pos{X: 2, Y: 10, Z: 3}
	for name, c := range map[string]struct {
		there    chunk.Block
		sent     packet
		answered bool
		want     []games.Change
	}{
		"being broken": {east, dig(1, 10, 3, 1), false, []games.Change{{Pos: first}, {Pos: second, To: south}}},
		"broken":       {east, dig(1, 10, 3, 1), true, []games.Change{{Pos: first}, {Pos: second, To: south}}},
		"being placed": {chunk.Air, useOn(1, 9, 3, 1), false, []games.Change{{Pos: first, To: east}, {Pos: second, To: south}}},
		"placed":       {chunk.Air, useOn(1, 9, 3, 1), true, []games.Change{{Pos: first, To: east}, {Pos: second, To: south}, {Pos: first, To: outer}}},
	} {
		t.Run(name, func(t *testing.T) {
			cl, _ := playing(t, sent(confirm(), item, look(-90), c.sent, look(0), useOn(2, 9, 3, 2), chatPacket("done")))
			gamestest.ReceiveBlocks(t, cl, games.Change{Pos: first, To: c.there})
			var got []games.Change
			for {
				m, err := cl.Read()
				if err != nil {
					t.Fatal(err)
				}
				if _, is := m.(sessionmsg.Chat); is {
					break
				}
				e, is := m.(sessionmsg.Edit)
				if !is {
					continue // a look
				}
				got = append(got, games.Change{Pos: grid.Pos{X: e.X, Y: e.Y, Z: e.Z}, To: chunk.Block(e.Block)})
				if c.answered {
					gamestest.Receive(t, cl, sessionmsg.Ack{Seq: e.Seq, Block: e.Block})
				}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("the client makes %v, want %v", got, c.want)
			}
		})
	}
}

// A corner that is refused is put back, and nothing is said: nobody has asked for it.
func TestRefusedCorners(t *testing.T) {
	item := begin(packetSetCreativeSlot).i16(firstBarSlot).u8(1).varint(int(blocktable.MinecraftItem(chunk.StoneStairs))).u8(1, 0)
	beside := grid.Pos{X: 1, Y: 10, Z: 3}
	cl, s := playing(t, sent(confirm(), item, useOn(2, 9, 3, 1)))
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: beside, To: chunk.StoneStairs})
	outer, _ := blocktable.Named("stone_stairs_outer_east")
	gamestest.ReadEdits(t, cl, games.Change{Pos: grid.Pos{X: 2, Y: 10, Z: 3}, To: chunk.StoneStairs + 2})
	gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 100, Block: uint16(chunk.StoneStairs + 2)})
	corner := gamestest.Read[sessionmsg.Edit](t, cl)
	if chunk.Block(corner.Block) != outer || corner.X != beside.X || corner.Z != beside.Z {
		t.Errorf("the corner is %+v", corner)
	}
	s.Out.Reset()
	gamestest.Receive(t, cl, sessionmsg.Ack{Seq: corner.Seq, Block: uint16(chunk.StoneStairs), Error: wire.RefusedClaimed})
	got := bytes.Join(received(t, s, true), nil)
	if bytes.Contains(got, []byte("claim")) || !bytes.Contains(got, begin(packetBlock).position(beside)) {
		t.Errorf("the refusal is shown as %q", got)
	}
}

// Who sneaks places blocks against signs and gates, and uses them with an empty hand.
func TestSneaking(t *testing.T) {
	action := func(number int) packet { return begin(packetPlayerAction).varint(selfEntity).varint(number).varint(0) }
	empty := begin(packetSetCreativeSlot).i16(firstBarSlot).u8(0)
	sign, gate := grid.Pos{X: 1, Y: 10, Z: 3}, grid.Pos{X: 3, Y: 10, Z: 3}
	onSign, onGate := useOn(1, 10, 3, 1), useOn(3, 10, 3, 2)
	cl, s := playing(t, sent(
		confirm(), action(actionSneak), action(3), onSign, onGate, action(actionStand), onGate, chatPacket("stands"),
		action(actionSneak), empty, onSign, onGate, chatPacket("sneaks"),
	))
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: sign, To: chunk.Sign}, games.Change{Pos: gate, To: chunk.PlankFenceGate})
	s.Out.Reset()
	gamestest.ReadEdits(t, cl,
		games.Change{Pos: grid.Pos{X: 1, Y: 11, Z: 3}, To: chunk.Stone}, games.Change{Pos: grid.Pos{X: 3, Y: 11, Z: 3}, To: chunk.Stone},
		games.Change{Pos: gate, To: chunk.PlankFenceGate + 4},
	)
	gamestest.Read[sessionmsg.Chat](t, cl)
	if e := gamestest.Read[sessionmsg.Edit](t, cl); chunk.Block(e.Block) != chunk.PlankFenceGate {
		t.Errorf("with an empty hand the client makes %+v", e)
	}
	gamestest.Tick(t, cl, time.Now())
	if got := received(t, s, true); !has(got, begin(packetOpenSign).position(sign).u8(1)) {
		t.Errorf("the client is sent %q", got)
	}
}

// What is in the hand, and that the player sneaks, is sent to the session when it changes.
func TestStance(t *testing.T) {
	action := func(number int) packet { return begin(packetPlayerAction).varint(selfEntity).varint(number).varint(0) }
	empty := begin(packetSetCreativeSlot).i16(firstBarSlot + 1).u8(0)
	cl, _ := playing(t, sent(confirm(), action(actionSneak), action(actionSneak), begin(packetSelectSlot).i16(1), empty, action(actionStand), chatPacket("x")))
	for _, want := range []sessionmsg.Stance{
		{Held: uint16(chunk.Stone)},
		{Held: uint16(chunk.Stone), Sneaks: true},
		{Held: uint16(chunk.Cobble), Sneaks: true},
		{Sneaks: true},
		{},
	} {
		if got, err := cl.Read(); err != nil || got != want {
			t.Errorf("the client sends %#v, %v; want %#v", got, err, want)
		}
	}
	if got, err := cl.Read(); err != nil || got != (sessionmsg.Chat{Text: "x"}) {
		t.Errorf("then the client sends %#v, %v", got, err)
	}
}

// checkLight checks the light of a column.
func checkLight(t *testing.T, f *fields, sections int) {
	t.Helper()
	var masks [4]uint64
	for i := range masks {
		if f.varint() != 1 {
			t.Fatal("a mask has other than one word")
		}
		masks[i] = f.u64()
	}
	all := uint64(1)<<sections - 1
	if masks[0]|masks[2] != all || masks[0]&masks[2] != 0 || masks[1]|masks[3] != all || masks[1]&masks[3] != 0 || masks[0]>>(sections-1) != 1 {
		t.Fatalf("the masks are %b", masks)
	}
	for range 2 {
		for range f.varint() {
			if f.varint() != lightBytes {
				t.Fatal("a section's light has another size")
			}
			f.next(lightBytes)
		}
	}
	if f.bad || len(f.data) > 0 {
		t.Fatalf("%d bytes are left", len(f.data))
	}
}

// Light falls down, spreads below a roof, and lamps shine in the dark.
func TestLight(t *testing.T) {
	blocks := make([]chunk.Block, chunk.SectionBlocks)
	set := func(x, y, z int, b chunk.Block) { blocks[chunk.IndexOf(x, y, z)] = b }
	for x := range 32 {
		for z := range 32 {
			set(x, 0, z, chunk.Stone)
			if x < 20 {
				set(x, 5, z, chunk.Stone)
			}
			if x == 5 || x == 25 {
				set(x, 5, z, chunk.Glass)
			}
		}
	}
	set(0, 1, 0, chunk.Lamp)
	for y := 1; y < 5; y++ {
		for z := range 32 {
			set(3, y, z, chunk.Brick)
		}
	}
	l := lightOf(blocks)
	for _, c := range []struct {
		x, y, z    int
		sky, lamps byte
	}{
		{25, 1, 10, 15, 0},
		{20, 4, 10, 15, 0},
		{19, 4, 10, 14, 0},
		{15, 2, 10, 10, 0},
		{5, 1, 10, 15, 0},
		{6, 1, 10, 14, 0},
		{0, 1, 0, 0, 15},
		{2, 1, 0, 0, 13},
		{2, 1, 5, 0, 8},
		{4, 1, 0, 14, 0},
		{0, 5, 0, 0, 0},
		{0, 6, 0, 15, 0},
	} {
		i := chunk.IndexOf(c.x, c.y, c.z)
		if l.Sky[i] != c.sky || l.Lamps[i] != c.lamps {
			t.Errorf("%d, %d, %d has light %d, %d, want %d, %d", c.x, c.y, c.z, l.Sky[i], l.Lamps[i], c.sky, c.lamps)
		}
	}
}

// A world of many kinds of blocks needs no palette.
func TestSectionsWithoutPalette(t *testing.T) {
	palette, indices := make([]uint16, 300), make([]uint16, sectionBlocks)
	for i := range palette {
		palette[i] = uint16(i * 80)
	}
	for i := range indices {
		indices[i] = uint16(i % 300)
	}
	f := fields{data: appendStates(nil, palette, indices)}
	for i, state := range readStates(t, &f) {
		if state != palette[indices[i]] {
			t.Fatalf("block %d is state %d", i, state)
		}
	}
}

// The packets of one chunk, which the gateway sends in 100 KiB or so.
func BenchmarkChunk(b *testing.B) {
	blocks := make([]chunk.Block, 4*chunk.SectionBlocks)
	for i := range blocks {
		x, y, z := chunk.Index(i).XYZ()
		if ground := 60 + int(8*math.Sin(float64(x)/5)+8*math.Cos(float64(z)/7)); y < ground {
			blocks[i] = chunk.Stone
		} else if y == ground {
			blocks[i] = chunk.Grass
		}
	}
	c, err := chunk.FromBlocks(blocks)
	if err != nil {
		b.Fatal(err)
	}
	var size, plain int
	for b.Loop() {
		size, plain = 0, 0
		packets, _ := chunkPackets(grid.ChunkPos{}, c)
		for _, p := range packets {
			plain += len(p)
			size += len(appendFrame(nil, p, true))
		}
	}
	b.ReportMetric(float64(size), "bytes/chunk")
	b.ReportMetric(float64(plain), "plain_bytes/chunk")
}

// One tick of a client that sees 100 others walk.
func BenchmarkTickOfCrowd(b *testing.B) {
	cl, s := playing(b, nil)
	gamestest.ReceiveDelta(b, cl, 1, gamestest.Entering(100, 3))
	now := time.Now()
	var sentBytes int
	for b.Loop() {
		cl.mu.alive.answered = now
		for _, v := range cl.mu.avatars.All() { // as if all had moved
			v.As.at.x -= 900
			v.As.at.yaw++
		}
		s.Out.Reset()
		if err := cl.Tick(now); err != nil {
			b.Fatal(err)
		}
		sentBytes += s.Out.Len()
	}
	b.ReportMetric(float64(sentBytes)/float64(b.N), "bytes/tick")
}

// An empty bucket removes the nearest water that the player looks at, unless something is before it.
func TestBucket(t *testing.T) {
	at, before := grid.Pos{X: 1, Y: 11, Z: 3}, grid.Pos{X: 1, Y: 12, Z: 2}
	slot := func(item int) packet {
		return begin(packetSetCreativeSlot).i16(firstBarSlot).u8(1).varint(item).u8(1, 0)
	}
	bucket, brick := slot(blocktable.MinecraftBucket), slot(int(blocktable.MinecraftItem(chunk.Brick)))
	for name, c := range map[string]struct {
		item, use packet
		before    chunk.Block
		want      []games.Change
	}{
		"water":   {bucket, begin(packetUseItem).varint(0).varint(7), chunk.Poppy, []games.Change{{Pos: at}}},
		"wall":    {bucket, begin(packetUseItem).varint(0).varint(7), chunk.Glass, nil},
		"brick":   {brick, begin(packetUseItem).varint(0).varint(7), chunk.Air, nil},
		"offhand": {bucket, begin(packetUseItem).varint(1).varint(7), chunk.Air, nil},
	} {
		t.Run(name, func(t *testing.T) {
			look := begin(packetMovePositionLook).f64(1.5).f64(12).f64(1.5).f32(0).f32(45).u8(1)
			away := begin(packetMoveLook).f32(9).f32(0).u8(1)
			cl, s := playing(t, sent(confirm(), look, c.item, c.use, away))
			gamestest.ReceiveBlocks(t, cl, games.Change{Pos: at, To: chunk.Water}, games.Change{Pos: before, To: c.before})
			gamestest.Read[sessionmsg.Move](t, cl)
			gamestest.ReadEdits(t, cl, c.want...)
			gamestest.Read[sessionmsg.Move](t, cl) // and nothing else before it
			s.Out.Reset()
			for range c.want {
				gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 100})
			}
			gamestest.Tick(t, cl, time.Now())
			if c.want != nil && !has(received(t, s, true), begin(packetAckBlock).varint(7)) {
				t.Error("the use of the bucket is not acknowledged")
			}
		})
	}
}
