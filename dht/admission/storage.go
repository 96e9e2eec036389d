package admission

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/trust"
)

// table stores "certificate" → that of this node; "roots" → the root keys of a world that was open once, one after the
// other; "charter/" and its number, 8 bytes big-endian → a charter; "revocation/" and a hash of who is revoked → the
// newest revocation; and on issuers "invitation/" and the token's id → the invitation.
const table = "trust"

var (
	certificateKey = []byte("certificate")
	rootsKey       = []byte("roots")
)

const (
	charterPrefix    = "charter/"
	revocationPrefix = "revocation/"
	invitationPrefix = "invitation/"
)

// Storage is the node's storage.
type Storage interface {
	Get(table string, key []byte) ([]byte, error)
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
	Commit(writes []kv.Write) error
}

// load adds the stored charters and revocations to the authority. It returns the node's own certificate, and how many
// revocations are too many.
func load(s Storage, a *trust.Authority, now time.Time) (own []byte, tooMany int, err error) {
	err = s.Scan(table, []byte(charterPrefix), func(_, raw []byte) error {
		_, err := a.AddCharter(bytes.Clone(raw))
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	var revocations [][]byte
	err = s.Scan(table, []byte(revocationPrefix), func(_, raw []byte) error {
		revocations = append(revocations, bytes.Clone(raw))
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if tooMany, err = a.AddStored(revocations, now); err != nil {
		return nil, 0, err
	}
	own, err = s.Get(table, certificateKey)
	return own, tooMany, err
}

// LoadRoots returns the root keys of a world whose genesis names none, if it was closed since.
func LoadRoots(s Storage) (roots []trust.Key, err error) {
	raw, err := s.Get(table, rootsKey)
	if err != nil {
		return nil, err
	}
	if len(raw)%len(trust.Key{}) != 0 || len(raw) > trust.MaxRoots*len(trust.Key{}) {
		return nil, fmt.Errorf("stored root keys: %d bytes", len(raw))
	}
	for key := range slices.Chunk(raw, len(trust.Key{})) {
		roots = append(roots, trust.Key(key))
	}
	return roots, nil
}

// Close gives an open world root keys. This node admits others by them when it starts again.
func Close(s Storage, roots []trust.Key) error {
	var raw []byte
	for _, key := range roots {
		raw = append(raw, key[:]...)
	}
	return put(s, rootsKey, raw)
}

func storeCertificate(s Storage, raw []byte) error {
	return put(s, certificateKey, raw)
}

func storeCharters(s Storage, charters [][]byte) error {
	rows, err := CharterRows(charters)
	if err != nil {
		return err
	}
	return s.Commit(rows)
}

// replaceCharters stores the charters instead of those that are stored: a node that was given others, signed with the
// same root keys, gets along with the world again by a new token.
func replaceCharters(s Storage, charters [][]byte) error {
	rows := make(map[string]struct{})
	err := s.Scan(table, []byte(charterPrefix), func(key, _ []byte) error {
		rows[string(key)] = struct{}{}
		return nil
	})
	if err != nil {
		return err
	}
	writes, err := CharterRows(charters)
	if err != nil {
		return err
	}
	for _, w := range writes {
		delete(rows, string(w.Key))
	}
	for key := range rows {
		writes = append(writes, kv.Write{Table: table, Key: []byte(key)})
	}
	return s.Commit(writes)
}

// CharterRows returns the rows in which a node stores charters.
func CharterRows(charters [][]byte) (rows []kv.Write, err error) {
	for _, raw := range charters {
		c, _, err := trust.ReadCharter(raw)
		if err != nil {
			return nil, err
		}
		rows = append(rows, kv.Write{Table: table, Key: charterKey(c.Number), Value: raw})
	}
	return rows, nil
}

func charterKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(charterPrefix), number)
}

func storeRevocation(s Storage, of trust.Subject, raw []byte) error {
	sum := sha256.Sum256(append([]byte{byte(of.Kind)}, of.Name...))
	return put(s, append([]byte(revocationPrefix), sum[:16]...), raw)
}

func storeInvitation(s Storage, i trust.Invitation) error {
	return put(s, invitationKey(i.Token), i.Encode())
}

func invitationKey(t trust.TokenID) []byte { return append([]byte(invitationPrefix), t[:]...) }

func put(s Storage, key, value []byte) error {
	return s.Commit([]kv.Write{{Table: table, Key: key, Value: value}})
}

// loadInvitation returns the invitation of a token.
func loadInvitation(s Storage, t trust.TokenID) (trust.Invitation, error) {
	raw, err := s.Get(table, invitationKey(t))
	switch {
	case err != nil:
		return trust.Invitation{}, err
	case raw == nil:
		return trust.Invitation{}, trust.ErrNoInvitation
	}
	return trust.DecodeInvitation(raw)
}

// invitations lists the invitations that this node has given out.
func invitations(s Storage) (all []trust.Invitation, err error) {
	err = s.Scan(table, []byte(invitationPrefix), func(_, raw []byte) error {
		i, err := trust.DecodeInvitation(raw)
		if err != nil {
			return fmt.Errorf("stored invitation: %w", err)
		}
		all = append(all, i)
		return nil
	})
	return all, err
}
