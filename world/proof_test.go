package world

import (
	"crypto/ed25519"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/internal/signature"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const testWorld = "4f1c0f6d2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5"

// testTime is the time of batches in tests.
var testTime = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// firstChunk is a chunk of testCell, and firstBlock one in it.
var (
	firstChunk = grid.ChunkPos{X: testCell.Area().MinX, Z: testCell.Area().MinZ}
	firstBlock = grid.Pos{X: firstChunk.X * grid.ChunkSize, Y: 5, Z: firstChunk.Z * grid.ChunkSize}
)

// keyOf returns the n-th key of tests.
func keyOf(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, 31), n))
}

func idOf(key ed25519.PrivateKey) player.ID { return player.IDOf(key.Public().(ed25519.PublicKey)) }

// signed returns the edit in the name of the key's owner, with their signature.
func signed(key ed25519.PrivateKey, world string, e nodemsg.Intent) nodemsg.Intent {
	e.Player = idOf(key)
	e.Proof = nodemsg.Proof{Key: [32]byte(key.Public().(ed25519.PublicKey))}
	copy(e.Signature[:], ed25519.Sign(key, e.SignedText(world)))
	return e
}

// signedLand returns a land that checks signatures, with one pinned chunk.
func signedLand(t testing.TB) *Land {
	t.Helper()
	l := newTestLand()
	l.Proofs = Proofs{Signed: signature.New(testWorld).Signed}
	if _, err := l.Apply(2, Batch{Time: testTime.UnixMilli(), Pins: []Pin{{Chunk: firstChunk}}}.Encode()); err != nil {
		t.Fatal(err)
	}
	return l
}

// forger makes edits in the name of a victim who has not asked for them.
type forger struct {
	rng    *rand.Rand
	victim ed25519.PrivateKey
	own    ed25519.PrivateKey
	real   []nodemsg.Intent // edits that the victim has signed, and that were applied
	next   uint64
}

func newForger(seed uint64) *forger {
	return &forger{rng: rand.New(rand.NewPCG(seed, 1)), victim: keyOf(1), own: keyOf(2), next: uint64(testTime.UnixMicro())}
}

func (f *forger) edit() nodemsg.Intent {
	f.next++
	return nodemsg.Intent{
		Player: idOf(f.victim), Seq: f.next, Block: chunk.Block(1 + f.rng.IntN(3)),
		Pos: grid.Pos{X: firstBlock.X + f.rng.Int32N(grid.ChunkSize), Y: 1 + f.rng.Int32N(30), Z: firstBlock.Z + f.rng.Int32N(grid.ChunkSize)},
	}
}

// forgeries are the kinds of forged edits.
var forgeries = []func(f *forger) nodemsg.Intent{
	(*forger).edit, // without a proof
	func(f *forger) nodemsg.Intent { // as a guest
		e := f.edit()
		e.Name = "mallory"
		return e
	},
	func(f *forger) nodemsg.Intent { // with another key
		e := signed(f.own, testWorld, f.edit())
		e.Player = idOf(f.victim)
		return e
	},
	func(f *forger) nodemsg.Intent { // with the signature of another key
		e := signed(f.own, testWorld, f.edit())
		e.Player, e.Key = idOf(f.victim), [32]byte(f.victim.Public().(ed25519.PublicKey))
		return e
	},
	func(f *forger) nodemsg.Intent { // with random bytes
		e := f.edit()
		e.Key = [32]byte(f.victim.Public().(ed25519.PublicKey))
		for i := range e.Signature {
			e.Signature[i] = byte(f.rng.Uint32())
		}
		return e
	},
	func(f *forger) nodemsg.Intent { // with a signature of the victim's that is damaged
		e := f.real[f.rng.IntN(len(f.real))]
		e.Signature[f.rng.IntN(len(e.Signature))] ^= 1 << f.rng.IntN(8)
		return e
	},
	func(f *forger) nodemsg.Intent { // with the signature of an edit elsewhere, as of another region
		e := f.real[f.rng.IntN(len(f.real))]
		e.Pos.X ^= 1 + f.rng.Int32N(grid.ChunkSize-1)
		return e
	},
	func(f *forger) nodemsg.Intent { // with the signature of another block
		e := f.real[f.rng.IntN(len(f.real))]
		e.Block++
		return e
	},
	func(f *forger) nodemsg.Intent { // with the signature of another sequence
		e := f.real[f.rng.IntN(len(f.real))]
		e.Seq += 1 + uint64(f.rng.IntN(1e6))
		return e
	},
	func(f *forger) nodemsg.Intent { // with a signature for another world
		return signed(f.victim, "another world", f.edit())
	},
	func(f *forger) nodemsg.Intent { // kept since an old session of the victim's, and never sent
		e := f.edit()
		e.Seq -= uint64((signedFor + time.Duration(1+f.rng.Int64N(int64(1000*time.Hour)))).Microseconds())
		return signed(f.victim, testWorld, e)
	},
	func(f *forger) nodemsg.Intent { // repeated as it was: this is confirmed, and changes nothing
		return f.real[f.rng.IntN(len(f.real))]
	},
}

// A leader, or most of the members, can propose what they want: nothing is applied that the player has not signed.
func TestForgeriesAreNotApplied(t *testing.T) {
	l, f := signedLand(t), newForger(7)
	b := Batch{Time: testTime.UnixMilli()}
	for range recentWindow {
		f.real = append(f.real, signed(f.victim, testWorld, f.edit()))
	}
	b.Edits = f.real
	if out, err := l.Apply(3, b.Encode()); err != nil || len(out.Changes) != recentWindow {
		t.Fatalf("%d of the victim's %d edits are applied: %v", len(out.Changes), recentWindow, err)
	}
	// Somebody has built over it since.
	over := nodemsg.Proof{Name: "ada"}
	b.Edits = nil
	for i, e := range f.real {
		b.Edits = append(b.Edits, nodemsg.Intent{Player: player.GuestID("ada"), Seq: uint64(i + 1), Pos: e.Pos, Block: chunk.Glass, Proof: over})
	}
	if out, err := l.Apply(4, b.Encode()); err != nil || len(out.Changes) != recentWindow {
		t.Fatalf("%d edits of a guest are applied: %v", len(out.Changes), err)
	}
	before, made := l.rows(), 0
	for index := uint64(5); made < 100_000; index++ {
		b.Edits = nil
		for range 500 {
			b.Edits = append(b.Edits, forgeries[made%len(forgeries)](f))
			made++
		}
		out, err := l.Apply(index, b.Encode())
		if err != nil || len(out.Changes) > 0 {
			t.Fatalf("%d forgeries are applied, the first of which is %+v: %v", len(out.Changes), out.Changes[0], err)
		}
		for i, r := range out.Results {
			if r.Refused == "" && b.Edits[i].Seq > f.real[len(f.real)-1].Seq {
				t.Fatalf("%+v is confirmed", b.Edits[i])
			}
		}
	}
	if !reflect.DeepEqual(l.rows(), before) {
		t.Error("forgeries have changed the land")
	}
}

// Edits of all kinds of authors, some of them proven.
func drawSigned(t *rapid.T) Batch {
	b := Batch{Time: testTime.UnixMilli()}
	for range rapid.IntRange(0, 6).Draw(t, "edits") {
		e := nodemsg.Intent{
			Seq: uint64(testTime.UnixMicro()) + uint64(rapid.IntRange(0, 5).Draw(t, "seq")), Block: chunk.Block(rapid.IntRange(0, 3).Draw(t, "block")),
			Pos: grid.Pos{X: firstBlock.X + rapid.Int32Range(0, 3).Draw(t, "x"), Y: 5, Z: firstBlock.Z},
		}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			e.Player, e.Name = player.GuestID("ada"), rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "name")
		case 1:
			e.Player = rapid.SampledFrom([]player.ID{{1}, {2}}).Draw(t, "own")
		case 2:
			e = signed(keyOf(byte(rapid.IntRange(1, 3).Draw(t, "key"))), testWorld, e)
			e.Signature[0] ^= rapid.SampledFrom([]byte{0, 1}).Draw(t, "damage")
		default:
			e = signed(keyOf(byte(rapid.IntRange(1, 3).Draw(t, "key"))), testWorld, e)
		}
		b.Edits = append(b.Edits, e)
	}
	return b
}

// All members agree on which edits are proven, whether they have seen them before or not, and apply just those.
func TestMembersAgreeOnProofs(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		known := signature.New(testWorld)
		own := func(id player.ID) bool { return id == player.ID{1} }
		one, other := signedLand(outer), signedLand(outer)
		one.Proofs, other.Proofs = Proofs{Signed: known.Signed, Own: own}, Proofs{Signed: signature.New(testWorld).Signed, Own: own}
		for index := range uint64(rapid.IntRange(1, 4).Draw(t, "batches")) {
			b := drawSigned(t)
			for _, e := range b.Edits {
				known.Signed([]nodemsg.Intent{e})
			}
			out, err := one.Apply(index+3, b.Encode())
			again, errAgain := other.Apply(index+3, b.Encode())
			if err != nil || errAgain != nil || !reflect.DeepEqual(out, again) {
				t.Fatalf("members differ: %+v, %v; %+v, %v", out, err, again, errAgain)
			}
			for i, e := range b.Edits {
				proven := e.Name == "ada" || e.Player == player.ID{1} ||
					e.Key != [32]byte{} && ed25519.Verify(e.Key[:], e.SignedText(testWorld), e.Signature[:])
				if refused := out.Results[i].Refused == wire.RefusedUnsigned; refused == proven {
					t.Fatalf("%+v, proven %t, is answered %+v", e, proven, out.Results[i])
				}
			}
		}
		if !reflect.DeepEqual(one.rows(), other.rows()) {
			t.Fatal("the lands differ")
		}
	})
}

// From the first batch on a region has a history; so have its parts, and whoever reads its rows. Its digest follows.
func TestEditedRegionsStaySo(t *testing.T) {
	load := func(id uint64, cell grid.Cell, writes []kv.Write) *Land {
		t.Helper()
		l := NewLand(id, cell, testHeight)
		for _, w := range writes {
			if err := l.Load(w.Key, w.Value); err != nil {
				t.Fatal(err)
			}
		}
		return l
	}
	l := newTestLand()
	if l.Structure().Edited || len(l.Structure().encode()) != 48 {
		t.Error("a region counts as edited from the beginning")
	}
	tracked := l.StartDigest(2)
	tracked.Step(1000)
	if _, err := l.Apply(3, Batch{Time: testTime.UnixMilli()}.Encode()); err != nil {
		t.Fatal(err)
	}
	if sequences := (Part{Sequences: true}); tracked.At(sequences, 3) != l.digest(sequences) {
		t.Error("the digest does not follow")
	}
	if !l.Structure().Edited || !load(l.id, l.cell, l.rows()).Structure().Edited {
		t.Error("the region, or a copy, does not count as edited")
	}
	if writes := l.Writes(); len(writes) != 1 || !IsStructure(writes[0].Key) {
		t.Errorf("%d rows are stored", len(writes))
	}
	var packed [2][]byte
	for half, child := range l.Children(4) {
		it := load(child.ID, child.Cell, child.Rows)
		if !it.Structure().Edited {
			t.Errorf("half %d does not count as edited", half)
		}
		var err error
		if packed[half], err = it.PackedRows(0, 0); err != nil {
			t.Fatal(err)
		}
	}
	l.Split(4)
	if _, err := l.Apply(5, EncodeMerge(l.Structure().Attempt, packed)); err != nil || !l.Structure().Edited {
		t.Fatalf("merged again: %+v, %v", l.Structure(), err)
	}
	odd := binary.BigEndian.AppendUint64(make([]byte, 48), 2)
	if _, ok := decodeStructure(odd); ok {
		t.Error("a row of the structure with an unknown flag is accepted")
	}
}

// A leader applies a batch that it has proposed as the other members apply the entry: with the same outcome and rows.
func TestApplyProven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		led, follows := newTestLand(), newTestLand()
		proofs := Proofs{Signed: signature.New(testWorld).Signed, Own: func(id player.ID) bool { return id == player.ID{9} }}
		led.Proofs, follows.Proofs = proofs, proofs
		for index := uint64(2); index < 6; index++ {
			b := Batch{Time: testTime.UnixMilli() + int64(index)}
			if index == 2 || rapid.IntRange(0, 4).Draw(t, "pins") == 0 {
				b.Pins = []Pin{{Chunk: firstChunk, Base: [32]byte{byte(index)}}}
			}
			for range rapid.IntRange(0, 6).Draw(t, "edits") {
				e := nodemsg.Intent{
					Seq: uint64(testTime.UnixMicro()) + rapid.Uint64Range(0, 80).Draw(t, "seq"), Block: chunk.Block(rapid.IntRange(0, 3).Draw(t, "block")),
					Pos: grid.Pos{X: firstBlock.X + rapid.Int32Range(-1, 2).Draw(t, "x"), Y: rapid.Int32Range(-1, 3).Draw(t, "y"), Z: firstBlock.Z},
				}
				if rapid.IntRange(0, 3).Draw(t, "sign") == 0 {
					e.Block, e.Text = chunk.Sign, rapid.SampledFrom([]string{"", "home", "über"}).Draw(t, "text")
				}
				switch kind := rapid.IntRange(0, 3).Draw(t, "author"); kind {
				case 0:
					e.Player, e.Name = player.GuestID("ada"), "ada"
					e.Key[0] = 7 // a gateway may send both: the entry has the name only
				case 1:
					e.Player, e.Signature[0] = player.ID{9}, 7
				default:
					e = signed(keyOf(byte(kind)), testWorld, e)
				}
				b.Edits = append(b.Edits, e)
			}
			for i, proven := range proofs.Proven(b.Edits) {
				if !proven {
					t.Fatalf("edit %d is not proven", i)
				}
			}
			got := led.ApplyProven(index, b)
			want, err := follows.Apply(index, b.Encode())
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v is applied with\n%+v, by others with\n%+v, %v", b, got, want, err)
			}
			if got, want := led.Writes(), follows.Writes(); !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v is stored as\n%x, by others as\n%x", b, got, want)
			}
		}
	})
}

// An entry is applied at these costs: of guests, of keys, and of keys by the leader, which has verified it before.
func BenchmarkApplySigned(b *testing.B) {
	for _, kind := range []string{"guest", "key", "proven"} {
		b.Run(kind, func(b *testing.B) {
			const edits = 64
			batch := Batch{Time: testTime.UnixMilli()}
			for i := range edits {
				e := nodemsg.Intent{Seq: uint64(testTime.UnixMicro() + int64(i)), Pos: grid.Pos{X: firstBlock.X + int32(i%32), Y: 5, Z: firstBlock.Z + int32(i/32)}, Block: chunk.Brick}
				if kind == "guest" {
					e.Player, e.Name = player.GuestID("ada"), "ada"
				} else {
					e = signed(keyOf(byte(i)), testWorld, e)
				}
				batch.Edits = append(batch.Edits, e)
			}
			entry, v := batch.Encode(), signature.New(testWorld)
			for b.Loop() {
				b.StopTimer()
				l := signedLand(b)
				l.Proofs.Signed = v.Signed
				b.StartTimer()
				var out Outcome
				if kind == "proven" {
					out = l.ApplyProven(3, batch)
				} else {
					out, _ = l.Apply(3, entry)
				}
				if len(out.Changes) != edits {
					b.Fatal(out)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1000/float64(b.N*edits), "µs/edit")
		})
	}
}
