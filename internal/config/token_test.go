package config

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/trust"
)

var sampleToken = Token{
	World: strings.Repeat("0123456789abcdef", 4),
	Addrs: []string{
		"/ip4/192.0.2.7/tcp/4001/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN",
		"/ip4/192.0.2.7/udp/4001/quic-v1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN",
		"/dns4/voxels.example/tcp/4001/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN",
	},
}

// The text form of a token must not change: people keep tokens in compose files.
const sampleText = "vx1023a00938nkrkaydxw0j6hb7h6nwvvr14d2pf2dbsqqg28t5cy4tqkff7j032e9j5rr2wche6y2k8c1g664m8w2a6x0q6dt2a" +
	"x0qemjdcstk2njn69bm6waed9v72csr6x54apab8h16md3bf0v6wp2m9r8r0c9s68q30bhj5rvrcd1g60rrfzrng9v6yy35dhsjw" +
	"sbrc5pq0v35gmt30c1hzyx04ks8"

func TestTokenText(t *testing.T) {
	text := sampleToken.String()
	if text != sampleText {
		t.Errorf("the text of a token has changed:\n%s\nwant\n%s", text, sampleText)
	}
	got, err := ParseToken(sampleText)
	if err != nil || !reflect.DeepEqual(got, sampleToken) {
		t.Errorf("%+v, %v", got, err)
	}
	if plain := len(fmt.Sprint(sampleToken)); len(text) > plain {
		t.Errorf("%d characters for a token of %d bytes", len(text), plain)
	}
}

func drawToken(t *rapid.T) Token {
	var token Token
	if rapid.Bool().Draw(t, "hash") {
		token.World = hex.EncodeToString(rapid.SliceOfN(rapid.Byte(), 1, 63).Draw(t, "world"))
	} else {
		token.World = rapid.StringMatching(`[!-~]{1,127}`).Draw(t, "world")
	}
	if rapid.Bool().Draw(t, "secret") {
		token.Secret = &trust.Secret{1, 2, 3}
	}
	for range rapid.IntRange(1, 5).Draw(t, "n") {
		token.Addrs = append(token.Addrs, rapid.SampledFrom([]string{
			"/ip4/192.0.2.7/tcp/4001", "/ip6/2001:db8::1/udp/65535/quic-v1", "/dns/a.example/tcp/1", "/dns6/b/tcp/4001/ws",
		}).Draw(t, "host")+rapid.StringMatching(`/p2p/(12D3KooW)?[1-9A-Za-z]{10,52}`).Draw(t, "peer"))
	}
	return token
}

func TestTokenRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := drawToken(t)
		text := token.String()
		got, err := ParseToken(text)
		if err != nil || !reflect.DeepEqual(got, token) {
			t.Fatalf("%+v became %+v, %v", token, got, err)
		}
		sloppy := " " + strings.ToUpper(text[:20]) + "\r\n\t" + strings.ReplaceAll(strings.ReplaceAll(text[20:], "1", "l"), "0", "O") + "\n"
		if got, err := ParseToken(sloppy); err != nil || !reflect.DeepEqual(got, token) {
			t.Fatalf("typed as %q: %+v, %v", sloppy, got, err)
		}
	})
}

func TestTokenTyposAndCuts(t *testing.T) {
	for cut := range sampleText {
		_, err := ParseToken(sampleText[:cut])
		if err == nil {
			t.Fatalf("cut to %d characters it is accepted", cut)
		}
		if cut > 20 && !strings.Contains(err.Error(), fmt.Sprintf("cut short, or mistyped at its beginning: %d of %d", cut, len(sampleText))) {
			t.Fatalf("cut to %d characters: %v", cut, err)
		}
	}
	for at := len(openPrefix); at < len(sampleText); at++ {
		for _, c := range "07az" {
			typo := sampleText[:at] + string(c) + sampleText[at+1:]
			if got, err := ParseToken(typo); err == nil && !reflect.DeepEqual(got, sampleToken) {
				t.Fatalf("a typo at %d went unnoticed: %+v", at, got)
			} else if err == nil && typo != sampleText && at < len(sampleText)-1 {
				t.Fatalf("a typo at %d went unnoticed", at) // the last character has spare bits
			}
		}
		if at+1 < len(sampleText) && sampleText[at] != sampleText[at+1] {
			swap := sampleText[:at] + sampleText[at+1:at+2] + sampleText[at:at+1] + sampleText[at+2:]
			if got, err := ParseToken(swap); err == nil && !reflect.DeepEqual(got, sampleToken) {
				t.Fatalf("swapped letters at %d went unnoticed", at)
			}
		}
	}
	for text, want := range map[string]string{
		"":                                      "begins neither",
		"192.0.2.1:4001":                        "begins neither",
		"vx3" + sampleText[3:]:                  "newer voxeld",
		sampleText + "0":                        "typo",
		sampleText[:30] + "!" + sampleText[31:]: `'!' at character 31`,
		"vx1":                                   "cut short",
		strings.Repeat("v", 1<<20):              "too many",
	} {
		if _, err := ParseToken(text); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "join token: ") {
			t.Errorf("%.40q: %v; want it to say %q", text, err, want)
		}
	}
}

func TestTokenWithManyAddresses(t *testing.T) {
	many := Token{World: "ab"}
	for i := range MaxTokenAddrs + 10 {
		many.Addrs = append(many.Addrs, fmt.Sprintf("/ip4/192.0.2.%d/tcp/4001/p2p/%s", i, strings.Repeat("x", 200)))
	}
	got, err := ParseToken(many.String())
	if err != nil || !reflect.DeepEqual(got.Addrs, many.Addrs[:MaxTokenAddrs]) {
		t.Errorf("%d addresses, %v", len(got.Addrs), err)
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(sampleText)
	f.Add(Token{World: "w", Addrs: sampleToken.Addrs[:1]}.String())
	f.Add(Token{World: "w", Secret: &trust.Secret{7}, Addrs: sampleToken.Addrs[:1]}.String())
	f.Add("vx10000")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			return
		}
		again, err := ParseToken(token.String())
		if err != nil || !reflect.DeepEqual(again, token) {
			t.Errorf("%+v became %+v, %v", token, again, err)
		}
	})
}

// A token with a correct checksum can still have any content.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte{1, 'w', 3, 0x80, 'a', 0x85}, false)
	f.Add(append([]byte{1, 'w'}, make([]byte, 16)...), true)
	f.Fuzz(func(t *testing.T, body []byte, secret bool) {
		token, err := unpack(body, secret)
		if err != nil {
			return
		}
		size := len(token.World)
		for _, addr := range token.Addrs {
			size += len(addr)
		}
		if size > MaxTokenWorld*2+MaxTokenAddrs*MaxTokenAddr {
			t.Errorf("%d bytes of token", size)
		}
	})
}
