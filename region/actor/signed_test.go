package actor

import (
	"crypto/ed25519"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/internal/signature"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const testWorld = "4f1c0f6d2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5"

// signs has the land check signatures.
func signs(l *land) {
	l.Proofs.Signed = signature.New(testWorld).Signed
	l.contents.land.Proofs = l.Proofs
}

func signedBy(key ed25519.PrivateKey, world string, e nodemsg.Intent) nodemsg.Intent {
	e.Player = player.IDOf(key.Public().(ed25519.PublicKey))
	e.Proof = nodemsg.Proof{Key: [32]byte(key.Public().(ed25519.PublicKey))}
	copy(e.Signature[:], ed25519.Sign(key, e.SignedText(world)))
	return e
}

// A leader refuses edits that gateways have invented, and proposes none of them. What players have signed, and what
// guests ask for, it proposes.
func TestLeaderRefusesForgeries(t *testing.T) {
	l, g := scripted()
	signs(l)
	link := newLink(l)
	victim, own := ed25519.NewKeyFromSeed(make([]byte, 32)), ed25519.NewKeyFromSeed(append(make([]byte, 31), 1))
	seq, rng := uint64(time.Now().UnixMicro()), rand.New(rand.NewPCG(1, 2))
	edit := func() nodemsg.Intent {
		seq++
		return nodemsg.Intent{Player: player.IDOf(victim.Public().(ed25519.PublicKey)), Seq: seq, Pos: at(here, rng.Int32N(60)), Block: chunk.Stone}
	}
	genuine := signedBy(victim, testWorld, edit())
	forge := []func() nodemsg.Intent{
		edit,
		func() nodemsg.Intent { e := edit(); e.Name = "ada"; return e },
		func() nodemsg.Intent { e := edit(); e.Proof = genuine.Proof; return e },
		func() nodemsg.Intent { return signedBy(victim, "another world", edit()) },
		func() nodemsg.Intent { e := genuine; e.Signature[rng.IntN(64)] ^= 1 << rng.IntN(8); return e },
		func() nodemsg.Intent { e := genuine; e.Pos.Y++; return e },
		func() nodemsg.Intent { e := genuine; e.Block = chunk.Air; return e },
		func() nodemsg.Intent {
			e, victim := signedBy(own, testWorld, edit()), genuine.Player
			e.Player = victim
			return e
		},
		func() nodemsg.Intent {
			e, victim := signedBy(own, testWorld, edit()), genuine
			e.Player, e.Key = victim.Player, victim.Key
			return e
		},
	}
	for made := 0; made < 100_000; {
		var edits []nodemsg.Intent
		for range 500 {
			edits = append(edits, forge[made%len(forge)]())
			made++
		}
		send(l, link, nodemsg.ToRegion{Edits: edits})
		steps(l)
		results, _ := received(link)
		if len(results) != len(edits) || len(g.proposed) > 0 {
			t.Fatalf("%d of %d forgeries are answered, %d entries proposed", len(results), len(edits), len(g.proposed))
		}
		for _, r := range results {
			if r.Refused != wire.RefusedUnsigned {
				t.Fatalf("a forgery is answered %+v", r)
			}
		}
	}
	ada := guest("ada", uint64(time.Now().UnixMicro()), at(here, 1), chunk.Stone)
	send(l, link, nodemsg.ToRegion{Edits: []nodemsg.Intent{genuine, ada}})
	steps(l)
	if len(g.proposed) != 1 {
		t.Fatalf("%d entries proposed", len(g.proposed))
	}
	b, err := world.DecodeBatch(g.proposed[0])
	if err != nil || len(b.Edits) != 2 || b.Edits[0] != genuine || b.Edits[1] != ada || time.Since(time.UnixMilli(b.Time)).Abs() > time.Minute {
		t.Errorf("proposed is %+v, %v", b, err)
	}
}

// A leader verifies each edit once, when it arrives; the entries of others it verifies when it applies them. If another
// entry than its own is committed, because it has lost its leadership, it applies that one.
func TestLeaderAppliesWhatIsCommitted(t *testing.T) {
	l, g := scripted()
	signs(l)
	verified := make(map[nodemsg.Intent]int)
	signed := l.Proofs.Signed
	l.Proofs.Signed = func(edits []nodemsg.Intent) []bool {
		for _, e := range edits {
			verified[e]++
		}
		return signed(edits)
	}
	l.contents.land.Proofs = l.Proofs
	link := newLink(l)
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	seq := uint64(time.Now().UnixMicro())
	edit := func(block chunk.Block) nodemsg.Intent {
		seq++
		return signedBy(key, testWorld, nodemsg.Intent{Seq: seq, Pos: at(here, 1), Block: block})
	}
	has := func(want chunk.Block) {
		t.Helper()
		if got := l.contents.land.Chunk(here).Edits; len(got) != 1 || got[0].Block != want {
			t.Errorf("the land has %+v, want %s", got, want.Name())
		}
	}
	own := edit(chunk.Stone)
	send(l, link, nodemsg.ToRegion{Edits: []nodemsg.Intent{own}})
	steps(l)
	g.commit()
	l.step()
	has(chunk.Stone)
	if r, _ := received(link); len(r) != 1 || r[0].Refused != "" {
		t.Errorf("answered is %+v", r)
	}
	if verified[own] != 1 {
		t.Errorf("an edit was verified %d times", verified[own])
	}
	mine := edit(chunk.Brick)
	send(l, link, nodemsg.ToRegion{Edits: []nodemsg.Intent{mine}})
	l.step()
	lost := g.proposed
	theirs := edit(chunk.Planks)
	g.proposed = [][]byte{world.Batch{Time: time.Now().UnixMilli(), Edits: []nodemsg.Intent{theirs}}.Encode()}
	g.mail = []replica.Delivery{replica.Leadership{Term: 2}}
	g.commit()
	l.step()
	has(chunk.Planks)
	if verified[theirs] != 1 {
		t.Errorf("another leader's edit was verified %d times", verified[theirs])
	}
	g.proposed = lost // it had reached a member: now it is committed, too
	g.commit()
	l.step()
	if len(lost) != 1 || verified[mine] != 1 {
		t.Errorf("%d entries were proposed, and their edit was verified %d times", len(lost), verified[mine])
	}
	if r, _ := received(link); len(r) != 1 || r[0].Seq != mine.Seq || r[0].Refused != "" {
		t.Errorf("answered is %+v", r)
	}
	has(chunk.Brick)
}

// Only texts that a sign can have are proposed: gateways may lie.
func TestLeaderChecksTexts(t *testing.T) {
	l, g := scripted()
	signs(l)
	l.Proofs.Own = func(player.ID) bool { return true }
	link := newLink(l)
	seq := uint64(time.Now().UnixMicro())
	write := func(block chunk.Block, text string) string {
		t.Helper()
		seq++
		e := guest("alice", seq, at(here, 1), block)
		e.Text = text
		return commitEdit(t, l, g, link, e)
	}
	for _, c := range []struct {
		block      chunk.Block
		text, want string
	}{
		{chunk.Sign + 7, "home", ""},
		{chunk.Stone, "home", wire.RefusedText},
		{chunk.Sign, "a\x07", wire.RefusedText},
		{chunk.Sign, "a\nb\nc\nd\ne", wire.RefusedText},
		{chunk.Sign, "again", ""},
	} {
		if refused := write(c.block, c.text); refused != c.want {
			t.Errorf("%q on %s: %q, want %q", c.text, c.block.Name(), refused, c.want)
		}
	}
	if signs := l.contents.land.Chunk(here).Signs; len(signs) != 1 || signs[0].Text != "again" {
		t.Errorf("the land has %+v", signs)
	}
}

// What a leader proposes, and applies as it is, is what others decode, whatever its clock says.
func TestProposedEntriesDecode(t *testing.T) {
	l, g := scripted()
	l.edits.now = func() time.Time { return time.UnixMilli(-5) }
	send(l, newLink(l), nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(1)}})
	steps(l)
	if len(g.proposed) != 1 {
		t.Fatalf("%d entries are proposed", len(g.proposed))
	}
	batch, err := world.DecodeBatch(g.proposed[0])
	if err != nil || !reflect.DeepEqual(batch, l.edits.newest.batch) {
		t.Errorf("%+v is decoded as %+v (%v)", l.edits.newest.batch, batch, err)
	}
}

// Edits that a development version has acknowledged are not passed over: the region is closed, and says what to do.
func TestOldEntriesCloseTheRegion(t *testing.T) {
	l, g := scripted()
	g.proposed = [][]byte{{1, 0, 0}}
	g.commit()
	if caught := Catch(func() { l.step() }); caught == nil || caught.Kind != Broken || !errors.Is(caught.Cause, world.ErrOldBatch) {
		t.Errorf("the step ends with %v", caught)
	}
}
