package luanticlient

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"math/big"
	"strings"
)

// SRP is a client's side of one login: SRP-6a with the group of 2,048 bits of RFC 5054, and SHA-256.
type SRP struct {
	name, password string
	secret, public *big.Int // a, A
}

var (
	prime, _ = new(big.Int).SetString(`AC6BDB41324A9A9BF166DE5E1389582FAF72B6651987EE07FC3192943DB56050A37329CBB4A099ED8193`+
		`E0757767A13DD52312AB4B03310DCD7F48A9DA04FD50E8083969EDB767B0CF6095179A163AB3661A05FBD5FAAAE82918A9962F0B93B855F97993`+
		`EC975EEAA80D740ADBF4FF747359D041D5C33EA71D281E446B14773BCA97B43A23FB801676BD207A436C6481F1D2B9078717461A5B9D32E688F8`+
		`7748544523B524B0D57D5EA77A2775D2ECFA032CFBDBF52FB3786160279004E57AE6AF874E7303CE53299CCC041C7BC308D82A5698F3A8D0C382`+
		`71AE35F8E9DBFBB694B5C803D89F7AE435DE236D525F54759B65E372FCD68EF20FA7111F9E4AFF73`, 16)
	generator = big.NewInt(2)
)

// NewSRP begins a login.
func NewSRP(name, password string) *SRP {
	secret := make([]byte, 32)
	rand.Read(secret)
	s := &SRP{name: name, password: password, secret: new(big.Int).SetBytes(secret)}
	s.public = new(big.Int).Exp(generator, s.secret, prime)
	return s
}

// Choose returns a salt, and the verifier of the password with it.
func (s *SRP) Choose() (salt, verifier []byte) {
	salt = make([]byte, 16)
	rand.Read(salt)
	return salt, new(big.Int).Exp(generator, s.exponent(salt), prime).Bytes()
}

// exponent returns x, which the client makes of the password.
func (s *SRP) exponent(salt []byte) *big.Int {
	inner := sha256.Sum256([]byte(strings.ToLower(s.name) + ":" + s.password))
	x := sha256.Sum256(append(append([]byte{}, salt...), inner[:]...))
	return new(big.Int).SetBytes(x[:])
}

// A returns the client's public number.
func (s *SRP) A() []byte { return s.public.Bytes() }

func padded(a, b *big.Int) *big.Int {
	var both [512]byte
	a.FillBytes(both[:256])
	b.FillBytes(both[256:])
	sum := sha256.Sum256(both[:])
	return new(big.Int).SetBytes(sum[:])
}

// Prove returns the proof for a salt and the server's number B.
func (s *SRP) Prove(salt, number []byte) []byte {
	b, x := new(big.Int).SetBytes(number), s.exponent(salt)
	u, k := padded(s.public, b), padded(prime, generator)
	base := new(big.Int).Exp(generator, x, prime)
	base.Sub(b, base.Mul(base, k)).Mod(base, prime)
	shared := new(big.Int).Exp(base, x.Add(s.secret, x.Mul(x, u)), prime) // (B - k g^x) ^ (a + u x)

	group, two, who, key := sha256.Sum256(prime.Bytes()), sha256.Sum256([]byte{2}), sha256.Sum256([]byte(s.name)), sha256.Sum256(shared.Bytes())
	subtle.XORBytes(group[:], group[:], two[:])
	h := sha256.New()
	for _, part := range [][]byte{group[:], who[:], salt, s.public.Bytes(), b.Bytes(), key[:]} {
		h.Write(part)
	}
	return h.Sum(nil)
}
