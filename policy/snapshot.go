package policy

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy/sanction"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file writes a State as bytes, which are equal for equal states, and reads it: the commands that have made it can then be dropped
// (docs/adr/0095).

const (
	// snapshotPart is the size from which on a part of a snapshot takes no more records.
	snapshotPart = 40 << 10
	// compactEvery is after how many commands operators' nodes compact them.
	compactEvery = 10_000
)

// Snapshot is a State in parts, each of which has whole records.
type Snapshot [][]byte

// Hashes returns the hashes of all parts, one after the other.
func (s Snapshot) Hashes() (all []byte) {
	for _, part := range s {
		sum := sha256.Sum256(part)
		all = append(all, sum[:]...)
	}
	return all
}

// Hash returns the hash that an operator signs: of Hashes.
func (s Snapshot) Hash() string { return HashOf(s.Hashes()) }

// HashOf returns the Hash of a snapshot whose parts have these hashes.
func HashOf(hashes []byte) string {
	sum := sha256.Sum256(hashes)
	return hex.EncodeToString(sum[:])
}

// The records of a snapshot. Exactly one field of snapshotRecord is set; the head comes first. All nodes must find the same bytes for the same state:
// a field that is new in these types, or in those of the state that they have, is left out while it is zero (omitempty).
type snapshotRecord struct {
	Head     *snapshotHead     `cbor:"1,keyasint,omitempty"`
	Role     *snapshotRole     `cbor:"2,keyasint,omitempty"`
	Member   *snapshotMember   `cbor:"3,keyasint,omitempty"`
	Claim    *Claim            `cbor:"4,keyasint,omitempty"`
	Sanction *snapshotSanction `cbor:"5,keyasint,omitempty"`
	Rollback *snapshotRollback `cbor:"6,keyasint,omitempty"`
	Request  *Request          `cbor:"7,keyasint,omitempty"`
	Node     *snapshotCount    `cbor:"8,keyasint,omitempty"`
	Claiming *snapshotCount    `cbor:"9,keyasint,omitempty"`
	Undoing  *snapshotCount    `cbor:"10,keyasint,omitempty"`
	Warp     *snapshotWarp     `cbor:"11,keyasint,omitempty"`
}

type snapshotHead struct {
	Charter     uint64         `cbor:"1,keyasint"`
	Settings    Settings       `cbor:"2,keyasint"` // without roles
	Players     string         `cbor:"3,keyasint"`
	Guests      string         `cbor:"4,keyasint"`
	Edits       map[string]int `cbor:"5,keyasint"`
	Tokens      []string       `cbor:"6,keyasint"`
	Requested   int            `cbor:"7,keyasint"`
	Expiring    int64          `cbor:"8,keyasint"`
	Forgotten   uint64         `cbor:"9,keyasint"`
	Compacted   [2]uint64      `cbor:"10,keyasint"`
	ClaimingDay int64          `cbor:"11,keyasint"`
	UndoingDay  int64          `cbor:"12,keyasint"`
	// ClaimingActs and UndoingActs are the tallies' commands in all.
	ClaimingActs int   `cbor:"13,keyasint"`
	UndoingActs  int   `cbor:"14,keyasint"`
	Numbered     int64 `cbor:"15,keyasint"`
}

// snapshotRole is a Definition. The order follows from the base and the rank.
type snapshotRole struct {
	Name   string       `cbor:"1,keyasint"`
	Base   string       `cbor:"2,keyasint"`
	Rank   int          `cbor:"3,keyasint"`
	Build  bool         `cbor:"4,keyasint"`
	Edits  int          `cbor:"5,keyasint"`
	Claims *ClaimLimits `cbor:"6,keyasint"`
	Allow  []string     `cbor:"7,keyasint"`
	Deny   []string     `cbor:"8,keyasint"`
	Order  int          `cbor:"9,keyasint"`
}

type snapshotMember struct {
	Player player.ID `cbor:"1,keyasint"`
	Name   string    `cbor:"2,keyasint"`
	Role   string    `cbor:"3,keyasint"` // empty: none
	Seq    uint64    `cbor:"4,keyasint"`
	Named  int64     `cbor:"5,keyasint"`
	Used   bool      `cbor:"6,keyasint"`
}

type snapshotSanction struct {
	Player  player.ID         `cbor:"1,keyasint"`
	Name    string            `cbor:"2,keyasint"`
	Network netip.Prefix      `cbor:"3,keyasint"`
	Of      sanction.Sanction `cbor:"4,keyasint"`
}

type snapshotRollback struct {
	Rollback  Rollback  `cbor:"1,keyasint"`
	ByID      player.ID `cbor:"2,keyasint"`
	ByName    string    `cbor:"3,keyasint"`
	ByRole    string    `cbor:"4,keyasint"`
	ByOrder   int       `cbor:"5,keyasint"` // of the role, which may be deleted since
	ByEntered int64     `cbor:"6,keyasint"`
}

// snapshotCount is a number that belongs to a key.
type snapshotCount struct {
	Of player.ID `cbor:"1,keyasint"`
	N  uint64    `cbor:"2,keyasint"`
}

type snapshotWarp struct {
	Name string   `cbor:"1,keyasint"`
	At   grid.Pos `cbor:"2,keyasint"`
}

// snapshotDecoding bounds what is read, as wire.CBORDecoding does; a head has more maps.
var snapshotDecoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 12, MaxArrayElements: nodemsg.MaxPolicyPart, MaxMapPairs: 1024,
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden, UTF8: cbor.UTF8RejectInvalid, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// byID returns the keys of a map in order.
func byID[V any](m map[player.ID]V) []player.ID {
	return slices.SortedFunc(maps.Keys(m), func(a, b player.ID) int { return bytes.Compare(a[:], b[:]) })
}

// Snapshot returns the state as bytes.
func (s *State) Snapshot() (parts Snapshot) {
	var part bytes.Buffer
	add := func(r snapshotRecord) {
		if err := wire.CBOREncoding.MarshalToBuffer(r, &part); err != nil {
			panic(err) // all of these types can be encoded
		}
		if part.Len() >= snapshotPart {
			parts = append(parts, bytes.Clone(part.Bytes()))
			part.Reset()
		}
	}
	head := snapshotHead{
		Charter: s.charter, Settings: s.settings, Players: s.settings.Players.String(), Guests: s.settings.Guests.String(),
		Edits: make(map[string]int), Tokens: slices.Sorted(maps.Keys(s.tokens)), Requested: s.requested, Expiring: s.expiring,
		Forgotten: s.forgotten, Compacted: s.compacted, ClaimingDay: s.claiming.day, UndoingDay: s.undoing.day,
		ClaimingActs: s.claiming.acts, UndoingActs: s.undoing.acts, Numbered: s.numbered,
	}
	head.Settings.Players, head.Settings.Guests, head.Settings.Edits = Role{}, Role{}, nil
	for role, n := range s.settings.Edits {
		head.Edits[role.String()] = n
	}
	add(snapshotRecord{Head: &head})
	for _, name := range slices.Sorted(maps.Keys(s.roles.custom)) {
		d := s.roles.custom[name].of
		add(snapshotRecord{Role: &snapshotRole{d.Name, d.Base.String(), d.Rank, d.Build, d.Edits, d.Claims, d.Allow, d.Deny, d.order}})
	}
	for _, id := range byID(s.members) {
		m := s.members[id]
		add(snapshotRecord{Member: &snapshotMember{id, m.Name, m.Role.String(), m.seq, m.named, m.used}})
	}
	s.claims.All(func(c *Claim) { add(snapshotRecord{Claim: c}) })
	for _, it := range s.sanctions.All() {
		add(snapshotRecord{Sanction: &snapshotSanction{it.To.Player, it.To.Name, it.To.Network, it.Sanction}})
	}
	for i := range s.rollbacks {
		r := &s.rollbacks[i]
		add(snapshotRecord{Rollback: &snapshotRollback{*r, r.by.id, r.by.name, r.by.role.String(), r.by.role.order(), r.by.entered}})
	}
	for i := range s.requests {
		add(snapshotRecord{Request: &s.requests[i]})
	}
	for _, id := range byID(s.nodes) {
		add(snapshotRecord{Node: &snapshotCount{id, s.nodes[id]}})
	}
	for _, id := range byID(s.claiming.changes) {
		add(snapshotRecord{Claiming: &snapshotCount{id, uint64(s.claiming.changes[id])}}) //nolint:gosec // not negative
	}
	for _, id := range byID(s.undoing.changes) {
		add(snapshotRecord{Undoing: &snapshotCount{id, uint64(s.undoing.changes[id])}}) //nolint:gosec // not negative
	}
	for _, name := range s.warps.Names() {
		add(snapshotRecord{Warp: &snapshotWarp{name, s.warps[name]}})
	}
	if part.Len() > 0 {
		parts = append(parts, part.Bytes())
	}
	return parts
}

// Restore returns the state of a snapshot, after so many acts.
func Restore(snapshot Snapshot, acts uint64) (*State, error) {
	s := New()
	s.acts = acts
	if len(snapshot) > nodemsg.MaxPolicyParts {
		return nil, fmt.Errorf("a snapshot of the policy has %d parts: at most %d are allowed", len(snapshot), nodemsg.MaxPolicyParts)
	}
	for i, part := range snapshot {
		if len(part) > nodemsg.MaxPolicyPart {
			return nil, fmt.Errorf("part %d of a snapshot of the policy has %d bytes", i, len(part))
		}
		for len(part) > 0 {
			var r snapshotRecord
			rest, err := snapshotDecoding.UnmarshalFirst(part, &r)
			if err == nil {
				err = s.load(r)
			}
			if err != nil {
				return nil, fmt.Errorf("read part %d of a snapshot of the policy: %w", i, err)
			}
			part = rest
		}
	}
	if snapshot.Hash() != s.Snapshot().Hash() {
		return nil, errors.New("a snapshot of the policy has records that are not in order, or not known here")
	}
	return s, nil
}

// load takes over a record.
func (s *State) load(r snapshotRecord) error {
	switch {
	case r.Head != nil:
		return s.loadHead(*r.Head)
	case r.Role != nil:
		base, err := s.roles.named(r.Role.Base)
		d := &Definition{Name: r.Role.Name, Base: base, Rank: r.Role.Rank, Build: r.Role.Build, Edits: r.Role.Edits, Claims: r.Role.Claims, Allow: r.Role.Allow, Deny: r.Role.Deny, order: r.Role.Order}
		s.roles.custom[d.Name] = Role{d}
		return errors.Join(err, s.resolveRoles())
	case r.Member != nil:
		return s.loadMember(*r.Member)
	case r.Claim != nil:
		if x, y, z := r.Claim.Sides(); min(x, y, z) < MinClaimSide || max(x, z) > MaxClaimSide || s.claims.Count() >= MaxClaims {
			return errors.New("a claim is too large, or one too many")
		}
		s.changeClaims(nil, r.Claim)
	case r.Sanction != nil:
		it := r.Sanction
		s.sanctions.Put(sanction.Target{Player: it.Player, Name: it.Name, Network: it.Network}, it.Of)
	case r.Rollback != nil:
		it := r.Rollback
		fresh := it.Rollback
		fresh.by = author{id: it.ByID, name: it.ByName, role: Role{&Definition{Name: it.ByRole, order: it.ByOrder}}, entered: it.ByEntered}
		s.rollbacks = append(s.rollbacks, fresh)
	case r.Request != nil:
		s.requests = append(s.requests, *r.Request)
	case r.Node != nil:
		s.nodes[r.Node.Of] = r.Node.N
	case r.Claiming != nil:
		s.claiming.load(*r.Claiming)
	case r.Undoing != nil:
		s.undoing.load(*r.Undoing)
	case r.Warp != nil:
		s.warps[r.Warp.Name] = r.Warp.At
	default:
		return errors.New("a record is empty")
	}
	return nil
}

func (t *tally) load(n snapshotCount) {
	if t.changes == nil {
		t.changes = make(map[player.ID]int)
	}
	t.changes[n.Of] = int(n.N) //nolint:gosec // it was an int
}

func (s *State) loadMember(r snapshotMember) error {
	m := s.member(r.Player)
	m.Name, m.seq, m.named, m.used = r.Name, r.Seq, r.Named, r.Used
	if m.Name != "" {
		s.names[strings.ToLower(m.Name)] = m.Player
	}
	if r.Role == "" {
		return nil
	}
	role, err := s.roles.named(r.Role)
	s.roles.assign(m, role)
	return err
}

func (s *State) loadHead(h snapshotHead) error {
	s.charter, s.settings, s.requested, s.expiring, s.forgotten, s.compacted, s.numbered = h.Charter, h.Settings, h.Requested, h.Expiring, h.Forgotten, h.Compacted, h.Numbered
	s.claiming.day, s.claiming.acts, s.undoing.day, s.undoing.acts = h.ClaimingDay, h.ClaimingActs, h.UndoingDay, h.UndoingActs
	for _, token := range h.Tokens {
		s.tokens[token] = true
	}
	s.settings.Players, s.settings.Guests = Role{&Definition{Name: h.Players}}, Role{&Definition{Name: h.Guests}}
	for name, n := range h.Edits {
		role, err := s.roles.named(name)
		if err != nil {
			return err
		}
		if s.settings.Edits == nil {
			s.settings.Edits = make(map[Role]int)
		}
		s.settings.Edits[role] = n
	}
	return s.resolveRoles()
}

// resolveRoles replaces the roles of players and guests, of which only the name is known, once they are defined.
func (s *State) resolveRoles() error {
	for _, of := range []*Role{&s.settings.Players, &s.settings.Guests} {
		if role, err := s.roles.named(of.String()); err == nil {
			*of = role
		}
	}
	return nil
}

// Compacted returns how many acts came before the last command that has compacted them, and before the one before it; 0 if there is none.
func (s *State) Compacted() (last, before uint64) { return s.compacted[1], s.compacted[0] }

// CompactCommand is the command of an operator that says what the state is. Policysync completes it, by CompactText.
const CompactCommand = "compact"

// CompactText returns the text of the command that says what the state is now.
func (s *State) CompactText() string {
	return fmt.Sprintf("%s %d %s", CompactCommand, s.acts, s.Snapshot().Hash())
}

// Compacts returns what the text of an act that compacts the acts before it says: how many they are, and the hash of the state after them. The hash is
// empty if the act does nothing of the kind.
func Compacts(text string) (acts uint64, hash string) {
	words := strings.Fields(text)
	if len(words) != 3 || !strings.EqualFold(words[0], CompactCommand) {
		return 0, ""
	}
	acts, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil {
		return 0, ""
	}
	return acts, words[2]
}

// ErrOtherState is returned for a command that says, of as many acts, that the state is another one.
var ErrOtherState = errors.New("the node that has signed the policy has another one than this node: one of them does not understand all commands, or its storage is damaged")

// compact says what the state is: ACTS HASH. Who has come to the same state by all acts before, may drop them.
func compact(s *State, by author, args []string, _ int64) (func() Effect, error) {
	before := s.acts
	if !by.entering {
		before-- // the act itself
	}
	acts, hash := Compacts(CompactCommand + " " + strings.Join(args, " "))
	switch {
	case hash == "":
		return nil, errUsage
	case acts != before:
		return nil, errors.New("other commands came between: try again")
	case hash != s.Snapshot().Hash():
		return nil, ErrOtherState
	}
	return func() Effect {
		s.compacted = [2]uint64{s.compacted[1], before}
		s.claiming.acts, s.undoing.acts = 0, 0
		return Effect{Text: fmt.Sprintf("%d commands are compacted.", before)}
	}, nil
}

// Uncompacted returns how many acts there were since the last that has compacted them.
func (s *State) Uncompacted() uint64 { return s.acts - min(s.acts, s.compacted[1]) }

// CompactDue reports whether there were enough acts since the last that has compacted them: so many, 0 for the default.
func (s *State) CompactDue(every uint64) bool { return s.Uncompacted() >= cmp.Or(every, compactEvery) }
