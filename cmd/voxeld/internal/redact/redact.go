// Package redact replaces in texts what those who read them need not know: tokens, and addresses of players and
// machines.
package redact

import (
	"fmt"
	"net/netip"
	"regexp"
)

// Token replaces a token.
const Token = "a token"

// tokenText matches what is, or may be, the beginning of a join token, with the spaces and line breaks that
// config.ParseToken ignores, also as a quoted text has them; or a token for /owner. The secret of a join token comes
// after more characters than are asked for here.
var tokenText = regexp.MustCompile(`(?i)\bvx[0-9a-z](?:[0-9a-z\s]|\\[nrt]){12,}|\b[a-z2-7]{4}(?:-[a-z2-7]{4}){3}\b`)

// Tokens returns a text in which tokens are replaced.
func Tokens(text string) string { return tokenText.ReplaceAllString(text, Token) }

// Addresses replaces IP addresses, the same one always by the same name. The zero value knows none.
type Addresses struct{ names map[netip.Addr]string }

// addressText matches what may be an IP address: four numbers, or at least two colons.
var addressText = regexp.MustCompile(`[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:\.[0-9]{1,3}){0,3}`)

// Replace returns a text in which all IP addresses are replaced but those that every machine has, such as 127.0.0.1.
func (a *Addresses) Replace(text string) string {
	return addressText.ReplaceAllStringFunc(text, func(found string) string {
		ip, err := netip.ParseAddr(found)
		if ip = ip.Unmap(); err != nil || ip.IsLoopback() || ip.IsUnspecified() {
			return found
		}
		name, known := a.names[ip]
		if !known {
			if a.names == nil {
				a.names = make(map[netip.Addr]string)
			}
			name = fmt.Sprintf("ip-%d", len(a.names)+1)
			a.names[ip] = name
		}
		return name
	})
}
