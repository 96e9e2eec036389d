package player

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/voxelpopuli/voxeld/grid"
)

// Ids are stored in records, on disks and in clients: they must never change.
func TestIDGolden(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	if got, want := IDOf(key).String(), "5a5075d40f38d997e2edd85fd845402d"; got != want {
		t.Errorf("id of the key %x: %s, want %s", key, got, want)
	}
	if got, want := GuestID("steve").String(), "dc8ac2aca060e5aad803e776003d2f50"; got != want {
		t.Errorf("id of the guest steve: %s, want %s", got, want)
	}
	if got, want := GuestID("steve").Key(), "/player/"+GuestID("steve").String(); got != want {
		t.Errorf("key %s, want %s", got, want)
	}
}

func TestGuestsCannotTakeAKeysID(t *testing.T) {
	key := ed25519.PublicKey("steve")
	if IDOf(key) == GuestID("steve") {
		t.Error("a key and a name have one id")
	}
	if hash := sha256.Sum256([]byte("key\x00steve")); IDOf(key) != ID(hash[:16]) {
		t.Error("the id of a key is not what its comment says")
	}
}

func TestIDInJSONAndCBOR(t *testing.T) {
	type record struct {
		Player ID         `json:"player" cbor:"1,keyasint"`
		Others map[ID]int `json:"others" cbor:"2,keyasint"`
	}
	id := GuestID("steve")
	want := record{id, map[ID]int{id: 1}}

	text, err := json.Marshal(want)
	if err != nil || string(text) != `{"player":"`+id.String()+`","others":{"`+id.String()+`":1}}` {
		t.Errorf("wrote %s, %v", text, err)
	}
	var fromJSON record
	if err := json.Unmarshal(text, &fromJSON); err != nil || fromJSON.Player != id || fromJSON.Others[id] != 1 {
		t.Errorf("read %v, %v", fromJSON, err)
	}

	b, err := cbor.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if diagnosis, err := cbor.Diagnose(b); err != nil || diagnosis != "{1: h'"+id.String()+"', 2: {h'"+id.String()+"': 1}}" {
		t.Errorf("wrote %s, %v", diagnosis, err)
	}
	var fromCBOR record
	if err := cbor.Unmarshal(b, &fromCBOR); err != nil || fromCBOR.Player != id || fromCBOR.Others[id] != 1 {
		t.Errorf("read %v, %v", fromCBOR, err)
	}
	for _, size := range []int{0, 15, 17} {
		short, err := cbor.Marshal(make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		if err := cbor.Unmarshal(short, &id); err == nil {
			t.Errorf("%d bytes read as an id", size)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	good := GuestID("a1").String()
	for _, text := range []string{
		"", good[1:], good + "0", good[:31] + "g", strings.Repeat("A", 32), "0x" + good[2:], " " + good[1:],
		strings.Repeat("é", 16), // 32 bytes
	} {
		if id, err := ParseID(text); err == nil {
			t.Errorf("%q read as %v", text, id)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add(GuestID("steve").String())
	f.Add(strings.Repeat("F", 32))
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseID(text)
		if err != nil {
			return
		}
		if id.String() != text {
			t.Fatalf("%q read as %v", text, id)
		}
		if got := id.Key(); got != "/player/"+text {
			t.Fatalf("the key of %s is %s", text, got)
		}
	})
}

func TestProofText(t *testing.T) {
	if got := string(ProofText("0a1b", "c0ffee")); got != "voxeld session 1\nc0ffee\n0a1b" {
		t.Errorf("proof text is %q", got)
	}
}

// The text is what the browser signs, too (web/test/session.test.ts has the same signature).
func TestEditText(t *testing.T) {
	text := EditText("w1", 100, grid.Pos{X: 12, Y: 63, Z: -4}, 16, "")
	if string(text) != "voxeld edit 1\nw1\n100\n12\n63\n-4\n16" {
		t.Errorf("the text is %q", text)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	if got := hex.EncodeToString(ed25519.Sign(key, text)); got != "f7e66c2e9c5bed97ad12baace1e34be56099e464e0afb0508514cf5e8313e208b936e27b24896eb7e12f0b84a366300de27343b6f218444d78dee2fa3e313f01" {
		t.Errorf("the signature is %s", got)
	}
	sign := EditText("w1", 100, grid.Pos{X: 12, Y: 63, Z: -4}, 320, "to the\nharbour")
	if string(sign) != "voxeld edit 2\nw1\n100\n12\n63\n-4\n320\nto the\nharbour" {
		t.Errorf("the text of a sign is %q", sign)
	}
	if got := hex.EncodeToString(ed25519.Sign(key, sign)); got != "9e3dd039799f3ed6d0a358867d0ee51d10fcea943766121a702efc0de5a12aacd3536aa78092520c01745f8f7697f0bfff6841363934f6a5fe8b619e13ba6401" {
		t.Errorf("the signature of a sign is %s", got)
	}
}
