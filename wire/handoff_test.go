package wire

import (
	"reflect"
	"strings"
	"testing"
)

func anOffer() HandoffOffer {
	return HandoffOffer{HTTP: "https://b.example/world/", Game: "b.example:4002", Sessions: 12, Ready: true}
}

func TestShelterAndOffer(t *testing.T) {
	b, err := EncodeHandoffRequest(HandoffRequest{Sessions: 40})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeHandoffRequest(b); err != nil || got != (HandoffRequest{Sessions: 40}) {
		t.Errorf("question came back as %+v, %v", got, err)
	}
	for _, o := range []HandoffOffer{anOffer(), {HTTP: "http://192.0.2.7:8080", Game: "192.0.2.7:4002", Draining: true}} {
		b, err := EncodeHandoffOffer(o)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeHandoffOffer(b); err != nil || got != o {
			t.Errorf("offer came back as %+v, %v", got, err)
		}
	}
}

// Clients get the WebSocket URL that belongs to the URL of the web client.
func TestHomeOfOffer(t *testing.T) {
	for url, want := range map[string]string{
		"http://192.0.2.7:8080":     "ws://192.0.2.7:8080/ws",
		"http://192.0.2.7:8080/":    "ws://192.0.2.7:8080/ws",
		"https://b.example":         "wss://b.example/ws",
		"https://b.example/world/":  "wss://b.example/world/ws",
		"https://b.example/world":   "wss://b.example/world/ws",
		"http://[2001:db8::7]:8080": "ws://[2001:db8::7]:8080/ws",
	} {
		o := HandoffOffer{HTTP: url, Game: "b:1"}
		if err := o.Valid(); err != nil || o.Gateway() != (Gateway{URL: want, Game: "b:1"}) {
			t.Errorf("%s: %+v, %v; want %s", url, o.Gateway(), err, want)
		}
	}
}

// Clients follow a Reconnect without further checks, so the decoder refuses anything but a plain address.
func TestReconnectRefuses(t *testing.T) {
	good := `{"url":"ws://b/ws","game":"b:1"}`
	long := `{"url":"ws://b/` + strings.Repeat("x", MaxURL) + `","game":"b:1"}`
	for name, homes := range map[string]string{
		"no list":          `null`,
		"too many":         `[` + strings.Repeat(good+",", MaxGateways) + good + `]`,
		"a page":           `[{"url":"http://b/","game":"b:1"}]`,
		"a script":         `[{"url":"javascript:alert(1)","game":"b:1"}]`,
		"no host":          `[{"url":"ws:///ws","game":"b:1"}]`,
		"a password":       `[{"url":"ws://ann:secret@b/ws","game":"b:1"}]`,
		"a query":          `[{"url":"ws://b/ws?x","game":"b:1"}]`,
		"a fragment":       `[{"url":"ws://b/ws#","game":"b:1"}]`,
		"a space":          `[{"url":"ws://b/w s","game":"b:1"}]`,
		"no game server":   `[{"url":"ws://b/ws","game":""}]`,
		"no port":          `[{"url":"ws://b/ws","game":"b"}]`,
		"long":             `[` + long + `]`,
		"upper-case words": `[{"url":"WS://b/ws","game":"b:1"}]`,
	} {
		if m, err := DecodeServer([]byte(`{"type":"reconnect","homes":` + homes + `,"reason":""}`)); err == nil {
			t.Errorf("%s: taken as %+v", name, m)
		} else {
			refusedOnly(t, err)
		}
	}
	m, err := DecodeServer([]byte(`{"type":"reconnect","homes":[` + good + `],"reason":"x"}`))
	want := Reconnect{Gateways: []Gateway{{URL: "ws://b/ws", Game: "b:1"}}, Reason: "x"}
	if err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, %v; want %+v", m, err, want)
	}
	if _, err := EncodeServer(Reconnect{}); err == nil {
		t.Error("a message without a list was written")
	}
}

func TestOfferRefuses(t *testing.T) {
	for name, change := range map[string]func(*HandoffOffer){
		"no URL":       func(o *HandoffOffer) { o.HTTP = "" },
		"a socket":     func(o *HandoffOffer) { o.HTTP = "ws://b/" },
		"long":         func(o *HandoffOffer) { o.HTTP = "https://b/" + strings.Repeat("x", MaxURL) },
		"nearly long":  func(o *HandoffOffer) { o.HTTP = "http://b/" + strings.Repeat("x", MaxURL-len("http://b/")) }, // its WebSocket URL is
		"no game":      func(o *HandoffOffer) { o.Game = "" },
		"game port 0":  func(o *HandoffOffer) { o.Game = "b:0" },
		"control sign": func(o *HandoffOffer) { o.HTTP = "http://b/\n" },
	} {
		o := anOffer()
		change(&o)
		if _, err := EncodeHandoffOffer(o); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}
