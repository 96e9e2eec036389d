package luanti

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"math/big"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file is the server's side of SRP-6a (RFC 5054) as the game's clients speak it: with the group of 2,048 bits,
// SHA-256, and the proof of csrp (https://github.com/cocagne/csrp), M = H(H(N) xor H(g), H(I), s, A, B, H(S)), in which
// numbers have no leading zeros. In k and u they have the length of N.

var (
	srpPrime, _ = new(big.Int).SetString("ac6bdb41324a9a9bf166de5e1389582faf72b6651987ee07fc3192943db56050a37329cbb4a099ed8193"+
		"e0757767a13dd52312ab4b03310dcd7f48a9da04fd50e8083969edb767b0cf6095179a163ab3661a05fbd5faaae82918a9962f0b93b855f97993"+
		"ec975eeaa80d740adbf4ff747359d041d5c33ea71d281e446b14773bca97b43a23fb801676bd207a436c6481f1d2b9078717461a5b9d32e688f8"+
		"7748544523b524b0d57d5ea77a2775d2ecfa032cfbdbf52fb3786160279004e57ae6af874e7303ce53299ccc041c7bc308d82a5698f3a8d0c382"+
		"71ae35f8e9dbfbb694b5c803d89f7ae435de236d525f54759b65e372fcd68ef20fa7111f9e4aff73", 16)
	srpGenerator  = big.NewInt(2)
	srpMultiplier = hashNumbers(srpPrime, srpGenerator)
)

// srpBytes is the length of the prime, and srpSecret that of a secret exponent.
const srpBytes, srpSecret = 256, 32

// hashNumbers returns the hash of two numbers, each as long as the prime.
func hashNumbers(a, b *big.Int) *big.Int {
	var both [2 * srpBytes]byte
	a.FillBytes(both[:srpBytes])
	b.FillBytes(both[srpBytes:])
	sum := sha256.Sum256(both[:])
	return new(big.Int).SetBytes(sum[:])
}

// chosen returns the verifier of a client's new password, or nil if the password is empty.
func chosen(f *fields) (*player.Verifier, error) {
	salt, number, empty := f.text(), f.text(), f.u8() != 0
	n := new(big.Int).SetBytes([]byte(number))
	switch {
	case f.short, len(salt) != player.SaltSize, n.Sign() == 0, n.Cmp(srpPrime) >= 0:
		return nil, wire.Refuse(wire.FailBadValue, "Your client sent a password that cannot be checked.")
	case empty:
		return nil, nil
	}
	v := new(player.Verifier)
	copy(v.Salt(), salt)
	n.FillBytes(v.Number())
	return v, nil
}

// srpLogin is a client's proof, under way, that it knows the password of a name.
type srpLogin struct {
	verifier *player.Verifier // nil: any password will do
	salt, b  []byte           // what the client makes its proof with
	proof    [sha256.Size]byte
}

// newSRPLogin returns the login of a client that has sent its number A. Who has no verifier is sent random numbers.
func newSRPLogin(name, number string, v *player.Verifier) (*srpLogin, error) {
	if v == nil {
		random := make([]byte, player.SaltSize+srpBytes)
		rand.Read(random)
		random[player.SaltSize] = 1 + random[player.SaltSize]&0x7f // less than the prime, and not 0
		return &srpLogin{salt: random[:player.SaltSize], b: random[player.SaltSize:]}, nil
	}
	a := new(big.Int).SetBytes([]byte(number))
	if a.Cmp(srpPrime) >= 0 || a.Sign() == 0 { // with 0 anybody could make the proof
		return nil, wire.Refuse(wire.FailBadValue, "Your client sent a number that is not one of SRP's.")
	}
	secret := make([]byte, srpSecret)
	rand.Read(secret)
	return srpLoginWith(name, a, v, new(big.Int).SetBytes(secret)), nil
}

// srpLoginWith returns the login with the server's secret exponent.
func srpLoginWith(name string, a *big.Int, v *player.Verifier, secret *big.Int) *srpLogin {
	number := new(big.Int).SetBytes(v.Number())
	b := new(big.Int).Mul(srpMultiplier, number) // kv + g^b
	b.Add(b, new(big.Int).Exp(srpGenerator, secret, srpPrime)).Mod(b, srpPrime)
	shared := new(big.Int).Exp(number, hashNumbers(a, b), srpPrime) // (A v^u)^b
	shared.Mul(shared, a).Mod(shared, srpPrime).Exp(shared, secret, srpPrime)

	group, generator := sha256.Sum256(srpPrime.Bytes()), sha256.Sum256(srpGenerator.Bytes())
	subtle.XORBytes(group[:], group[:], generator[:])
	who, key := sha256.Sum256([]byte(name)), sha256.Sum256(shared.Bytes())
	h := sha256.New()
	for _, part := range [][]byte{group[:], who[:], v.Salt(), a.Bytes(), b.Bytes(), key[:]} {
		h.Write(part)
	}
	return &srpLogin{verifier: v, salt: v.Salt(), b: b.Bytes(), proof: [sha256.Size]byte(h.Sum(nil))}
}

// proves reports whether the client knows the password, if there is one.
func (l *srpLogin) proves(proof string) bool {
	return l.verifier == nil || subtle.ConstantTimeCompare([]byte(proof), l.proof[:]) == 1
}
