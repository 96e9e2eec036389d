package sessionclient

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // of RFC 6455
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/voxelpopuli/voxeld/wire"
)

// This file is the WebSocket of a page (RFC 6455), as Chromium speaks it: testdata/chromium.txt is a recording. It is
// written by hand because a load of thousands of players must cost less than the server that it measures.

// WebSocket carries each message in a frame of its own: JSON as text, CBOR as binary.
type WebSocket struct{}

const (
	opContinuation, opText, opBinary, opClose, opPing, opPong = 0x0, 0x1, 0x2, 0x8, 0x9, 0xa

	finBit, opcodeBits  = 0x80, 0x0f
	maskBit, lengthBits = 0x80, 0x7f
	length16, length64  = 126, 127 // in place of a length: it follows in 2, or 8 bytes
	controlBit          = 0x8      // of an opcode
)

// Append implements Carrier.
func (WebSocket) Append(dst, message []byte) []byte {
	opcode := byte(opBinary)
	if len(message) > 0 && message[0] == '{' { // no message in CBOR begins like this
		opcode = opText
	}
	return appendFrame(dst, opcode, rand.Uint32(), message)
}

// appendFrame appends a whole frame of a client.
func appendFrame(dst []byte, opcode byte, key uint32, payload []byte) []byte {
	dst = append(dst, finBit|opcode)
	switch n := len(payload); {
	case n < length16:
		dst = append(dst, maskBit|byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, maskBit|length16), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, maskBit|length64), uint64(n))
	}
	dst = binary.LittleEndian.AppendUint32(dst, key)
	start := len(dst)
	dst = append(dst, payload...)
	mask(dst[start:], key)
	return dst
}

// mask masks a payload, or removes its mask. The first byte of the key on the wire is its lowest one.
func mask(payload []byte, key uint32) {
	eight := uint64(key)<<32 | uint64(key)
	for len(payload) >= 8 {
		binary.LittleEndian.PutUint64(payload, binary.LittleEndian.Uint64(payload)^eight)
		payload = payload[8:]
	}
	for i := range payload {
		payload[i] ^= byte(eight >> (8 * i))
	}
}

// frame is a frame of a server.
type frame struct {
	final   bool
	opcode  byte
	payload []byte
}

// splitFrame splits the first frame off what was received. Until all of it is there, ok is false.
func splitFrame(received []byte) (f frame, rest []byte, ok bool, err error) {
	if len(received) < 2 {
		return f, received, false, nil
	}
	f.final, f.opcode = received[0]&finBit != 0, received[0]&opcodeBits
	head, size := 2, uint64(received[1]&lengthBits)
	switch {
	case received[0]&^(finBit|opcodeBits) != 0:
		return f, nil, false, wire.Refuse(wire.FailBadValue, "a frame of an extension that was not chosen: %#x", received[0])
	case received[1]&maskBit != 0:
		return f, nil, false, wire.Refuse(wire.FailBadValue, "a server masks no frames")
	case f.opcode&controlBit != 0 && (size >= length16 || !f.final):
		return f, nil, false, wire.Refuse(wire.FailBadValue, "a control frame is whole, and has less than %d bytes", length16)
	case size == length16:
		head += 2
	case size == length64:
		head += 8
	}
	if len(received) < head {
		return f, received, false, nil
	}
	switch head {
	case 4:
		size = uint64(binary.BigEndian.Uint16(received[2:]))
	case 10:
		size = binary.BigEndian.Uint64(received[2:])
	}
	if size > wire.MaxServerLine {
		return f, nil, false, wire.Refuse(wire.FailTooLong, "a message has at most %d bytes, not %d", wire.MaxServerLine, size)
	}
	end := head + int(size) //nolint:gosec // at most wire.MaxServerLine
	if len(received) < end {
		return f, received, false, nil
	}
	f.payload = received[head:end]
	return f, received[end:], true, nil
}

// Split implements Carrier. Fragments are joined where they are; a control frame between them is taken out.
func (WebSocket) Split(received []byte) (message, answer, rest []byte, err error) {
	size, frames := 0, 0
	for rest = received; ; {
		f, left, ok, err := splitFrame(rest)
		if !ok {
			return nil, nil, received, err
		}
		if f.opcode&controlBit != 0 {
			answer, err = f.control()
			fragments, length := received[:len(received)-len(rest)], len(rest)-len(left)
			copy(received[length:], fragments)
			return nil, answer, received[length:], err
		}
		rest, frames, size = left, frames+1, size+len(f.payload)
		switch {
		case (f.opcode == opContinuation) != (frames > 1), f.opcode > opBinary:
			return nil, nil, nil, wire.Refuse(wire.FailBadValue, "a frame with opcode %d at the wrong place", f.opcode)
		case size > wire.MaxServerLine, f.final && size == 0:
			return nil, nil, nil, wire.Refuse(wire.FailTooLong, "a message has 1 to %d bytes", wire.MaxServerLine)
		case f.final && frames == 1:
			return f.payload, nil, rest, nil
		case f.final:
			return join(received, frames), nil, rest, nil
		}
	}
}

// join joins the payloads of frames that have been received.
func join(received []byte, frames int) (message []byte) {
	message = received[:0]
	for range frames {
		f, rest, _, _ := splitFrame(received) //nolint:dogsled // Split has checked them
		message, received = append(message, f.payload...), rest
	}
	return message
}

// control returns the answer to a control frame, and a *ClosedError if the server ends the connection with it.
func (f frame) control() (answer []byte, err error) {
	switch f.opcode {
	case opPing:
		return appendFrame(nil, opPong, rand.Uint32(), f.payload), nil
	case opPong:
		return nil, nil
	case opClose:
		closed := &ClosedError{Code: noStatus}
		if len(f.payload) >= 2 {
			closed.Code, closed.Reason = int(binary.BigEndian.Uint16(f.payload)), string(f.payload[2:])
		}
		return appendFrame(nil, opClose, rand.Uint32(), f.payload[:min(2, len(f.payload))]), closed
	}
	return nil, wire.Refuse(wire.FailBadValue, "a frame with opcode %d", f.opcode)
}

// noStatus is the code of a close frame without one.
const noStatus = 1005

// ClosedError reports that the server has closed a WebSocket. It wraps io.EOF.
type ClosedError struct {
	Code   int
	Reason string
}

func (e *ClosedError) Error() string { return fmt.Sprintf("closed with %d %s", e.Code, e.Reason) }

// Unwrap returns io.EOF.
func (*ClosedError) Unwrap() error { return io.EOF }

// UpgradeError is the answer of a server that refuses a WebSocket.
type UpgradeError struct {
	Status int
	Reason string
}

func (e *UpgradeError) Error() string {
	return fmt.Sprintf("the server refuses the WebSocket with %d: %s", e.Status, e.Reason)
}

// upgrade asks for a WebSocket at a URL, as Chromium does for a page of its host. It returns what has arrived after the
// answer.
func upgrade(c net.Conn, address string) (early []byte, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("open WebSocket: %w", err)
	}
	nonce := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, rand.Uint64()), rand.Uint64())
	key := base64.StdEncoding.EncodeToString(nonce)
	if _, err := c.Write(request(u, key)); err != nil {
		return nil, fmt.Errorf("open WebSocket: %w", err)
	}
	in := bufio.NewReader(c)
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil, fmt.Errorf("open WebSocket: %w", err)
	}
	defer response.Body.Close()                                              //nolint:errcheck // read as far as it matters
	accept := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // of RFC 6455
	switch h := response.Header; {
	case response.StatusCode != http.StatusSwitchingProtocols:
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, &UpgradeError{response.StatusCode, strings.TrimSpace(string(reason))}
	case !strings.EqualFold(h.Get("Upgrade"), "websocket"), !strings.EqualFold(h.Get("Connection"), "Upgrade"),
		h.Get("Sec-Websocket-Accept") != base64.StdEncoding.EncodeToString(accept[:]):
		return nil, &UpgradeError{response.StatusCode, "it is not the answer to the request"}
	case h.Get("Sec-Websocket-Extensions") != "", h.Get("Sec-Websocket-Protocol") != "":
		return nil, &UpgradeError{response.StatusCode, "it has chosen an extension or a protocol that this client does not speak"}
	}
	early, _ = in.Peek(in.Buffered())
	return early, nil
}

// request returns Chromium's request for a WebSocket.
func request(u *url.URL, key string) []byte {
	query := u.Query()
	query.Set("skin", "") // as pages, which understand skins; without the hashes of chunks, which only a cache is for
	return fmt.Appendf(nil, "GET %s?%s HTTP/1.1\r\n"+
		"Host: %s\r\n"+
		"Connection: Upgrade\r\n"+
		"Pragma: no-cache\r\n"+
		"Cache-Control: no-cache\r\n"+
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36\r\n"+
		"Upgrade: websocket\r\n"+
		"Origin: %s://%s\r\n"+
		"Sec-WebSocket-Version: 13\r\n"+
		"Accept-Encoding: gzip, deflate, br, zstd\r\n"+
		"Accept-Language: en-US,en;q=0.9\r\n"+
		"Sec-WebSocket-Key: %s\r\n"+
		"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n",
		u.EscapedPath(), query.Encode(), u.Host, strings.Replace(u.Scheme, "ws", "http", 1), u.Host, key)
}
