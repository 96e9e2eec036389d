package sessionmsg

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
)

// TestProtocolDoc decodes the examples of docs/protocol.md and looks for every code in it.
func TestProtocolDoc(t *testing.T) {
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	_, session, _ := strings.Cut(doc, "### From the client")
	fromClient, fromServer, _ := strings.Cut(session, "### From the server")

	seen := map[string]bool{}
	for _, example := range examples(t, fromClient) {
		m, err := DecodeClient(example)
		if err != nil {
			t.Errorf("%s: %v", example, err)
			continue
		}
		seen[kindOf(t, example)] = true
		if _, err := EncodeClient(m); err != nil {
			t.Error(err)
		}
	}
	for _, example := range examples(t, fromServer) {
		m, err := DecodeServer(example)
		if err != nil {
			t.Errorf("%s: %v", example, err)
			continue
		}
		seen[kindOf(t, example)] = true
		switch m := m.(type) {
		case ChunkData:
			encoded, err := wire.UnpackChunk(m.Data)
			if err != nil {
				t.Fatal(err)
			}
			if c, err := chunk.Decode(encoded); err != nil || c.Sections() != 4 {
				t.Errorf("the example's chunk: %v", err)
			}
		case Frame:
			for _, raw := range m.Chunks {
				if p, err := DecodePiece(raw); err != nil || len(p.Enter)+len(p.Leave)+len(p.Moves)+len(p.Blocks)+len(p.Chat) != 5 {
					t.Errorf("the example's piece: %+v, %v", p, err)
				}
			}
		}
	}
	for _, kind := range []string{"join", "prove", "move", "edit", "chat", "hit", "gift", "denied", "challenge", "welcome", "chunk", "frame", "ack", "correction", "reconnect", "failure"} {
		if !seen[kind] {
			t.Errorf("no example of %q", kind)
		}
	}

	for _, code := range []string{
		DeniedUnknownPlayer, DeniedSelf, DeniedOutOfReach, DeniedBehindBlock, DeniedRate, DeniedUnknownBlock, DeniedNotPlaceable, DeniedUnavailable,
	} {
		_, denied, _ := strings.Cut(fromServer, "**denied**")
		if denied, _, _ = strings.Cut(denied, "**ack**"); !strings.Contains(denied, "`"+code+"`") {
			t.Errorf("denial %s is not documented", code)
		}
	}

	_, codes, _ := strings.Cut(doc, "## 6. Failure codes")
	failures, refusals, _ := strings.Cut(codes, "### Refused edits")
	for _, code := range []string{
		wire.FailBadJSON, wire.FailBadCBOR, wire.FailTooLong, wire.FailUnknownMessage, wire.FailUnknownField, wire.FailMissingField, wire.FailBadType, wire.FailBadValue, wire.FailBadName,
		wire.FailBadKey, wire.FailBadSignature, wire.FailWrongVersion, wire.FailUnexpected, wire.FailTimeout, wire.FailRate, wire.FailSlow, wire.FailFull, wire.FailNoGuests,
		wire.FailNameTaken, wire.FailReplaced, wire.FailShuttingDown, wire.FailInternal,
	} {
		if !strings.Contains(failures, "`"+code+"`") {
			t.Errorf("code %s is not documented", code)
		}
	}
	for _, code := range []string{
		wire.RefusedOutOfWorld, wire.RefusedOutOfReach, wire.RefusedUnknownBlock, wire.RefusedUnbreakable, wire.RefusedNotPlaceable, wire.RefusedInsidePlayer,
		wire.RefusedRate, wire.RefusedStale, wire.RefusedNotLoaded, wire.RefusedUnavailable,
	} {
		if !strings.Contains(refusals, "`"+code+"`") {
			t.Errorf("refusal %s is not documented", code)
		}
	}
}

// The examples in bytes match their descriptions.
func TestProtocolDocBytes(t *testing.T) {
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "### In CBOR")
	section, _, end := strings.Cut(section, "### Try it")
	if !found || !end {
		t.Fatal("there is no section about CBOR")
	}
	var fromClient []FromClient
	var fromServer []FromServer
	var frames pieces
	for line := range strings.Lines(section) {
		b := leadingHex(line)
		switch {
		case len(b) == 0:
		case b[0] == TickFrame:
			if err := ReadTick(b, &frames); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		case strings.Contains(line, "ack"):
			m, err := DecodeServerCBOR(b)
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			fromServer = append(fromServer, m)
		default:
			m, err := DecodeClientCBOR(b)
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			fromClient = append(fromClient, m)
		}
	}
	wantClient := []FromClient{
		Move{motion.Pose{X: 12.5, Y: 64, Z: -3.25, Yaw: 1.5, Pitch: -.25}}, Edit{Seq: 7, X: 12, Y: 63, Z: -4},
	}
	if !reflect.DeepEqual(fromClient, wantClient) {
		t.Errorf("from the client: %+v, want %+v", fromClient, wantClient)
	}
	if want := []FromServer{Ack{Seq: 7}}; !reflect.DeepEqual(fromServer, want) {
		t.Errorf("from the server: %+v, want %+v", fromServer, want)
	}
	if len(frames.deltas) != 2 || len(frames.motions) != 2 {
		t.Fatalf("the frames hold %+v", frames)
	}
	if b := frames.deltas[0].Blocks[0].At.Pos(frames.deltas[0].Chunk); b != (grid.Pos{X: 12, Y: 63, Z: -4}) {
		t.Errorf("the block is at %v", b)
	}
	if bob := frames.deltas[1].Enter[0]; bob.Index != 5 || bob.Name != "bob" || !bob.Guest || bob.Pose(grid.ChunkPos{}) != (motion.Pose{X: 1.5, Y: 64, Z: 2.5}) {
		t.Errorf("bob enters as %+v", bob)
	}
	first, second := frames.motions[0], frames.motions[1]
	if p := first.Pose(first.At); first.Index != 5 || p.X != 1.75 || p.Z != 2.5 || first.VelocityX != 26 || first.HasHeight {
		t.Errorf("the first avatar: %+v", first)
	}
	if p := second.Pose(second.At); second.Index != 20 || p.Y != 65.5 || second.Climb != 13 || second.Yaw != 64 || second.HasAcross {
		t.Errorf("the second avatar: %+v", second)
	}
}

// leadingHex returns the hex bytes at the start of an indented line.
func leadingHex(line string) []byte {
	rest, indented := strings.CutPrefix(line, "    ")
	if !indented {
		return nil
	}
	var all []byte
	for word := range strings.FieldsSeq(rest) {
		b, err := hex.DecodeString(word)
		if err != nil {
			break
		}
		all = append(all, b...)
	}
	return all
}

// examples returns the JSON values of the fenced json blocks.
func examples(t *testing.T, text string) []json.RawMessage {
	t.Helper()
	var found []json.RawMessage
	for _, block := range strings.Split(text, "```json\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		d := json.NewDecoder(strings.NewReader(block))
		for {
			var raw json.RawMessage
			err := d.Decode(&raw)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in %s", err, block)
			}
			found = append(found, raw)
		}
	}
	return found
}

func kindOf(t *testing.T, example []byte) string {
	t.Helper()
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(example, &head); err != nil {
		t.Fatal(err)
	}
	return head.Type
}
