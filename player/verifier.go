package player

const (
	// SaltSize is the length of a verifier's salt.
	SaltSize = 16
	// groupSize is the length of a number of SRP's group of 2,048 bits.
	groupSize = 256
)

// Verifier is what gateways check a guest's password with, but cannot read it from: a salt, and the verifier of SRP-6a
// (RFC 5054), big-endian. Only clients of Luanti can prove that they know the password (docs/adr/0117).
type Verifier [SaltSize + groupSize]byte

// Salt returns the salt.
func (v *Verifier) Salt() []byte { return v[:SaltSize] }

// Number returns the bytes of the number.
func (v *Verifier) Number() []byte { return v[SaltSize:] }
