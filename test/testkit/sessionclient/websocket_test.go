package sessionclient

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// recording is what a page in Chromium and a node have sent each other: a request and its answer, then frames.
type recording struct {
	request, answer  []string // lines
	toNode, fromNode [][]byte // as they were read
}

func readRecording(t *testing.T) (r recording) {
	t.Helper()
	text, err := os.ReadFile("testdata/chromium.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		from, content, _ := strings.Cut(line, " ")
		data, err := hex.DecodeString(content)
		switch isFrame := err == nil; {
		case from == ">" && isFrame:
			r.toNode = append(r.toNode, data)
		case from == ">":
			r.request = append(r.request, content)
		case from == "<" && isFrame:
			r.fromNode = append(r.fromNode, data)
		case from == "<":
			r.answer = append(r.answer, content)
		}
	}
	return r
}

// The client asks for a WebSocket with the same bytes as Chromium, but for the hashes of chunks, which only a cache is
// for.
func TestRequestIsChromiums(t *testing.T) {
	r := readRecording(t)
	var key string
	for _, line := range r.request {
		if value, ok := strings.CutPrefix(line, "Sec-WebSocket-Key: "); ok {
			key = value
		}
	}
	want := strings.Replace(strings.Join(r.request, "\r\n")+"\r\n\r\n", "hashes=&", "", 1)
	u, err := url.Parse("ws://127.0.0.1:8080/ws")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(request(u, key)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// splitMasked splits the first frame off what a client has sent.
func splitMasked(sent []byte) (f frame, key uint32, rest []byte, ok bool) {
	plain := bytes.Clone(sent)
	if len(plain) < 2 || plain[1]&maskBit == 0 {
		return f, 0, sent, false
	}
	plain[1] &^= maskBit
	head := 2
	switch plain[1] {
	case length16:
		head = 4
	case length64:
		head = 10
	}
	if len(plain) < head+4 {
		return f, 0, sent, false
	}
	key = binary.LittleEndian.Uint32(plain[head:])
	f, rest, ok, err := splitFrame(append(plain[:head:head], plain[head+4:]...))
	mask(f.payload, key)
	return f, key, rest, ok && err == nil
}

// The client frames what the page has sent in the same bytes as Chromium. Both send small messages in one write each;
// Chromium puts those that are sent at once into one.
func TestFramesAreChromiums(t *testing.T) {
	r := readRecording(t)
	kinds := make(map[byte]int)
	var messages []sessionmsg.FromClient
	for _, written := range r.toNode {
		for rest := written; len(rest) > 0; {
			f, key, left, ok := splitMasked(rest)
			if !ok || !f.final {
				t.Fatalf("not a whole frame: %x", rest)
			}
			frame := rest[:len(rest)-len(left)]
			if got := appendFrame(nil, f.opcode, key, f.payload); !bytes.Equal(got, frame) {
				t.Errorf("framed as %x, not %x", got, frame)
			}
			kinds[f.opcode]++
			rest = left
			if f.opcode == opClose {
				continue
			}
			if carried := (WebSocket{}).Append(nil, f.payload); carried[0] != frame[0] || len(carried) != len(frame) {
				t.Errorf("carried as %x, not %x", carried, frame)
			}
			m, err := decodeFromPage(f)
			if err != nil {
				t.Errorf("%q: %v", f.payload, err)
			}
			messages = append(messages, m)
		}
	}
	if kinds[opText] != 1 || kinds[opClose] != 1 || kinds[opBinary] < 20 {
		t.Errorf("frames by opcode: %v", kinds)
	}
	if join, ok := messages[0].(sessionmsg.Join); !ok || join.Encoding != sessionmsg.EncodingCBOR {
		t.Errorf("first message: %v", messages[0])
	}
}

func decodeFromPage(f frame) (sessionmsg.FromClient, error) {
	switch {
	case f.opcode == opText:
		return sessionmsg.DecodeClient(f.payload)
	case f.payload[0] == sessionmsg.ClientMove:
		pose, err := sessionmsg.DecodeMove(f.payload)
		return sessionmsg.Move{Pose: pose}, err
	}
	return sessionmsg.DecodeClientCBOR(f.payload)
}

// What the node has sent the page is split into messages that the client understands.
func TestSplitsWhatThePageWasSent(t *testing.T) {
	r := readRecording(t)
	n := 0
	var closed *ClosedError
	for _, read := range r.fromNode {
		for rest := read; len(rest) > 0; {
			message, answer, left, err := WebSocket{}.Split(rest)
			if errors.As(err, &closed) {
				if f, _, _, ok := splitMasked(answer); !ok || f.opcode != opClose {
					t.Errorf("close answered with %x", answer)
				}
				break
			}
			if err != nil || message == nil {
				t.Fatalf("%x: %v", rest, err)
			}
			n, rest = n+1, left
			if message[0] == sessionmsg.TickFrame {
				continue
			}
			if _, err := sessionmsg.DecodeServerCBOR(message); err != nil && message[0] != '{' {
				t.Errorf("%q: %v", message, err)
			}
		}
	}
	if n < 20 || closed == nil || closed.Code != 1001 || !errors.Is(closed, io.EOF) {
		t.Errorf("%d messages, closed %v", n, closed)
	}
}

// A frame of any length is what RFC 6455 says.
func TestMask(t *testing.T) {
	key := [4]byte{0x81, 0x92, 0xa3, 0xb4}
	for n := range 70 {
		payload := bytes.Repeat([]byte("m"), n)
		want := []byte{finBit | opBinary, maskBit | byte(n), key[0], key[1], key[2], key[3]}
		for i, b := range payload {
			want = append(want, b^key[i%4])
		}
		if got := appendFrame(nil, opBinary, binary.LittleEndian.Uint32(key[:]), payload); !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %x, want %x", n, got, want)
		}
	}
}

// serverFrame returns a frame of a server.
func serverFrame(final bool, opcode byte, payload string) []byte {
	head := []byte{opcode, byte(len(payload))}
	if final {
		head[0] |= finBit
	}
	if len(payload) >= length16 {
		head[1] = length16
		head = binary.BigEndian.AppendUint16(head, uint16(len(payload)))
	}
	return append(head, payload...)
}

// A message in fragments is joined when the last one is there, and a ping between them is answered at once.
func TestFragmentsAndPings(t *testing.T) {
	long := strings.Repeat("b", 300)
	sent := serverFrame(false, opBinary, "a")
	sent = append(sent, serverFrame(true, opPing, "are you there")...)
	sent = append(sent, serverFrame(true, opPong, "")...)
	sent = append(sent, serverFrame(false, opContinuation, long)...)
	sent = append(sent, serverFrame(false, opContinuation, "")...)
	sent = append(sent, serverFrame(true, opContinuation, "c")...)
	sent = append(sent, serverFrame(true, opText, "next")...)
	for step := 1; step < 8; step++ {
		var received []byte
		var messages []string
		pings := 0
		for at := 0; at < len(sent); at += step {
			received = append(received, sent[at:min(at+step, len(sent))]...)
			for {
				message, answer, rest, err := WebSocket{}.Split(received)
				if err != nil {
					t.Fatal(err)
				}
				if answer != nil {
					f, _, left, ok := splitMasked(answer)
					if !ok || f.opcode != opPong || string(f.payload) != "are you there" || len(left) > 0 {
						t.Errorf("ping answered with %x", answer)
					}
					pings++
				}
				if message != nil {
					messages = append(messages, string(message))
				}
				if len(rest) == len(received) {
					break
				}
				received = append([]byte(nil), rest...)
			}
		}
		if pings != 1 || len(messages) != 2 || messages[0] != "a"+long+"c" || messages[1] != "next" {
			t.Errorf("in steps of %d: %d pings, messages %q", step, pings, messages)
		}
	}
}

// Frames that no server may send end the connection.
func TestRefusesFrames(t *testing.T) {
	huge := binary.BigEndian.AppendUint64([]byte{finBit | opBinary, length64}, wire.MaxServerLine+1)
	for name, sent := range map[string][]byte{
		"masked":                  {finBit | opBinary, maskBit | 1, 0, 0, 0, 0, 'a'},
		"compressed":              {finBit | 0x40 | opBinary, 1, 'a'},
		"unknown opcode":          serverFrame(true, 3, "a"),
		"unknown control":         serverFrame(true, 11, "a"),
		"empty":                   serverFrame(true, opBinary, ""),
		"too long":                huge,
		"continuation of nothing": serverFrame(true, opContinuation, "a"),
		"no continuation":         append(serverFrame(false, opBinary, "a"), serverFrame(true, opBinary, "b")...),
		"fragment of a ping":      serverFrame(false, opPing, "a"),
		"long ping":               serverFrame(true, opPing, strings.Repeat("a", 126)),
	} {
		if message, _, _, err := (WebSocket{}).Split(sent); err == nil || message != nil {
			t.Errorf("%s: got %q, %v", name, message, err)
		}
	}
}

// Whatever a server sends, splitting ends, and never returns more than was received.
func FuzzWebSocket(f *testing.F) {
	f.Add(serverFrame(true, opBinary, "a"))
	f.Add(append(serverFrame(false, opBinary, "a"), serverFrame(true, opContinuation, "b")...))
	f.Add(append(serverFrame(true, opPing, "a"), serverFrame(true, opClose, "\x03\xe8bye")...))
	f.Fuzz(func(t *testing.T, sent []byte) {
		for received := sent; ; {
			message, _, rest, err := WebSocket{}.Split(received)
			if len(message)+len(rest) > len(received) {
				t.Fatalf("of %d bytes, %d are the message and %d the rest", len(received), len(message), len(rest))
			}
			if err != nil || len(rest) == len(received) {
				return
			}
			received = rest
		}
	})
}

// A connection answers the pings of a WebSocket library, reads on, and reports how it was closed, or refused.
func TestWebSocketOfALibrary(t *testing.T) {
	pong := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ws" {
			http.Error(w, "too many of you", http.StatusTooManyRequests)
			return
		}
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow()
		reading := ws.CloseRead
		if _, join, err := ws.Read(r.Context()); err != nil || !bytes.Contains(join, []byte("ann")) {
			t.Errorf("join %q, %v", join, err)
		}
		ctx := reading(r.Context())
		pong <- ws.Ping(ctx)
		if err := ws.Write(ctx, websocket.MessageText, []byte(`{"type":"notice","text":"hi"}`)); err != nil {
			t.Error(err)
		}
		ws.Close(websocket.StatusGoingAway, "bye")
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	_, err := Dial(t.Context(), "ws://"+address+"/elsewhere", sessionmsg.Join{Name: "ann", View: 1})
	if refused, ok := errors.AsType[*UpgradeError](err); !ok || refused.Status != http.StatusTooManyRequests || refused.Reason != "too many of you" {
		t.Errorf("refused with %v", err)
	}
	c, err := Dial(t.Context(), Page(address), sessionmsg.Join{Name: "ann", View: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := c.Read()
	if notice, ok := m.FromServer.(sessionmsg.Notice); !ok || notice.Text != "hi" || err != nil {
		t.Errorf("got %+v, %v", m, err)
	}
	if err := <-pong; err != nil {
		t.Errorf("ping: %v", err)
	}
	_, err = c.Read()
	if closed, ok := errors.AsType[*ClosedError](err); !ok || closed.Code != int(websocket.StatusGoingAway) || closed.Reason != "bye" {
		t.Errorf("closed with %v", err)
	}
}
