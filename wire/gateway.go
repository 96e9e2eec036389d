package wire

import (
	"net/url"
	"strings"
)

const (
	// MaxGateways is the most addresses in a Reconnect.
	MaxGateways = 8
	// MaxURL is the longest URL of a gateway, in bytes.
	MaxURL = 512
)

// Gateway holds the addresses of a gateway for players.
type Gateway struct {
	URL  string `json:"url"`  // URL of its WebSocket: ws:// or wss://
	Game string `json:"game"` // host:port of its game server; for a client of another game, that of the game
}

// Valid returns an *Error if an address is invalid.
func (g Gateway) Valid() error {
	if err := CheckURL(g.URL, "ws", "wss"); err != nil {
		return err
	}
	return CheckHostPort(g.Game)
}

// CheckURL returns an error unless text is a normalised absolute URL with one of the schemes and without user, query
// and fragment.
func CheckURL(text string, schemes ...string) error {
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
