package wire

import (
	"net/url"
	"strings"
)

// Messages that move players to another gateway when theirs shuts down.

const (
	// MaxGateways is the most addresses in a Reconnect.
	MaxGateways = 8
	// MaxURL is the longest URL of a gateway, in bytes.
	MaxURL = 512
)

// Reconnect tells a client that this gateway is shutting down or accepts no new sessions, and lists other gateways of
// the world. The player's state is saved. The client must send unacknowledged edits again to the new gateway, with the
// same sequence numbers.
type Reconnect struct {
	// Gateways lists addresses of other gateways, the best first; at most MaxGateways. If empty, no other gateway is known,
	// and this one will be back.
	Gateways []Gateway `json:"homes"`
	Reason   string    `json:"reason"` // for people
}

func (Reconnect) fromServer() {}

// Gateway holds the addresses of a gateway for players.
type Gateway struct {
	URL  string `json:"url"`  // URL of its WebSocket: ws:// or wss://
	Game string `json:"game"` // host:port of its game server
}

// Valid returns an error if the message is invalid.
func (r Reconnect) Valid() error {
	if r.Gateways == nil {
		return Refuse(FailMissingField, `"homes" is missing`)
	}
	if len(r.Gateways) > MaxGateways {
		return Refuse(FailBadValue, "at most %d homes, not %d", MaxGateways, len(r.Gateways))
	}
	for _, h := range r.Gateways {
		if err := checkURL(h.URL, "ws", "wss"); err != nil {
			return err
		}
		if err := checkHostPort(h.Game); err != nil {
			return err
		}
	}
	return checkText(r.Reason)
}

// HandoffRequest asks a gateway whether it accepts sessions from the sender, which is shutting down.
type HandoffRequest struct {
	Sessions uint64 `cbor:"1,keyasint,omitempty"` // SkipNumber of the sender's sessions
}

// Valid always returns nil.
func (HandoffRequest) Valid() error { return nil }

// HandoffOffer answers a HandoffRequest.
type HandoffOffer struct {
	HTTP     string `cbor:"1,keyasint"`           // URL of the web client: http:// or https://
	Game     string `cbor:"2,keyasint"`           // host:port of the game server
	Sessions uint64 `cbor:"3,keyasint,omitempty"` // SkipNumber of its current sessions
	Ready    bool   `cbor:"4,keyasint,omitempty"` // it accepts players now
	Draining bool   `cbor:"5,keyasint,omitempty"` // it is shutting down itself
}

// Valid returns an error if the offer is invalid.
func (o HandoffOffer) Valid() error {
	if err := checkURL(o.HTTP, "http", "https"); err != nil {
		return err
	}
	return (Reconnect{Gateways: []Gateway{o.Gateway()}}).Valid()
}

// Gateway returns the offered addresses in the form for clients. The offer must be valid.
func (o HandoffOffer) Gateway() Gateway {
	socket := "ws" + strings.TrimPrefix(o.HTTP, "http") // https becomes wss
	return Gateway{URL: strings.TrimSuffix(socket, "/") + "/ws", Game: o.Game}
}

// checkURL returns an error unless text is a normalised absolute URL with one of the schemes and without user, query
// and fragment.
func checkURL(text string, schemes ...string) error {
	if len(text) > MaxURL || !printable(text) {
		return Refuse(FailBadValue, "a URL has at most %d bytes of ASCII", MaxURL)
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.ContainsAny(text, "?#") || u.Opaque != "" {
		return Refuse(FailBadValue, "%q is not a plain gateway URL", Clip([]byte(text)))
	}
	for _, scheme := range schemes {
		if strings.HasPrefix(text, scheme+"://") {
			return nil
		}
	}
	return Refuse(FailBadValue, "%q: want a URL that begins with %s://", Clip([]byte(text)), schemes[0])
}

// EncodeHandoffRequest encodes the question in CBOR.
func EncodeHandoffRequest(s HandoffRequest) ([]byte, error) { return EncodeCBOR(s, MaxQuestion) }

// DecodeHandoffRequest decodes and validates what EncodeHandoffRequest wrote.
func DecodeHandoffRequest(b []byte) (HandoffRequest, error) {
	return DecodeCBOR[HandoffRequest](b, MaxQuestion)
}

// EncodeHandoffOffer encodes a valid HandoffOffer in CBOR.
func EncodeHandoffOffer(o HandoffOffer) ([]byte, error) { return EncodeCBOR(o, MaxQuestion) }

// DecodeHandoffOffer decodes and validates what EncodeHandoffOffer wrote.
func DecodeHandoffOffer(b []byte) (HandoffOffer, error) {
	return DecodeCBOR[HandoffOffer](b, MaxQuestion)
}
