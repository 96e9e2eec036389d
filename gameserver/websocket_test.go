package gameserver

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// masked returns a frame of a client.
func masked(final bool, opcode ws.OpCode, payload string) []byte {
	return ws.MustCompileFrame(ws.MaskFrame(ws.NewFrame(opcode, final, []byte(payload))))
}

// rawPage opens a WebSocket by hand, and returns its connection.
func rawPage(t *testing.T, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	// The first frame may come with the request.
	if _, err := io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: "+address+"\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"+
		string(masked(true, ws.OpPing, "early"))); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	// The key and the answer are the example of RFC 6455.
	if h := response.Header; response.StatusCode != http.StatusSwitchingProtocols || h.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" ||
		h.Get("Sec-WebSocket-Extensions") != "" {
		t.Fatalf("answered %d with %v", response.StatusCode, h)
	}
	return conn, in
}

// A session's WebSocket does what RFC 6455 says: pings are answered, fragments joined, and the connection is closed in
// order, with the reason as the last message and in the status.
func TestWebSocketFrames(t *testing.T) {
	address := serveReal(t)
	const join = `{"type":"join","version":1,"name":"ann","view":1,"encoding":"json"}`
	for name, c := range map[string]struct {
		sent   [][]byte
		code   string // of the failure; "": none
		status ws.StatusCode
	}{
		"closed by the page":   {[][]byte{masked(true, ws.OpClose, "\x03\xe9")}, "", ws.StatusGoingAway},
		"closed without words": {[][]byte{masked(true, ws.OpClose, "")}, "", ws.StatusNormalClosure},
		"closed wrongly":       {[][]byte{masked(true, ws.OpClose, "\x00\x01")}, "", ws.StatusProtocolError},
		"in fragments": {[][]byte{
			masked(false, ws.OpText, join[:10]), masked(true, ws.OpPing, "between"), masked(false, ws.OpContinuation, ""), masked(true, ws.OpContinuation, join[10:]),
			masked(true, ws.OpClose, "\x03\xe8"),
		}, "", ws.StatusNormalClosure},
		"not masked":    {[][]byte{ws.MustCompileFrame(ws.NewTextFrame([]byte(join)))}, wire.FailBadType, ws.StatusProtocolError},
		"compressed":    {[][]byte{{0xc1, 0x80, 0, 0, 0, 0}}, wire.FailBadType, ws.StatusProtocolError},
		"no first":      {[][]byte{masked(true, ws.OpContinuation, join)}, wire.FailBadType, ws.StatusProtocolError},
		"long ping":     {[][]byte{masked(true, ws.OpPing, string(make([]byte, 126)))}, wire.FailBadType, ws.StatusProtocolError},
		"endless parts": {[][]byte{masked(false, ws.OpText, join), masked(false, ws.OpContinuation, string(make([]byte, wire.MaxLine)))}, wire.FailTooLong, ws.StatusNormalClosure},
		"a huge claim":  {[][]byte{{0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}}, wire.FailTooLong, ws.StatusNormalClosure},
		"pings only":    {[][]byte{bytes.Repeat(masked(true, ws.OpPing, ""), maxFrames)}, wire.FailRate, ws.StatusNormalClosure},
		"empty parts":   {[][]byte{masked(false, ws.OpText, "{"), bytes.Repeat(masked(false, ws.OpContinuation, ""), maxFrames)}, wire.FailRate, ws.StatusNormalClosure},
		"a bad length":  {[][]byte{{0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}}, wire.FailBadType, ws.StatusProtocolError},
	} {
		t.Run(name, func(t *testing.T) {
			conn, in := rawPage(t, address)
			if pong, err := ws.ReadFrame(in); err != nil || pong.Header.OpCode != ws.OpPong || string(pong.Payload) != "early" {
				t.Fatalf("ping answered with %+v, %v", pong, err)
			}
			if _, err := conn.Write(bytes.Join(c.sent, nil)); err != nil {
				t.Fatal(err)
			}
			var failure sessionmsg.Failure
			for {
				f, err := ws.ReadFrame(in)
				if err != nil {
					t.Fatal(err)
				}
				if f.Header.OpCode == ws.OpClose {
					if code, _ := ws.ParseCloseFrameData(f.Payload); code != c.status {
						t.Errorf("closed with %d, want %d", code, c.status)
					}
					break
				}
				if f.Header.OpCode == ws.OpText {
					m, err := sessionmsg.DecodeServer(f.Payload)
					if err != nil {
						t.Error(err)
					}
					if m, ok := m.(sessionmsg.Failure); ok {
						failure = m
					}
				}
			}
			if failure.Code != c.code {
				t.Errorf("the last message is %+v, want %q", failure, c.code)
			}
			if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
				t.Errorf("then %x, %v", rest, err)
			}
		})
	}
}

// A page that has stopped reading is given up after one write that takes too long: no close frame follows half a frame.
func TestStalledPageGetsNoCloseFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		c := &streamConn{Conn: here, framing: &webSocket{}}
		began := time.Now()
		if err := errors.Join(c.Send([]byte("{}")), c.Flush()); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("written: %v", err)
		}
		c.close() //nolint:errcheck // the connection is broken
		if took := time.Since(began); took > writeTimeout {
			t.Errorf("given up after %v", took)
		}
	})
}

// Requests that are none for a WebSocket are refused with the reason.
func TestNoWebSocket(t *testing.T) {
	address := serveReal(t)
	for name, c := range map[string]struct {
		header http.Header
		status int
	}{
		"no upgrade":    {http.Header{}, http.StatusUpgradeRequired},
		"other upgrade": {http.Header{"Connection": {"Upgrade"}, "Upgrade": {"h2c"}}, http.StatusUpgradeRequired},
		"old version":   {http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"8"}}, http.StatusBadRequest},
		"no key":        {http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}}, http.StatusBadRequest},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/ws", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = c.header
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", name, response.StatusCode, c.status)
		}
	}
}

// Whatever a client sends, reading a WebSocket ends, takes no more than a message may have, and yields what the
// poller's splitting does.
func FuzzWebSocket(f *testing.F) {
	f.Add(masked(true, ws.OpBinary, "move"), false)
	f.Add(append(masked(false, ws.OpText, "a"), masked(true, ws.OpContinuation, "b")...), true)
	f.Add(append(masked(true, ws.OpPing, "a"), masked(true, ws.OpClose, "\x03\xe8bye")...), true)
	f.Add(binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, 1<<40), false)
	f.Fuzz(func(t *testing.T, sent []byte, text bool) {
		pings := 0
		c := &webSocket{text: text, wake: func() { pings++ }}
		kept := bytes.Clone(sent)
		early, size := c.split(sent, nil)
		if !bytes.Equal(sent, kept) {
			t.Fatal("splitting changes what was received")
		}
		in := bufio.NewReader(bytes.NewReader(sent))
		message, err := c.read(in, nil)
		if size > 0 && (err != nil || !bytes.Equal(message, early)) {
			t.Fatalf("split %x off, but read %x, %v", early, message, err)
		}
		for err == nil {
			if len(message) > wire.MaxLine {
				t.Fatalf("a message of %d bytes", len(message))
			}
			message, err = c.read(in, message)
		}
		if answer := c.appendAnswer(nil); (pings > 0) != (len(answer) > 0) || len(answer) > 127 {
			t.Fatalf("%d pings are answered with %x", pings, answer)
		}
		if end := c.appendEnd(nil); len(end) != 4 {
			t.Fatalf("closed with %x", end)
		}
	})
}
