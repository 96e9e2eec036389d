package wire

import (
	"net/url"
	"strings"
)

// Messages with which players move to another gateway, when theirs goes away.

const (
	// MaxHomes is the most addresses in a Reconnect.
	MaxHomes = 8
	// MaxURL is the longest URL of a gateway, in bytes.
	MaxURL = 512
)

// Reconnect tells a session's client that this gateway goes away, or takes no new session, and where else the
// world can be played. What the player did is saved; edits that were not acknowledged are to be asked for
// again there, under their numbers.
type Reconnect struct {
	// Homes are addresses of other gateways, the best first; at most MaxHomes. None: no other gateway is
	// known, and this one will be back.
	Homes  []Home `json:"homes"`
	Reason string `json:"reason"` // for people
}

func (Reconnect) fromServer() {}

// Home is a gateway's addresses for players.
type Home struct {
	URL  string `json:"url"`  // of its WebSocket: ws:// or wss://
	Game string `json:"game"` // host:port of its game server
}

// Valid says what is wrong with the message.
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

// Shelter asks a gateway whether it would take sessions of the one that asks, which goes away.
type Shelter struct {
	Sessions uint64 `cbor:"1,keyasint,omitempty"` // that it has
}

// Valid accepts every question.
func (Shelter) Valid() error { return nil }

// Offer answers a Shelter.
type Offer struct {
	HTTP     string `cbor:"1,keyasint"`           // URL that players open: http:// or https://
	Game     string `cbor:"2,keyasint"`           // host:port of the game server
	Sessions uint64 `cbor:"3,keyasint,omitempty"` // that it has already
	Ready    bool   `cbor:"4,keyasint,omitempty"` // it takes players now
	Draining bool   `cbor:"5,keyasint,omitempty"` // it goes away itself
}

// Valid says what is wrong with the offer.
func (o Offer) Valid() error {
	if err := checkURL(o.HTTP, "http", "https"); err != nil {
		return err
	}
	return (Reconnect{Homes: []Home{o.Home()}}).Valid()
}

// Home gives the addresses of the offer as clients are told them. The offer must be valid.
func (o Offer) Home() Home {
	socket := "ws" + strings.TrimPrefix(o.HTTP, "http") // https becomes wss
	return Home{URL: strings.TrimSuffix(socket, "/") + "/ws", Game: o.Game}
}

// checkURL takes an absolute URL of one of the schemes in its normal form, without user, query and fragment.
func checkURL(text string, schemes ...string) error {
	if len(text) > MaxURL || !printable(text) {
		return refuse(FailBadValue, "a URL has at most %d bytes of ASCII", MaxURL)
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.ContainsAny(text, "?#") || u.Opaque != "" {
		return refuse(FailBadValue, "%q is no plain URL of a gateway", clip([]byte(text)))
	}
	for _, scheme := range schemes {
		if strings.HasPrefix(text, scheme+"://") {
			return nil
		}
	}
	return refuse(FailBadValue, "%q: want a URL that begins with %s://", clip([]byte(text)), schemes[0])
}

// EncodeShelter writes the question in CBOR.
func EncodeShelter(s Shelter) ([]byte, error) { return encodeCBOR(s, MaxAsk) }

// DecodeShelter reads what EncodeShelter wrote, and checks it.
func DecodeShelter(b []byte) (Shelter, error) { return decodeCBOR[Shelter](b, MaxAsk) }

// EncodeOffer writes a valid Offer in CBOR.
func EncodeOffer(o Offer) ([]byte, error) { return encodeCBOR(o, MaxAsk) }

// DecodeOffer reads what EncodeOffer wrote, and checks it.
func DecodeOffer(b []byte) (Offer, error) { return decodeCBOR[Offer](b, MaxAsk) }
