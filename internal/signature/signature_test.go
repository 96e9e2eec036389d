package signature

import (
	"crypto/ed25519"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const world = "4f1c0f6d2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5"

func keyOf(n byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(append(make([]byte, 31), n)) }

func signed(key ed25519.PrivateKey, seq uint64) nodemsg.Intent {
	e := nodemsg.Intent{Seq: seq, Pos: grid.Pos{X: -4, Y: 63, Z: int32(seq)}, Block: chunk.Brick}
	e.Key = [32]byte(key.Public().(ed25519.PublicKey))
	copy(e.Signature[:], ed25519.Sign(key, e.SignedText(world)))
	return e
}

// The result of a signature is that of crypto/ed25519, alone and among others, of one caller and of several
// at once.
func TestSigned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := New(world)
		var calls [][]nodemsg.Intent
		for range rapid.IntRange(1, 3).Draw(t, "calls") {
			var edits []nodemsg.Intent
			for range rapid.IntRange(0, 2*atOnce+3).Draw(t, "edits") {
				e := signed(keyOf(rapid.ByteRange(0, 4).Draw(t, "key")), rapid.Uint64Range(0, 9).Draw(t, "seq"))
				switch rapid.IntRange(0, 20).Draw(t, "damage") {
				case 0:
					e.Signature[rapid.IntRange(0, 63).Draw(t, "byte")] ^= 1
				case 1:
					e.Seq++
				case 2:
					e.Key = [32]byte(keyOf(9).Public().(ed25519.PublicKey))
				case 3:
					e.Proof = nodemsg.Proof{Name: "ada"}
				}
				edits = append(edits, e)
			}
			calls = append(calls, edits)
		}
		results := make([][]bool, len(calls))
		var all sync.WaitGroup
		for n, edits := range calls {
			all.Go(func() { results[n] = v.Signed(edits) })
		}
		all.Wait()
		for n, edits := range calls {
			for i, e := range edits {
				want := e.Name == "" && ed25519.Verify(e.Key[:], e.SignedText(world), e.Signature[:])
				if got := results[n][i]; got != want {
					t.Fatalf("edit %d of %d, %+v: %t", i, len(edits), e, got)
				}
			}
		}
	})
}

// A signature with a component of small order is valid together with others just if it is valid alone; otherwise
// members would differ.
func TestTogetherAsAlone(t *testing.T) {
	identity := nodemsg.Intent{Seq: 1, Block: chunk.Brick}
	identity.Key[0], identity.Signature[0] = 1, 1 // the neutral element, which has "signed" everything
	alone := New(world).Signed([]nodemsg.Intent{identity})[0]
	edits := []nodemsg.Intent{signed(keyOf(1), 1), identity, signed(keyOf(2), 2)}
	for range 20 {
		if got := New(world).Signed(edits); !got[0] || got[1] != alone || !got[2] {
			t.Fatalf("together %v, alone %t", got, alone)
		}
	}
}

// Who has many signatures verified does not let others wait, nor waits for them.
func TestManyAreNobodysTurn(t *testing.T) {
	v := New(world)
	edits := make([]nodemsg.Intent, atOnce)
	for i := range edits {
		edits[i] = signed(keyOf(1), uint64(i))
	}
	v.verifying.Lock() // somebody's turn
	defer v.verifying.Unlock()
	done := make(chan []bool, 1)
	go func() { done <- v.Signed(edits) }()
	select {
	case got := <-done:
		if slices.Contains(got, false) {
			t.Error("not signed")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("many wait for their turn")
	}
}

// What a signature costs a node, in groups of edits that arrive together.
func BenchmarkSigned(b *testing.B) {
	for _, together := range []int{1, 4, 16, 32, 64} {
		b.Run(strconv.Itoa(together), func(b *testing.B) {
			var edits []nodemsg.Intent
			for i := range 1024 {
				edits = append(edits, signed(keyOf(byte(i%64)), uint64(i)))
			}
			v, n := New(world), 0
			for b.Loop() {
				at := n % len(edits)
				if !v.Signed(edits[at : at+together])[0] {
					b.Fatal("not signed")
				}
				n += together
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1000/float64(n), "µs/edit")
		})
	}
}

func BenchmarkSign(b *testing.B) {
	key := keyOf(1)
	for seq := uint64(0); b.Loop(); seq++ {
		signed(key, seq)
	}
}
