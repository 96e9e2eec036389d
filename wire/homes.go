package wire

import (
	"net/url"
	"strings"
)

// Messages that move players to another gateway when theirs shuts down.

const (
	// MaxHomes is the most addresses in a Reconnect.
	MaxHomes = 8
	// MaxURL is the longest URL of a gateway, in bytes.
	MaxURL = 512
)

// Reconnect tells a client that this gateway is shutting down or accepts no new sessions, and lists other gateways of
// the world. The player's state is saved. The client must send unacknowledged edits again to the new gateway, with the
// same sequence numbers.
type Reconnect struct {
	// Homes lists addresses of other gateways, the best first; at most MaxHomes. If empty, no other gateway is known,
	// and this one will be back.
	Homes  []Home `json:"homes"`
	Reason string `json:"reason"` // for people
}

func (Reconnect) fromServer() {}

// Home holds the addresses of a gateway for players.
type Home struct {
	URL  string `json:"url"`  // URL of its WebSocket: ws:// or wss://
	Game string `json:"game"` // host:port of its game server
}

// Valid returns an error if the message is invalid.
func (r Reconnect) Valid() error {
	if r.Homes == nil {
		return refuse(FailMissingField, `"homes" is missing`)
	}
	if len(r.Homes) > MaxHomes {
		return refuse(FailBadValue, "at most %d homes, not %d", MaxHomes, len(r.Homes))
	}
	for _, h := range r.Homes {
		if err := checkURL(h.URL, "ws", "wss"); err != nil {
			return err
		}
		if err := checkHostPort(h.Game); err != nil {
			return err
		}
	}
	return checkText(r.Reason)
}

// Shelter asks a gateway whether it accepts sessions from the sender, which is shutting down.
type Shelter struct {
	Sessions uint64 `cbor:"1,keyasint,omitempty"` // number of the sender's sessions
}

// Valid always returns nil.
func (Shelter) Valid() error { return nil }

// Offer answers a Shelter.
type Offer struct {
	HTTP     string `cbor:"1,keyasint"`           // URL of the web client: http:// or https://
	Game     string `cbor:"2,keyasint"`           // host:port of the game server
	Sessions uint64 `cbor:"3,keyasint,omitempty"` // number of its current sessions
	Ready    bool   `cbor:"4,keyasint,omitempty"` // it accepts players now
	Draining bool   `cbor:"5,keyasint,omitempty"` // it is shutting down itself
}

// Valid returns an error if the offer is invalid.
func (o Offer) Valid() error {
	if err := checkURL(o.HTTP, "http", "https"); err != nil {
		return err
	}
	return (Reconnect{Homes: []Home{o.Home()}}).Valid()
}

// Home returns the offered addresses in the form for clients. The offer must be valid.
func (o Offer) Home() Home {
	socket := "ws" + strings.TrimPrefix(o.HTTP, "http") // https becomes wss
	return Home{URL: strings.TrimSuffix(socket, "/") + "/ws", Game: o.Game}
}

// checkURL returns an error unless text is a normalised absolute URL with one of the schemes and without user, query
// and fragment.
func checkURL(text string, schemes ...string) error {
	if len(text) > MaxURL || !printable(text) {
		return refuse(FailBadValue, "a URL has at most %d bytes of ASCII", MaxURL)
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.ContainsAny(text, "?#") || u.Opaque != "" {
		return refuse(FailBadValue, "%q is not a plain gateway URL", clip([]byte(text)))
	}
	for _, scheme := range schemes {
		if strings.HasPrefix(text, scheme+"://") {
			return nil
		}
	}
	return refuse(FailBadValue, "%q: want a URL that begins with %s://", clip([]byte(text)), schemes[0])
}

// EncodeShelter encodes the question in CBOR.
func EncodeShelter(s Shelter) ([]byte, error) { return encodeCBOR(s, MaxAsk) }

// DecodeShelter decodes and validates what EncodeShelter wrote.
func DecodeShelter(b []byte) (Shelter, error) { return decodeCBOR[Shelter](b, MaxAsk) }

// EncodeOffer encodes a valid Offer in CBOR.
func EncodeOffer(o Offer) ([]byte, error) { return encodeCBOR(o, MaxAsk) }

// DecodeOffer decodes and validates what EncodeOffer wrote.
func DecodeOffer(b []byte) (Offer, error) { return decodeCBOR[Offer](b, MaxAsk) }
