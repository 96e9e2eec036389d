package luanti

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"math"
	"math/big"
	"net"
	"net/netip"
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
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/test/testkit/luanticlient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

func TestLogin(t *testing.T) {
	for name, c := range map[string]struct {
		sent [][]byte
		code string
	}{
		"again":          {loginOf("ada"), ""},
		"newer client":   {[][]byte{initOf("ada", 40, 46)}, wire.FailWrongVersion},
		"older client":   {[][]byte{initOf("ada", 13, 38)}, wire.FailWrongVersion},
		"a bad name":     {[][]byte{initOf("ada lovelace", 37, 41)}, wire.FailBadName},
		"no name":        {[][]byte{begin(fromSRPBytesA)}, wire.FailUnexpected},
		"no number":      {[][]byte{initOf("ada", 37, 41), begin(fromSRPBytesM).text("M")}, wire.FailUnexpected},
		"registers":      {[][]byte{initOf("ada", 37, 41), begin(fromFirstSRP).text("salt").text("verifier").u8(0)}, wire.FailUnexpected},
		"too early":      {[][]byte{initOf("ada", 37, 41), begin(fromChatMessage)}, wire.FailUnexpected},
		"cut off":        {[][]byte{initOf("ada", 37, 41)[:8]}, wire.FailBadValue},
		"never logs in":  {append(slices.Repeat([][]byte{{}}, maxTries), loginOf("ada")...), wire.FailUnexpected},
		"ends at a byte": {[][]byte{{1}, initOf("ada", 99, 99)}, wire.FailWrongVersion},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := readLogin(&script{in: c.sent}, isKnown)
			refused, _ := errors.AsType[*wire.Error](err)
			if c.code == "" && (err != nil || got != "ada") || c.code != "" && (refused == nil || refused.Code != c.code) {
				t.Fatalf("%q, %v, want %q", got, err, c.code)
			}
		})
	}
}

// The menu's password keeps a name that nobody has played under, unless it is empty: then only who knows it has the name.
func TestPassword(t *testing.T) {
	choose := func(name, password string, empty byte) (*player.Verifier, error) {
		salt, number := luanticlient.NewSRP(name, password).Choose()
		s := &script{in: [][]byte{initOf(name, 37, 39), begin(fromFirstSRP).bytes(salt).bytes(number).u8(empty)}}
		_, v, err := readLogin(s, func(string) (*player.Verifier, bool, error) { return nil, false, nil })
		return v, err
	}
	v, err := choose("Ada", "secret", 0)
	if v == nil || err != nil {
		t.Fatalf("%v, %v", v, err)
	}
	if none, err := choose("ada", "", 1); none != nil || err != nil {
		t.Errorf("an empty password is kept as %v, %v", none, err)
	}
	for name, sent := range map[string]packet{
		"salt":  begin(fromFirstSRP).text("salt").text("verifier").u8(0),
		"zero":  begin(fromFirstSRP).bytes(make([]byte, player.SaltSize)).bytes(make([]byte, 256)).u8(0),
		"prime": begin(fromFirstSRP).bytes(make([]byte, player.SaltSize)).bytes(srpPrime.Bytes()).u8(0),
		"short": begin(fromFirstSRP).bytes(make([]byte, player.SaltSize)),
	} {
		_, got, err := readLogin(&script{in: [][]byte{initOf("ada", 37, 39), sent}}, func(string) (*player.Verifier, bool, error) { return nil, false, nil })
		if refused, _ := errors.AsType[*wire.Error](err); got != nil || refused == nil || refused.Code != wire.FailBadValue {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, c := range []struct {
		name, password string
		proves         bool
	}{{"Ada", "secret", true}, {"Ada", "Secret", false}, {"Ada", "", false}, {"bob", "secret", false}} {
		client := luanticlient.NewSRP(c.name, c.password)
		l, err := newSRPLogin("Ada", string(client.A()), v)
		if err != nil {
			t.Fatal(err)
		}
		if proof := string(client.Prove(l.salt, l.b)); l.proves(proof) != c.proves || l.proves(proof[1:]) || l.proves("") {
			t.Errorf("%+v: proved %v", c, l.proves(proof))
		}
	}
	for _, a := range [][]byte{{}, {0}, srpPrime.Bytes(), new(big.Int).Lsh(srpPrime, 1).Bytes()} {
		if l, err := newSRPLogin("Ada", string(a), v); err == nil {
			t.Errorf("the number %x is taken: %v", a, l)
		}
	}
	if p := new(big.Int).Rsh(srpPrime, 1); srpPrime.BitLen() != 8*srpBytes || !srpPrime.ProbablyPrime(5) || !p.ProbablyPrime(5) {
		t.Error("not the safe prime of RFC 5054")
	}
}

// A client whose name is known is asked to log in, another one to register: its game has a button for each.
func TestLoginOrRegister(t *testing.T) {
	for name, way := range map[string]byte{"ada": authSRP, "bob": authFirstSRP} {
		s := &script{in: [][]byte{initOf(name, 37, 39)}}
		if _, _, err := readLogin(s, func(name string) (*player.Verifier, bool, error) { return nil, name == "ada", nil }); err != io.EOF {
			t.Fatal(err)
		}
		if hello := s.sent(toHello); len(hello) != 1 || !bytes.Equal(hello[0][5:9], []byte{0, 0, 0, way}) {
			t.Errorf("%s is greeted with %x", name, hello)
		}
	}
}

// The directions of the two games agree, though one space is the other's mirror image: both sides look at the same
// thing.
func TestAngles(t *testing.T) {
	for _, c := range []struct {
		yaw, pitch float64 // in Luanti: 0 looks along its +Z, 90 along -X, and pitch 90 straight down
		look       [3]float64
	}{
		{0, 0, [3]float64{0, 0, -1}},
		{90, 0, [3]float64{-1, 0, 0}},
		{180, 0, [3]float64{0, 0, 1}},
		{0, 90, [3]float64{0, -1, 0}},
	} {
		gamestest.CheckLook(t, origin{}.pose(place{yaw: c.yaw, pitch: c.pitch}), c.look)
	}
}

// A block and a body in it have the same place in the game, anywhere in the world.
func TestNodes(t *testing.T) {
	for _, pos := range []grid.Pos{{}, {X: -1, Y: 3, Z: -1}, {X: 31, Z: 32}, {X: 1_000_000, Y: 7, Z: -2_000_001}} {
		pose := motion.Pose{X: float64(pos.X) + .5, Y: float64(pos.Y) + .5, Z: float64(pos.Z) + .5}
		o := originNear(pose)
		n, at := o.node(pos), o.place(pose)
		if o.pos(n) != pos || at.x != float64(n.x)*unit || at.y != float64(n.y)*unit || at.z != float64(n.z)*unit || !o.bears(pose) {
			t.Errorf("%v is node %v, and its middle %v", pos, n, at)
		}
	}
}

// What a client sends before it is where it was put has no effect.
func TestClientIsIgnoredUntilItIsWhereItWasPut(t *testing.T) {
	on, at := grid.Pos{X: 1, Y: 9, Z: 3}, grid.Pos{X: 1, Y: 10, Z: 3}
	edit := interact(interactPlaced, 2, on, at)
	far := motion.Pose{X: -20, Y: 10, Z: -20}
	cl, s := playing(t, moveTo(far), edit, moveTo(start), edit, moveTo(motion.Pose{X: 2, Y: 10, Z: 2.5}))
	if e := gamestest.Read[sessionmsg.Edit](t, cl); e.Seq != 100 || e.X != at.X || e.Y != at.Y || e.Z != at.Z || chunk.Block(e.Block) != chunk.Brick {
		t.Fatalf("%+v", e)
	}
	if m := gamestest.Read[sessionmsg.Move](t, cl); math.Abs(m.Pose.X-2) > 1e-3 {
		t.Fatalf("%+v", m)
	}
	if len(s.sent(toRemoveNode)) != 1 {
		t.Error("the edit that was ignored is not put back")
	}
	gamestest.Receive(t, cl, sessionmsg.Correction{Pose: start})
	if len(s.sent(toMovePlayer)) != 2 {
		t.Error("the client was not put back")
	}
	if err := cl.Tick(time.Now().Add(3 * time.Second)); err != nil || len(s.sent(toMovePlayer)) != 3 {
		t.Errorf("the client was not put back again, %v", err)
	}
}

// What is in the hand, and that the player sneaks, is sent to the session when it changes.
func TestStance(t *testing.T) {
	sneak := slices.Clone(moveTo(start))
	sneak[len(sneak)-3] = keySneak // the last byte of the keys
	cl, _ := playing(t, sneak, begin(fromPlayerItem).u16(3), begin(fromPlayerItem).u16(slotsAcross), moveTo(start), begin(fromNothing))
	for _, want := range []sessionmsg.Stance{
		{Held: uint16(chunk.Stone), Sneaks: true},
		{Held: uint16(chunk.Dirt), Sneaks: true},
		{Held: uint16(chunk.Dirt)},
	} {
		if got := gamestest.Read[sessionmsg.Stance](t, cl); got != want {
			t.Errorf("the client sends %#v; want %#v", got, want)
		}
	}
}

// A client that stands still sends nothing; its session is sent moves all the same, until it is closed.
func TestClientThatStandsStill(t *testing.T) {
	cl, _ := playing(t, nil, moveTo(start))
	if m := gamestest.Read[sessionmsg.Move](t, cl); m.Pose != start {
		t.Errorf("%+v", m)
	}
	if err := cl.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := cl.Read(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed client reads on: %v", err)
	}
}

// A client that floods the node has little effect, and is ended.
func TestFlood(t *testing.T) {
	on := grid.Pos{X: 1, Y: 9, Z: 3}
	for name, packet := range map[string]packet{
		"clicks": interact(interactPlaced, math.MaxUint16, on, on), "moved items": begin(fromInventoryAction).text("Move"), "nothing": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cl, s := playing(t, slices.Repeat([][]byte{packet}, 2*games.PacketsAtOnce)...)
			var err error
			for err == nil { // what is in the hand is said first
				_, err = cl.Read()
			}
			if refused, _ := errors.AsType[*wire.Error](err); refused == nil || refused.Code != wire.FailRate {
				t.Errorf("the read returns %v", err)
			}
			if n := len(s.sent(toInventory)); n > 2*games.LooksAtOnce {
				t.Errorf("the inventory was sent %d times", n)
			}
		})
	}
}

// What an edit has come to is shown; why it was refused is said.
func TestEditsAreCorrected(t *testing.T) {
	at := grid.Pos{X: 1, Y: 9, Z: 3}
	cl, s := playing(t, moveTo(start), interact(interactDug, 0, at, at))
	gamestest.Read[sessionmsg.Edit](t, cl)
	before := len(s.sent(toChatMessage))
	gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 100, Block: uint16(chunk.Stone), Error: wire.RefusedClaimed})
	added := s.sent(toAddNode)
	if len(added) != 1 || !bytes.Equal(added[0][:8], packet(nil).node(node{1, 9, -4}).u16(blocktable.ToLuanti(chunk.Stone))) {
		t.Errorf("added %x", added)
	}
	if chat := s.sent(toChatMessage); len(chat) != before+1 {
		t.Errorf("%d lines more", len(chat)-before)
	}
}

// The client is sent each chunk once, the one where it stands first, and one of which it has dropped a part again.
func TestLand(t *testing.T) {
	cl, s := playing(t)
	for range 5 {
		gamestest.Tick(t, cl, time.Now())
	}
	data := s.sent(toBlockData)
	const perChunk = 4 * (grid.ChunkSize/side + airAbove)
	if len(data) != 9*perChunk {
		t.Fatalf("%d map blocks, want %d", len(data), 9*perChunk)
	}
	f := fields{rest: data[0]}
	if at := f.node(); at != (node{0, 0, -2}) {
		t.Errorf("the first one is %v", at)
	}
	flags := f.take(5)
	r, err := zlib.NewReader(bytes.NewReader(f.rest))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r)
	if err != nil || len(raw) != 4*nodes || flags[3] != 2 {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	for y, want := range map[int]struct {
		b     chunk.Block
		light byte
	}{9: {chunk.Stone, 0}, 10: {chunk.Air, games.FullLight}} {
		i := 5*side*side + y*side + 3
		if got := uint16(raw[2*i])<<8 | uint16(raw[2*i+1]); got != blocktable.ToLuanti(want.b) || raw[2*nodes+i] != want.light {
			t.Errorf("at height %d there is node %d, with light %d", y, got, raw[2*nodes+i])
		}
	}
	if _, err := cl.translate(begin(fromDeletedBlocks).u8(1).node(node{0, 0, -1}), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := cl.Tick(time.Now()); err != nil || len(s.sent(toBlockData)) != 10*perChunk {
		t.Errorf("%d map blocks, %v", len(s.sent(toBlockData)), err)
	}
}

// Texts of signs are shown with their chunk, and those that change later by themselves; another block has none.
func TestSignsAreShown(t *testing.T) {
	cl, s := playing(t)
	inflated := func(data []byte) (plain []byte, rest *bytes.Reader) {
		t.Helper()
		rest = bytes.NewReader(data)
		r, err := zlib.NewReader(rest)
		if err != nil {
			t.Fatal(err)
		}
		if plain, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		return plain, rest
	}
	const first, second = chunk.Index(9*layer + 2*grid.ChunkSize + 1), chunk.Index(9*layer + 2*grid.ChunkSize + 2)
	write := func(at chunk.Index, text string) {
		gamestest.Receive(t, cl, sessionmsg.SignsOf(grid.ChunkPos{}, []nodemsg.SignAt{{At: at, Text: text}}))
	}
	write(first, "to the\nharbour ✓")
	if sent := s.sent(toNodeMetadata); len(sent) > 0 {
		t.Errorf("before its chunk the client is sent %x", sent)
	}
	shared, sign := s.sent(toBlockData), packet(nil).u32(1).text("infotext").blob([]byte("to the\nharbour ✓")).u8(0)
	gamestest.Tick(t, cl, time.Now())
	found := 0
	for _, data := range s.sent(toBlockData)[len(shared):] {
		_, rest := inflated(data[6+5:])
		metadata, _ := inflated(data[len(data)-rest.Len():])
		want := append(packet{2, 0, 1}.u16((13*side+9)*side+1), sign...) // z runs the other way: 2 is 13 of the nodes there
		if bytes.Equal(metadata, append(want, "EndInventory\n"...)) {
			found++
		} else if len(metadata) != 1 {
			t.Errorf("a map block has the metadata %q", metadata)
		}
	}
	if found != 1 {
		t.Errorf("the text is in %d map blocks", found)
	}
	write(second, "\x1b(c@#f00)home")
	sent := s.sent(toNodeMetadata)
	if len(sent) != 1 {
		t.Fatalf("a text is shown as %x", sent)
	}
	got, _ := inflated(sent[0][4:])
	want := packet{2, 0, 1}.node(node{2, 9, -3}).u32(1).text("infotext").blob([]byte("(c@#f00)home")).u8(0)
	if !bytes.Equal(got, append(want, "EndInventory\n"...)) {
		t.Errorf("a text is shown as %q", got)
	}
	// The client has removed a sign that its player may not break, and is shown it again.
	if _, err := cl.mu.edits.AddAll([]games.Change{{Pos: second.Pos(grid.ChunkPos{}), To: chunk.Air}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 100, Block: uint16(chunk.Sign), Error: wire.RefusedClaimed})
	if again := s.sent(toNodeMetadata); len(again) != 2 || !bytes.Equal(again[1], sent[0]) {
		t.Errorf("after a refused edit a text is shown as %x", again)
	}
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: first.Pos(grid.ChunkPos{}), To: chunk.Stone})
	if signs := cl.mu.lands[grid.ChunkPos{}].signs; len(signs) != 1 || signs[second] == "" {
		t.Errorf("kept are %v", signs)
	}
}

// The coordinates of the world are shown, and change as the player walks.
func TestPlaceIsShown(t *testing.T) {
	cl, s := playing(t)
	now := time.Now()
	gamestest.Tick(t, cl, now)
	if added := s.sent(toHUDAdd); len(added) != 1 || !bytes.Contains(added[0], packet(nil).text("1 10 2")) {
		t.Errorf("the place is shown as %q", added)
	}
	gamestest.Tick(t, cl, now.Add(placeEvery))
	cl.mu.player.Pose.Z = -3.5
	gamestest.Tick(t, cl, now.Add(2*placeEvery))
	if changed := s.sent(toHUDChange); len(changed) != 1 || !bytes.HasSuffix(changed[0], packet(nil).text("1 10 -4")) {
		t.Errorf("another place is shown as %q", changed)
	}
}

// By night the land is lit more than the client would.
func TestNightIsLit(t *testing.T) {
	cl, s := playing(t)
	for _, c := range []struct {
		minutes float64
		lit     byte
	}{{0, 1}, {300, 1}, {330, 0}, {720, 0}, {1140, 1}} {
		cl.mu.welcome.TimeOfDay, cl.mu.welcome.DayMS, cl.mu.clocked = c.minutes, 86_400_000, time.Time{}
		cl.showTime(cl.mu.since)
		sent := s.sent(toSkyLight)
		if last := sent[len(sent)-1]; !bytes.Equal(last, packet{c.lit}.u16(22937)) {
			t.Errorf("at minute %v the client is sent %x", c.minutes, last)
		}
	}
}

// The upper half of a door has a node of its own, whichever half is shown first.
func TestUpperHalf(t *testing.T) {
	cl, s := playing(t)
	lower, upper := grid.Pos{X: 1, Y: 10, Z: 3}, grid.Pos{X: 1, Y: 11, Z: 3}
	land := cl.mu.lands[lower.Chunk()]
	for _, pos := range []grid.Pos{upper, lower} {
		land.Set(chunk.At(pos), chunk.Door)
		cl.showBlock(pos, chunk.Door)
	}
	id := blocktable.ToLuanti(chunk.Door)
	added := s.sent(toAddNode)
	for i, want := range []packet{
		packet(nil).node(node{1, 11, -4}).u16(id), packet(nil).node(node{1, 10, -4}).u16(id), packet(nil).node(node{1, 11, -4}).u16(id + upperHalves),
	} {
		if len(added) != 3 || !bytes.Equal(added[i][:8], want) {
			t.Errorf("nodes %x, want %x as number %d", added, want, i)
		}
	}
	for b := chunk.Air; b.Known(); b++ {
		if blocktable.ToLuanti(b) >= upperHalves {
			t.Errorf("the node of %s is one of an upper half", b.Name())
		}
	}
}

// Light falls from the sky, fades under a roof, and comes from lamps and torches.
func TestLight(t *testing.T) {
	blocks := make([]chunk.Block, chunk.SectionBlocks)
	for x := range 8 {
		for z := range 8 {
			blocks[chunk.IndexOf(x, 10, z)] = chunk.Stone
		}
	}
	blocks[chunk.IndexOf(20, 0, 20)] = chunk.Lamp
	blocks[chunk.IndexOf(30, 0, 5)] = chunk.Torch
	blocks[chunk.IndexOf(12, 9, 28)] = chunk.StoneSlab
	c, err := chunk.FromBlocks(blocks)
	if err != nil {
		t.Fatal(err)
	}
	col := lightColumn(c)
	for at, want := range map[chunk.Index]byte{
		chunk.IndexOf(9, 5, 9): games.FullLight, chunk.IndexOf(7, 5, 0): games.FullLight - 1, chunk.IndexOf(0, 5, 0): games.FullLight - 8, chunk.IndexOf(0, 10, 0): 0,
		chunk.IndexOf(21, 0, 20): games.FullLight | (games.FullLight-1)<<4, chunk.IndexOf(20, 2, 20): games.FullLight | (games.FullLight-2)<<4,
		chunk.IndexOf(30, 0, 5): games.FullLight | (games.FullLight-1)<<4, chunk.IndexOf(31, 0, 5): games.FullLight | (games.FullLight-2)<<4, chunk.IndexOf(12, 9, 28): games.FullLight - 1,
	} {
		if col.light[at] != want {
			x, y, z := at.XYZ()
			t.Errorf("at %d %d %d there is light %#x, want %#x", x, y, z, col.light[at], want)
		}
	}
}

// Blocks of the inventory change places, and nothing else does.
func TestInventory(t *testing.T) {
	slots := firstSlots()
	move(slots, "Move 1 current_player main 0 current_player main 8")
	if slots[8] != chunk.Stone || slots[0] == chunk.Stone || (len(slots)-slotsAcross)%formAcross != 0 {
		t.Errorf("%v", slots)
	}
	before := string(inventory(slots))
	for _, action := range []string{"", "Drop 1 current_player main 0", "Move 1 current_player main -1 current_player main 8", "Move 1 p m 0 p m 999"} {
		if move(slots, action); string(inventory(slots)) != before {
			t.Errorf("%q changes the inventory", action)
		}
	}
	for b := chunk.Air + 1; b.Known(); b++ {
		if (b.Placeable() && b.Base() == b) != strings.Contains(before, nodeName(b)+"\n") {
			t.Errorf("%s is in the inventory, or is not", b.Name())
		}
	}
}

// Players find the inventory as they have arranged it: when they join again, and when they log in.
func TestInventoryIsKept(t *testing.T) {
	arranged := firstSlots()
	move(arranged, "Move 1 current_player main 0 current_player main 8")
	guest, registered := gamestest.Welcome, gamestest.Welcome
	guest.Player, registered.Player = player.GuestID("eve").String(), player.GuestID("ada").String()
	check := func(s *script, want []chunk.Block, when string) {
		t.Helper()
		if sent := s.sent(toInventory); len(sent) == 0 || !bytes.Equal(sent[len(sent)-1], inventory(want)[2:]) {
			t.Errorf("%s a player has %q", when, sent)
		}
	}
	cl, s := playing(t)
	gamestest.Receive(t, cl, registered)
	if _, err := cl.translate(append(begin(fromInventoryAction), "Move 1 current_player main 0 current_player main 8"...), time.Now()); err != nil {
		t.Fatal(err)
	}
	check(s, arranged, "after a move")
	cl, s = playing(t)
	check(s, firstSlots(), "who is another one")
	gamestest.Receive(t, cl, guest)
	check(s, firstSlots(), "who is a guest")
	gamestest.Receive(t, cl, registered)
	check(s, arranged, "after a login")
	move(cl.mu.slots, "Move 1 current_player main 1 current_player main 2")
	cl, s = playing(t)
	gamestest.Receive(t, cl, registered)
	check(s, arranged, "after joining again")
}

// Every texture that a node has is sent.
func TestTextures(t *testing.T) {
	d, err := define()
	if err != nil {
		t.Fatal(err)
	}
	for b := chunk.Air + 1; b.Known(); b++ {
		for _, name := range tilesOf(b) {
			if file, _, _ := strings.Cut(name, "^"); d.media[file] == nil {
				t.Errorf("%s: there is no %s", b.Name(), file)
			}
		}
	}
}

// An address that has not sent back its number gets no memory, and no answer that is longer than its question.
func TestGreeting(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	header := packet(nil).u32(protocolID)
	question := header.u16(0).u8(0, kindReliable).u16(firstSequence).u8(kindOriginal, 0, 0)
	answer := make([]byte, 100)
	ask := func() []byte {
		if _, err := c.Write(question); err != nil {
			t.Fatal(err)
		}
		n, err := c.Read(answer)
		if err != nil {
			t.Fatal(err)
		}
		return answer[:n]
	}
	first := append([]byte(nil), ask()...)
	if len(first) > len(question) || !bytes.Equal(first, ask()) {
		t.Errorf("%x is answered %x", question, first)
	}
	id := fields{rest: first[headerSize+2:]}
	number := id.u16()
	if _, err := c.Write(append(header.u16(number+1), 0, kindOriginal, 0, 0)); err != nil { // a wrong number
		t.Fatal(err)
	}
	ask()
	l.mu.Lock()
	peers := len(l.peers)
	l.mu.Unlock()
	if peers != 0 {
		t.Errorf("%d peers before an answer", peers)
	}
	if _, err := c.Write(append(header.u16(number), 0, kindOriginal, 0, 0)); err != nil {
		t.Fatal(err)
	}
	p, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := p.Read(answer); n != 2 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	p.Close()
}

// The peers of one address leave room for others, however many there are; those of loopback are not counted.
func TestPeersOfAnAddress(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var all []*peer
	come := func(ip string, n int) (accepted int) { // from n ports, each with its number
		for port := range uint16(n) {
			from := netip.AddrPortFrom(netip.MustParseAddr(ip), 1+port)
			l.receive(packet(nil).u32(protocolID).u16(l.number(from)).u8(0, kindOriginal, 0), from)
			select {
			case p := <-l.fresh:
				all = append(all, p)
				accepted++
			default:
			}
		}
		return accepted
	}
	for _, c := range []struct {
		ip        string
		ports     int
		wantPeers int
	}{
		{"192.0.2.1", maxOfAddress + 10, maxOfAddress},
		{"::ffff:192.0.2.1", 1, 0},
		{"192.0.2.2", 1, 1},
		{"2001:db8::1", maxOfAddress, maxOfAddress},
		{"2001:db8::2", 1, 0},
		{"2001:db8:0:1::1", 1, 1},
		{"127.0.0.1", maxOfAddress + 10, maxOfAddress + 10},
	} {
		if got := come(c.ip, c.ports); got != c.wantPeers {
			t.Errorf("%d peers of %s are accepted, want %d", got, c.ip, c.wantPeers)
		}
	}
	all[0].Close()
	all[0].Close()
	if got := come("::ffff:192.0.2.1", 2); got != 1 {
		t.Errorf("after one has gone, %d more are accepted, want 1", got)
	}
	for _, p := range all {
		p.Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.peers)+len(l.sites) != 0 {
		t.Errorf("%d peers and %d addresses are left", len(l.peers), len(l.sites))
	}
}

// lossy passes datagrams on between a client and a server, and loses every fifth.
func lossy(t *testing.T, server string) string {
	t.Helper()
	front, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.Dial("udp", server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { front.Close(); back.Close() })
	client := make(chan net.Addr, 1)
	go func() {
		buffer := make([]byte, 2000)
		for i := 1; ; i++ {
			n, from, err := front.ReadFrom(buffer)
			if err != nil {
				return
			}
			select {
			case client <- from:
			default:
			}
			if i%5 != 0 {
				back.Write(buffer[:n]) //nolint:errcheck // as good as lost
			}
		}
	}()
	go func() {
		to := <-client
		buffer := make([]byte, 2000)
		for i := 1; ; i++ {
			n, err := back.Read(buffer)
			if err != nil {
				return
			}
			if i%5 != 0 {
				front.WriteTo(buffer[:n], to) //nolint:errcheck // as good as lost
			}
		}
	}()
	return front.LocalAddr().String()
}

// Where datagrams are lost, what was sent arrives all the same, in order.
func TestLoss(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := luanticlient.Dial(lossy(t, l.Addr().String()), luanticlient.Options{Name: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Leave()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if name, _, err := readLogin(c, isKnown); err != nil || name != "ada" {
		t.Fatalf("%q, %v", name, err)
	}
	const lines = 100
	long := strings.Repeat("long ", 1000)
	for i := range lines {
		text := string(rune('a' + i%26))
		if i == lines-1 {
			text = long
		}
		if _, err := c.Write(begin(toChatMessage).u8(1, 0).wide("").wide(text).u64(0)); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		done := false
		client.Look(func(s *luanticlient.State) {
			done = len(s.Chat) == lines
			for i, line := range s.Chat {
				if want := ": " + string(rune('a'+i%26)); i < lines-1 && line != want {
					t.Fatalf("line %d is %q, want %q", i, line, want)
				}
			}
			if done && s.Chat[lines-1] != ": "+long {
				t.Error("the long line has changed")
			}
		})
		if done {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("not all lines have arrived")
		}
	}
}

// Blocks are placed in the states that a player in the browser gets.
func TestPlacing(t *testing.T) {
	at := grid.Pos{X: 1, Y: 9, Z: 4} // of stone
	up, side := grid.Pos{X: 1, Y: 10, Z: 4}, grid.Pos{X: 1, Y: 9, Z: 3}
	south := func(pitch float64) motion.Pose { return motion.Pose{X: 1.5, Y: 8, Z: 1, Pitch: float32(pitch)} }
	for _, c := range []struct {
		held  chunk.Block
		from  motion.Pose
		above grid.Pos
		want  string
	}{
		{chunk.StoneSlab, south(0), up, "stone_slab"},
		{chunk.StoneSlab, south(0), side, "stone_slab_upper"},        // 0.62 above the bottom
		{chunk.StoneSlab, south(-.1), side, "stone_slab"},            // 0.32
		{chunk.StoneStairs, south(0), up, "stone_stairs_south"},      // the high side is away from the player
		{chunk.Torch, south(0), side, "torch_on_the_south"},          // the wall is there
		{chunk.Torch, south(0), up, "torch"},                         //
		{chunk.Ladder, south(0), side, "ladder_south"},               //
		{chunk.Stone, south(0), grid.Pos{X: 7, Y: 1, Z: 9}, "stone"}, // of no side
	} {
		cl, _ := playing(t, moveTo(start), interactFrom(c.from, interactPlaced, 0, at, c.above))
		cl.mu.slots[0] = c.held
		if e := gamestest.Read[sessionmsg.Edit](t, cl); chunk.Block(e.Block).Name() != c.want || (grid.Pos{X: e.X, Y: e.Y, Z: e.Z}) != c.above {
			t.Errorf("%s is placed as %s at %d %d %d, want %s", c.held.Name(), chunk.Block(e.Block).Name(), e.X, e.Y, e.Z, c.want)
		}
	}
}

// What a client does next is meant for the blocks that it shows: before the answers, and before what it changed is sent.
func TestNextEdits(t *testing.T) {
	at := grid.Pos{X: 1, Y: 9, Z: 3}
	dig, place := interact(interactDug, 0, at, at), interact(interactPlaced, 0, at, at)
	cl, _ := playing(t, moveTo(start), place, place, dig, place)
	gamestest.ReceiveBlocks(t, cl, games.Change{Pos: at, To: chunk.PlankFenceGate})
	gamestest.ReadEdits(t, cl, games.Change{Pos: at, To: chunk.PlankFenceGate + 4}, games.Change{Pos: at, To: chunk.PlankFenceGate}, games.Change{Pos: at})
	for seq, b := range []chunk.Block{chunk.PlankFenceGate + 4, chunk.PlankFenceGate, chunk.Air} {
		gamestest.Receive(t, cl, sessionmsg.Ack{Seq: 100 + uint64(seq), Block: uint16(b)})
	}
	if e := gamestest.Read[sessionmsg.Edit](t, cl); chunk.Block(e.Block) != cl.mu.slots[0] {
		t.Errorf("where the gate was the client makes %+v", e)
	}
}

// A door has two halves, which are placed, used and broken together; a second slab makes a whole block.
func TestPairs(t *testing.T) {
	at := grid.Pos{X: 1, Y: 9, Z: 3}
	up, top := grid.Pos{X: 1, Y: 10, Z: 3}, grid.Pos{X: 1, Y: 11, Z: 3}
	const door = chunk.Door + 2 // from where the client starts, it looks south
	for name, c := range map[string]struct {
		held, lower, upper chunk.Block // there are the others already
		sent               packet
		want               []games.Change
	}{
		"place a door": {chunk.Door, chunk.Air, chunk.Air, interact(interactPlaced, 0, at, up), []games.Change{{Pos: up, To: door}, {Pos: top, To: door}}},
		"open it":      {chunk.Stone, door, door, interact(interactPlaced, 0, top, top), []games.Change{{Pos: top, To: door + 4}, {Pos: up, To: door + 4}}},
		"close it":     {chunk.Air, door + 4, door + 4, interact(interactPlaced, 0, up, up), []games.Change{{Pos: up, To: door}, {Pos: top, To: door}}},
		"break it":     {chunk.Air, door, door, interact(interactDug, 0, up, up), []games.Change{{Pos: up, To: chunk.Air}, {Pos: top, To: chunk.Air}}},
		"half a door":  {chunk.Air, door, chunk.Stone, interact(interactDug, 0, up, up), []games.Change{{Pos: up, To: chunk.Air}}},
		"open a gate":  {chunk.Stone, chunk.PlankFenceGate, chunk.PlankFenceGate, interact(interactPlaced, 0, up, up), []games.Change{{Pos: up, To: chunk.PlankFenceGate + 4}}},
		"no room":      {chunk.Door, chunk.Air, chunk.Stone, interact(interactPlaced, 0, at, up), nil},
		"more water":   {chunk.Water, chunk.Water, chunk.Air, interact(interactPlaced, 0, up, top), []games.Change{{Pos: top, To: chunk.Water}}},
		"no more":      {chunk.Water, chunk.Water, chunk.Air, interact(interactDug, 0, up, up), []games.Change{{Pos: up, To: chunk.Air}}},
		"a slab":       {chunk.CobbleSlab, chunk.CobbleSlab, chunk.Air, interact(interactPlaced, 0, up, top), []games.Change{{Pos: up, To: chunk.Cobble}}},
		"another slab": {chunk.StoneSlab, chunk.CobbleSlab, chunk.Air, interact(interactPlaced, 0, up, top), []games.Change{{Pos: top, To: chunk.StoneSlab}}},
	} {
		t.Run(name, func(t *testing.T) {
			cl, _ := playing(t, moveTo(start), c.sent, moveTo(motion.Pose{X: 2, Y: 10, Z: 2.5}))
			cl.mu.slots[0] = c.held
			land := cl.mu.lands[at.Chunk()]
			for pos, b := range map[grid.Pos]chunk.Block{up: c.lower, top: c.upper} {
				land.Set(chunk.At(pos), b)
			}
			gamestest.ReadEdits(t, cl, c.want...)
			gamestest.Read[sessionmsg.Move](t, cl) // and nothing else before it
		})
	}
}

// Boxes are in the client's space, whose Z runs the other way.
func TestShapes(t *testing.T) {
	north := packet(nil).list((chunk.Ladder + 3).Boxes())
	if want := packet(nil).u16(1).f32(-5, -5, 4.375, 5, 5, 5); !bytes.Equal(north, want) {
		t.Errorf("a ladder to the north is %x, want %x", north, want)
	}
}

// Where others walk is sent without acknowledgement, in packets that fit into a datagram, and once more when they stop.
func TestOthersMove(t *testing.T) {
	cl, s := playing(t, moveTo(start))
	const others = 50
	now := time.Now()
	tick := func() (lossy, reliable int) {
		s.lossy, s.out = nil, nil
		gamestest.Tick(t, cl, now)
		count := func(packets []packet) (n int) {
			for _, p := range packets {
				if len(p) > maxLossy {
					t.Errorf("a packet of %d bytes", len(p))
				}
				n += (len(p) - 2) / positionBytes
			}
			return n
		}
		for _, body := range s.sent(toObjectMessages) {
			reliable += len(body) / positionBytes
		}
		return count(s.lossy), reliable
	}
	gamestest.ReceiveDelta(t, cl, 1, gamestest.Entering(others, 3))
	if lossy, reliable := tick(); lossy+reliable != 0 || len(s.sent(toActiveObjects)) != 1 {
		t.Errorf("%d and %d moves of players who enter", lossy, reliable)
	}
	gamestest.ReceiveDelta(t, cl, 2, gamestest.Entering(others, 4))
	for i, want := range [][2]int{{others, 0}, {0, others}, {0, 0}} {
		if lossy, reliable := tick(); lossy != want[0] || reliable != want[1] {
			t.Errorf("tick %d: %d and %d moves, want %v", i, lossy, reliable, want)
		}
	}
	gamestest.Receive(t, cl, gamestest.Welcome) // of the session after a login: nobody is in sight yet
	if tick(); len(s.sent(toActiveObjects)) != 1 || len(cl.mu.avatars.All())+len(cl.mu.avatars.used) != 0 {
		t.Errorf("%d players are left of the session before, and %d ids", len(cl.mu.avatars.All()), len(cl.mu.avatars.used))
	}
	gamestest.ReceiveDelta(t, cl, 1, gamestest.Entering(1, 3))
	if tick(); len(cl.mu.avatars.All()) != 1 || len(cl.mu.avatars.used) != 1 {
		t.Errorf("%d players are in sight, want 1", len(cl.mu.avatars.All()))
	}
}
