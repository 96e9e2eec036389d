package nodemsg

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/wire"
)

func anOffer() HandoffOffer {
	return HandoffOffer{HTTP: "https://b.example/world/", Game: "b.example:4002", Sessions: 12, Ready: true}
}

func TestHandoffMessages(t *testing.T) {
	b, err := EncodeHandoffRequest(HandoffRequest{Sessions: 40})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeHandoffRequest(b); err != nil || got != (HandoffRequest{Sessions: 40}) {
		t.Errorf("question came back as %+v, %v", got, err)
	}
	for _, o := range []HandoffOffer{anOffer(), {HTTP: "http://192.0.2.7:8080", Game: "192.0.2.7:4002", Draining: true, Origins: []string{"http://box.local"}, Games: map[string]uint16{"luanti": 30000}}} {
		b, err := EncodeHandoffOffer(o)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeHandoffOffer(b); err != nil || !reflect.DeepEqual(got, o) {
			t.Errorf("offer came back as %+v, %v", got, err)
		}
	}
}

// Clients get the WebSocket URL that belongs to the URL of the web client.
func TestGatewayOfOffer(t *testing.T) {
	for url, want := range map[string]string{
		"http://192.0.2.7:8080":     "ws://192.0.2.7:8080/ws",
		"http://192.0.2.7:8080/":    "ws://192.0.2.7:8080/ws",
		"https://b.example":         "wss://b.example/ws",
		"https://b.example/world/":  "wss://b.example/world/ws",
		"https://b.example/world":   "wss://b.example/world/ws",
		"http://[2001:db8::7]:8080": "ws://[2001:db8::7]:8080/ws",
	} {
		o := HandoffOffer{HTTP: url, Game: "b:1"}
		if got, served := o.Gateway(""); o.Valid() != nil || !served || got != (wire.Gateway{URL: want, Game: "b:1"}) {
			t.Errorf("%s: %+v, %v; want %s", url, got, o.Valid(), want)
		}
	}
	o := anOffer()
	o.Games = map[string]uint16{"luanti": 30000}
	if got, served := o.Gateway("luanti"); !served || got.Game != "b.example:30000" || got.Valid() != nil {
		t.Errorf("players of Luanti are sent to %+v", got)
	}
	if _, served := o.Gateway("classicube"); served {
		t.Error("a game is served that is not offered")
	}
}

func TestOfferRefuses(t *testing.T) {
	for name, change := range map[string]func(*HandoffOffer){
		"no URL":       func(o *HandoffOffer) { o.HTTP = "" },
		"a socket":     func(o *HandoffOffer) { o.HTTP = "ws://b/" },
		"long":         func(o *HandoffOffer) { o.HTTP = "https://b/" + strings.Repeat("x", wire.MaxURL) },
		"nearly long":  func(o *HandoffOffer) { o.HTTP = "http://b/" + strings.Repeat("x", wire.MaxURL-len("http://b/")) }, // its WebSocket URL is
		"no game":      func(o *HandoffOffer) { o.Game = "" },
		"game port 0":  func(o *HandoffOffer) { o.Game = "b:0" },
		"control sign": func(o *HandoffOffer) { o.HTTP = "http://b/\n" },
		"bad origin":   func(o *HandoffOffer) { o.Origins = []string{"null"} },
		"many games": func(o *HandoffOffer) {
			o.Games = make(map[string]uint16)
			for i := range MaxGames + 1 {
				o.Games[strconv.Itoa(i)] = 1
			}
		},
		"many origins": func(o *HandoffOffer) { o.Origins = slices.Repeat([]string{"http://b"}, MaxOrigins+1) },
	} {
		o := anOffer()
		change(&o)
		if _, err := EncodeHandoffOffer(o); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}
