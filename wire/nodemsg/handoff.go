package nodemsg

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/wire"
)

// Messages that move players to another gateway when theirs shuts down.

// HandoffRequest asks a gateway whether it accepts sessions from the sender, which is shutting down.
type HandoffRequest struct {
	Sessions uint64 `cbor:"1,keyasint,omitempty"` // number of the sender's sessions
}

// Valid always returns nil.
func (HandoffRequest) Valid() error { return nil }

// HandoffOffer answers a HandoffRequest.
type HandoffOffer struct {
	HTTP     string `cbor:"1,keyasint"`           // URL of the web client: http:// or https://
	Game     string `cbor:"2,keyasint"`           // host:port of the game server
	Sessions uint64 `cbor:"3,keyasint,omitempty"` // number of its current sessions
	Ready    bool   `cbor:"4,keyasint,omitempty"` // it accepts players now
	Draining bool   `cbor:"5,keyasint,omitempty"` // it is shutting down itself
	// Origins are further ones of its pages, beside that of HTTP: players who come from there stay on them.
	Origins []string `cbor:"6,keyasint,omitempty"`
	// Games are the ports at which clients of other games are served, at the host of HTTP.
	Games map[string]uint16 `cbor:"7,keyasint,omitempty"`
}

const (
	// MaxOrigins is the most origins of a HandoffOffer.
	MaxOrigins = 16
	// MaxGames is the most games of a HandoffOffer.
	MaxGames = 16
)

// Valid returns an error if the offer is invalid.
func (o HandoffOffer) Valid() error {
	if err := wire.CheckURL(o.HTTP, "http", "https"); err != nil {
		return err
	}
	if len(o.Origins) > MaxOrigins {
		return wire.Refuse(wire.FailTooLong, "%d origins; at most %d are allowed", len(o.Origins), MaxOrigins)
	}
	for _, origin := range o.Origins {
		if err := wire.CheckURL(origin, "http", "https"); err != nil {
			return err
		}
	}
	if len(o.Games) > MaxGames {
		return wire.Refuse(wire.FailTooLong, "%d games; at most %d are allowed", len(o.Games), MaxGames)
	}
	gateway, _ := o.Gateway("")
	return gateway.Valid()
}

// Gateway returns the offered addresses in the form for clients, and reports whether they are served: clients of
// another game are where that is. The offer must be valid.
func (o HandoffOffer) Gateway(game string) (gateway wire.Gateway, served bool) {
	socket := "ws" + strings.TrimPrefix(o.HTTP, "http") // https becomes wss
	gateway = wire.Gateway{URL: strings.TrimSuffix(socket, "/") + "/ws", Game: o.Game}
	if game == "" {
		return gateway, true
	}
	port, served := o.Games[game]
	u, err := url.Parse(o.HTTP)
	if !served || port == 0 || err != nil {
		return gateway, false
	}
	gateway.Game = net.JoinHostPort(u.Hostname(), strconv.Itoa(int(port)))
	return gateway, true
}

// EncodeHandoffRequest encodes the question in CBOR.
func EncodeHandoffRequest(s HandoffRequest) ([]byte, error) {
	return wire.EncodeCBOR(s, wire.MaxQuestion)
}

// DecodeHandoffRequest decodes and validates what EncodeHandoffRequest wrote.
func DecodeHandoffRequest(b []byte) (HandoffRequest, error) {
	return wire.DecodeCBOR[HandoffRequest](b, wire.MaxQuestion)
}

// EncodeHandoffOffer encodes a valid HandoffOffer in CBOR.
func EncodeHandoffOffer(o HandoffOffer) ([]byte, error) { return wire.EncodeCBOR(o, wire.MaxQuestion) }

// DecodeHandoffOffer decodes and validates what EncodeHandoffOffer wrote.
func DecodeHandoffOffer(b []byte) (HandoffOffer, error) {
	return wire.DecodeCBOR[HandoffOffer](b, wire.MaxQuestion)
}
