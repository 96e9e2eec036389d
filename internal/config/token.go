package config

import (
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"unicode"

	"github.com/voxelpopuli/voxeld/trust"
)

// Token invites a daemon to a world. Its text form is "vx2", or "vx1" without a secret, and then base32 in lower case:
// it fits into one line of a chat and can be typed by hand.
type Token struct {
	World  string        // world id; at most MaxTokenWorld bytes
	Secret *trust.Secret // with which the daemon is admitted; nil if anybody may run nodes of the world
	Addrs  []string      // multiaddrs of bootstrap nodes, in order; 1 to MaxTokenAddrs, each at most MaxTokenAddr bytes
}

// Bounds of a Token.
const (
	MaxTokenWorld = 127
	MaxTokenAddrs = 64
	MaxTokenAddr  = 255
)

// The bytes of a token, before base32:
//
//	u16   length of the bytes between this and the checksum
//	u8    length of the world id, 0 to 127; plus 128 if it is the bytes of an id in lower-case hex
//	…     world id
//	then for each address:
//	u8    length
//	…     address, with the most common parts as one byte each: see abbreviations
//	u32   CRC-32C of all before it, the prefix included
//
// Numbers are big-endian.
const (
	openPrefix    = "vx1"
	secretPrefix  = "vx2"
	tokenOverhead = 2 + 4
	hexWorld      = 128
)

// tokenCode is Crockford's alphabet, which has no i, l, o or u. lookAlike maps letters to the digits they look like.
var tokenCode = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

var lookAlike = strings.NewReplacer("o", "0", "i", "1", "l", "1")

// abbreviations are the parts that one byte replaces: byte 128+i stands for the i-th. Multiaddrs are ASCII.
var abbreviations = []string{"/ip4/", "/ip6/", "/dns4/", "/dns6/", "/dns/", "/tcp/", "/udp/", "/quic-v1", "/p2p/", "/p2p/12D3KooW"}

// samePeer stands for the "/p2p/…" at the end of the previous address.
const samePeer = 255

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Validate returns an error if the token has no text form.
func (t Token) Validate() error {
	switch {
	case t.World == "" || len(t.World) > MaxTokenWorld:
		return fmt.Errorf("join token: the world id has %d bytes: want 1 to %d", len(t.World), MaxTokenWorld)
	case !isPrintable(t.World):
		return fmt.Errorf("join token: the world id %q is not printable ASCII", t.World)
	case len(t.Addrs) == 0 || len(t.Addrs) > MaxTokenAddrs:
		return fmt.Errorf("join token: %d addresses: want 1 to %d", len(t.Addrs), MaxTokenAddrs)
	}
	for _, addr := range t.Addrs {
		if len(addr) > MaxTokenAddr || !isPrintable(addr) {
			return fmt.Errorf("join token: the address %q is too long, or not printable ASCII", addr)
		}
		if err := checkPeer(addr); err != nil {
			return fmt.Errorf("join token: %w", err)
		}
	}
	return nil
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// IsToken reports whether text is meant as a token, as opposed to a multiaddr.
func IsToken(text string) bool { return !strings.HasPrefix(strings.TrimSpace(text), "/") }

// String returns the text of a valid token, without the addresses beyond MaxTokenAddrs.
func (t Token) String() string {
	body := []byte{0, 0}
	if raw, err := hex.DecodeString(t.World); err == nil && strings.ToLower(t.World) == t.World {
		body = append(append(body, hexWorld|byte(len(raw))), raw...)
	} else {
		body = append(append(body, byte(len(t.World))), t.World...)
	}
	prefix := openPrefix
	if t.Secret != nil {
		prefix, body = secretPrefix, append(body, t.Secret[:]...)
	}
	peer := ""
	for _, addr := range t.Addrs[:min(len(t.Addrs), MaxTokenAddrs)] {
		short := abbreviate(addr, peer)
		body = append(append(body, byte(len(short))), short...)
		peer = peerPart(addr)
	}
	body[0], body[1] = byte((len(body)-2)>>8), byte(len(body)-2)
	sum := crc32.Checksum(append([]byte(prefix), body...), castagnoli)
	return prefix + tokenCode.EncodeToString(append(body, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)))
}

// ParseToken parses a token. It ignores case, spaces and line breaks.
func ParseToken(text string) (Token, error) {
	t, err := parseToken(text)
	if err != nil {
		return Token{}, fmt.Errorf("join token: %w", err)
	}
	return t, t.Validate()
}

const maxTokenText = 2 * (tokenOverhead + 1 + MaxTokenWorld + MaxTokenAddrs*(1+MaxTokenAddr))

func parseToken(text string) (Token, error) {
	if len(text) > maxTokenText {
		return Token{}, fmt.Errorf("%d characters are too many: copy only the token", len(text))
	}
	text = strings.ToLower(strings.Join(strings.Fields(text), ""))
	prefix := text[:min(len(text), len(openPrefix))]
	if prefix != openPrefix && prefix != secretPrefix {
		if strings.HasPrefix(text, "vx") {
			return Token{}, fmt.Errorf("it begins with %.3q, not with %s: it is mistyped, or from a newer voxeld", text, secretPrefix)
		}
		return Token{}, fmt.Errorf("%.20q begins neither with %s (a token of voxeld invite) nor with / (a multiaddr)", text, secretPrefix)
	}
	code := lookAlike.Replace(text[len(prefix):])
	for i, c := range code {
		if c > unicode.MaxASCII || !strings.ContainsRune("0123456789abcdefghjkmnpqrstvwxyz", c) {
			return Token{}, fmt.Errorf("%q at character %d cannot be in a token", c, len(prefix)+i+1)
		}
	}
	raw, err := tokenCode.DecodeString(code)
	if err != nil && code != "" {
		raw, err = tokenCode.DecodeString(code[:len(code)-1]) // cut within a byte; the length check below reports it
	}
	if err != nil {
		return Token{}, err
	}
	if len(raw) < tokenOverhead {
		return Token{}, errors.New("it is cut short: copy the whole line")
	}
	want := tokenCode.EncodedLen(tokenOverhead + int(raw[0])<<8 + int(raw[1]))
	if len(code) < want {
		return Token{}, fmt.Errorf("it is cut short, or mistyped at its beginning: %d of %d characters are there; copy the whole line",
			len(prefix)+len(code), len(prefix)+want)
	}
	n := len(raw) - 4
	sum := uint32(raw[n])<<24 | uint32(raw[n+1])<<16 | uint32(raw[n+2])<<8 | uint32(raw[n+3])
	if len(code) > want || sum != crc32.Checksum(append([]byte(prefix), raw[:n]...), castagnoli) {
		return Token{}, errors.New("it has a typo (its checksum is wrong): copy it again")
	}
	return unpack(raw[2:n], prefix == secretPrefix)
}

func unpack(body []byte, secret bool) (Token, error) {
	damaged := errors.New("its checksum is right, but its content is not: ask for another")
	take := func(n int) (part []byte, ok bool) {
		if n > len(body) {
			return nil, false
		}
		part, body = body[:n], body[n:]
		return part, true
	}
	head, ok := take(1)
	if !ok {
		return Token{}, damaged
	}
	world, ok := take(int(head[0] &^ hexWorld))
	if !ok {
		return Token{}, damaged
	}
	t := Token{World: string(world)}
	if head[0]&hexWorld != 0 {
		t.World = hex.EncodeToString(world)
	}
	if secret {
		raw, ok := take(len(trust.Secret{}))
		if !ok {
			return Token{}, damaged
		}
		s := trust.Secret(raw)
		t.Secret = &s
	}
	peer := ""
	for len(body) > 0 && len(t.Addrs) < MaxTokenAddrs {
		head, _ := take(1)
		short, ok := take(int(head[0]))
		if !ok {
			return Token{}, damaged
		}
		addr, ok := expand(short, peer)
		if !ok {
			return Token{}, damaged
		}
		peer = peerPart(addr)
		t.Addrs = append(t.Addrs, addr)
	}
	if len(body) > 0 {
		return Token{}, damaged
	}
	return t, nil
}

// peerPart returns the "/p2p/…" at the end of addr, or "".
func peerPart(addr string) string {
	if i := strings.LastIndex(addr, "/p2p/"); i >= 0 {
		return addr[i:]
	}
	return ""
}

// peers returns the peer ids in the addresses.
func (t Token) peers() (ids []string) {
	for _, addr := range t.Addrs {
		if id := strings.TrimPrefix(peerPart(addr), "/p2p/"); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func abbreviate(addr, peer string) []byte {
	var tail []byte
	if peer != "" && strings.HasSuffix(addr, peer) {
		addr, tail = strings.TrimSuffix(addr, peer), []byte{samePeer}
	}
	for i := len(abbreviations) - 1; i >= 0; i-- { // the longest /p2p/ first
		addr = strings.ReplaceAll(addr, abbreviations[i], string([]byte{byte(128 + i)}))
	}
	return append([]byte(addr), tail...)
}

func expand(short []byte, peer string) (addr string, ok bool) {
	var b strings.Builder
	for _, c := range short {
		switch {
		case c < 128:
			b.WriteByte(c)
		case int(c)-128 < len(abbreviations):
			b.WriteString(abbreviations[c-128])
		case c == samePeer && peer != "":
			b.WriteString(peer)
		default:
			return "", false
		}
		if b.Len() > MaxTokenAddr {
			return "", false
		}
	}
	return b.String(), true
}
