package gameserver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // of RFC 6455
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/gobwas/ws"

	"github.com/voxelpopuli/voxeld/gameserver/accept"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// serveSocket runs a session over WebSocket.
func (g *Gateway) serveSocket(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	skin, err := player.ParseSkin(query.Get("skin"))
	if err != nil {
		http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
		return
	}
	remote := addrOf(r)
	release, refused := g.limits.Admit(remote, admission.PlayerWeight)
	if refused == nil {
		defer release()
	}
	conn, in, err := upgrade(w, r)
	if err != nil {
		g.Logger.Debug("websocket not accepted", "remote", r.RemoteAddr, "error", err)
		return
	}
	if refused != nil { // a page is not shown why an upgrade fails
		g.metrics.noteRefusedJoin(refused)
		release, admitted := g.limits.AdmitHTTP(remote) // the server does not count it any more
		if !admitted {
			conn.Close() //nolint:errcheck // it is refused
			return
		}
		defer release()
		var f webSocket
		if err := answer(conn, string(f.appendEnd(f.append(nil, codec.JSON.Encode(failureOf(refused)))))); err != nil {
			g.Logger.Debug("refusal not sent", "remote", r.RemoteAddr, "error", err)
		}
		accept.HangUp(conn, accept.RefusedTime)
		return
	}
	defer accept.HangUp(conn, accept.AdmittedTime)
	c := &streamConn{
		Conn: conn, in: in, framing: &webSocket{text: true}, addr: remote,
		page: page{chunkHashes: query.Has("hashes"), looks: codec.Looks{Skins: query.Has("skin"), Stances: query.Has("stance")}, skin: skin},
	}
	defer c.detach()()
	g.serveSession(ctx, c, nil)
}

func addrOf(r *http.Request) net.Addr {
	a, err := net.ResolveTCPAddr("tcp", r.RemoteAddr)
	if err != nil {
		return &net.TCPAddr{}
	}
	return a
}

// upgrade answers a request for a WebSocket (RFC 6455, section 4.2), without extensions: frames are small, and chunks
// are compressed already, once for all. It returns the connection, and its reader, which has what was read early.
func upgrade(w http.ResponseWriter, r *http.Request) (conn net.Conn, in *bufio.Reader, err error) {
	h, key := w.Header(), r.Header.Get("Sec-WebSocket-Key")
	refuse := func(status int, why string) (net.Conn, *bufio.Reader, error) {
		http.Error(w, why, status)
		return nil, nil, errors.New(why)
	}
	switch nonce, err := base64.StdEncoding.DecodeString(key); {
	case r.Method != http.MethodGet: // HEAD
		return refuse(http.StatusMethodNotAllowed, "sessions are opened with GET")
	case !hasToken(r.Header, "Connection", "upgrade"), !hasToken(r.Header, "Upgrade", "websocket"), !r.ProtoAtLeast(1, 1):
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", "websocket")
		return refuse(http.StatusUpgradeRequired, "sessions are carried over a WebSocket: ask for an upgrade to it")
	case r.Header.Get("Sec-WebSocket-Version") != "13":
		h.Set("Sec-WebSocket-Version", "13")
		return refuse(http.StatusBadRequest, "Sec-WebSocket-Version: want 13")
	case err != nil || len(nonce) != 16:
		return refuse(http.StatusBadRequest, "Sec-WebSocket-Key: want 16 bytes in base64")
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // of RFC 6455
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
	h.Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	in = bufio.NewReader(conn)
	if len(early) > 0 { // the reader of the server waits for the next request
		in = bufio.NewReader(io.MultiReader(bytes.NewReader(bytes.Clone(early)), conn))
		in.Peek(len(early)) //nolint:errcheck // it is there
	}
	return conn, in, nil
}

// hasToken reports whether a header has a token among those that commas separate, in upper or lower case.
func hasToken(h http.Header, name, token string) bool {
	for _, value := range h.Values(name) {
		for field := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(field), token) {
				return true
			}
		}
	}
	return false
}

// webSocket is the framing of a WebSocket (RFC 6455): JSON in text frames, CBOR in binary frames. It is the reader's,
// but for its atomic fields.
type webSocket struct {
	text   bool                   // messages are to be text
	answer atomic.Pointer[[]byte] // a pong that the writer is to send: to the newest ping
	wake   func()                 // wakes the writer
	closed atomic.Uint32          // the status that the connection is closed with; 0: all is well
}

// shortFrame is how many bytes a payload has whose length needs no further bytes of its header.
const shortFrame = 126

// split splits a short binary frame off what was received. Moves are such frames: all others are left to read.
func (f *webSocket) split(received, buffer []byte) (message []byte, size int) {
	const head, masked = 6, 0x80
	if len(received) < head || received[0] != masked|byte(ws.OpBinary) || received[1]&masked == 0 {
		return nil, 0
	}
	n := int(received[1] &^ masked)
	if size = head + n; n == 0 || n >= shortFrame || len(received) < size || f.text {
		return nil, 0
	}
	message = append(buffer[:0], received[head:size]...)
	ws.Cipher(message, [4]byte(received[2:head]), 0)
	return message, size
}

// maxFrames is how many frames may carry one message, with the pings and pongs before it.
const maxFrames = 128

// read reads the next message into the buffer, which grows if necessary. It answers pings.
func (f *webSocket) read(in *bufio.Reader, buffer []byte) (message []byte, err error) {
	message = buffer[:0]
	state := ws.StateServerSide
	for frames := 1; ; frames++ {
		if frames > maxFrames {
			return nil, wire.Refuse(wire.FailRate, "a message, and the pings before it, may take %d WebSocket frames", maxFrames)
		}
		h, err := ws.ReadHeader(in)
		switch {
		case err != nil && !errors.Is(err, ws.ErrHeaderLengthMSB):
			return nil, err
		case err == nil:
			err = ws.CheckHeader(h, state)
		}
		if err != nil {
			f.closed.Store(uint32(ws.StatusProtocolError))
			return nil, wire.Refuse(wire.FailBadType, "not a WebSocket frame of a client: %v", err)
		}
		if h.OpCode.IsControl() {
			if err := f.control(in, h); err != nil {
				return nil, err
			}
			continue
		}
		if f.text != (h.OpCode == ws.OpText) && h.OpCode != ws.OpContinuation {
			return nil, f.wrongType()
		}
		start := len(message)
		if h.Length > int64(wire.MaxLine-start) {
			return nil, wire.Refuse(wire.FailTooLong, "a message may have %d bytes", wire.MaxLine)
		}
		body, err := wire.ReadBody(in, message[start:], int(h.Length))
		if err != nil {
			return nil, err
		}
		ws.Cipher(body, h.Mask, 0)
		message = append(message, body...)
		if h.Fin {
			return message, nil
		}
		state = state.Set(ws.StateFragmented)
	}
}

func (f *webSocket) wrongType() error {
	if f.text {
		return wire.Refuse(wire.FailBadType, "send text frames: this session speaks JSON")
	}
	return wire.Refuse(wire.FailBadType, "send binary frames: this session speaks CBOR")
}

// control handles a control frame, of which the header has been read. The error is io.EOF if the client closes the
// connection.
func (f *webSocket) control(in *bufio.Reader, h ws.Header) error {
	payload, err := wire.ReadBody(in, nil, int(h.Length))
	if err != nil {
		return err
	}
	ws.Cipher(payload, h.Mask, 0)
	switch h.OpCode { //nolint:exhaustive // nothing follows from a pong
	case ws.OpPing:
		pong := ws.MustCompileFrame(ws.NewPongFrame(payload))
		f.answer.Store(&pong)
		f.wake()
	case ws.OpClose:
		code, reason := ws.ParseCloseFrameData(payload)
		if ws.CheckCloseFrameData(code, reason) != nil {
			code = ws.StatusProtocolError
		}
		if len(payload) == 0 {
			code = ws.StatusNormalClosure
		}
		f.closed.Store(uint32(code))
		return io.EOF
	}
	return nil
}

func (f *webSocket) append(dst, message []byte) []byte {
	opcode := ws.OpBinary
	if message[0] == '{' { // no binary message begins like this
		opcode = ws.OpText
	}
	return append(appendServerHead(dst, opcode, len(message)), message...)
}

func (f *webSocket) appendHead(dst []byte, size int) []byte {
	return appendServerHead(dst, ws.OpBinary, size)
}

// appendServerHead appends the header of a whole frame of a server. ws.WriteHeader would write it to an io.Writer.
func appendServerHead(dst []byte, opcode ws.OpCode, size int) []byte {
	const final, length16, length64 = 0x80, 126, 127
	dst = append(dst, final|byte(opcode))
	switch {
	case size < shortFrame:
		return append(dst, byte(size))
	case size < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, length16), uint16(size))
	}
	return binary.BigEndian.AppendUint64(append(dst, length64), uint64(size))
}

// appendAnswer appends the answer to a ping, if there is one to send. The writer calls it.
func (f *webSocket) appendAnswer(dst []byte) []byte {
	if pong := f.answer.Swap(nil); pong != nil {
		dst = append(dst, *pong...)
	}
	return dst
}

// appendEnd appends the frame that closes the connection: as the client has, or as the error of the last read says.
func (f *webSocket) appendEnd(dst []byte) []byte {
	code := ws.StatusCode(cmp.Or(f.closed.Load(), uint32(ws.StatusNormalClosure)))
	return append(dst, ws.MustCompileFrame(ws.NewCloseFrame(ws.NewCloseFrameBody(code, "")))...)
}
