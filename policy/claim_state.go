package policy

import (
	"maps"
	"strings"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy/sanction"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Claims returns the claims of now.
func (s *State) Claims() *Claims {
	s.claims.shared.Store(true)
	return s.claims
}

// changeClaims replaces one claim by another. Either may be nil.
func (s *State) changeClaims(old, fresh *Claim) {
	if c := s.claims; c.shared.Load() {
		s.claims = &Claims{squares: maps.Clone(c.squares), owners: maps.Clone(c.owners), count: c.count, private: c.private}
	}
	if old != nil {
		s.claims.put(old, false)
	}
	if fresh != nil {
		s.claims.put(fresh, true)
	}
}

// PlayerLabel returns what a player is called: their registered name, else their id.
func (s *State) PlayerLabel(id player.ID) string { return s.nameOf(sanction.Target{Player: id}) }

// labels returns what players are called.
func labels(s *State, of []player.ID) []string {
	all := []string{}
	for _, id := range of {
		all = append(all, s.PlayerLabel(id))
	}
	return all
}

// LabelOf returns what a claim is called: its owner and its name, as commands take them.
func (s *State) LabelOf(c *Claim) string { return s.PlayerLabel(c.Owner) + "/" + c.Name }

// ClaimLine returns a claim as a line of a list.
func (s *State) ClaimLine(c *Claim) notice.Notice {
	var open, private notice.Notice
	if c.Open {
		open = notice.New("all_may_build", "all may build")
	}
	if c.Private {
		private = notice.New("only_members_enter", "only members may enter")
	}
	from, to, _ := strings.Cut(corners(c.Box), " ")
	return notice.New("claim", "{claim}: {from} to {to}[, with {members}][, {open}][, {private}]", s.LabelOf(c), from, to, strings.Join(labels(s, c.Members), ", "), open, private)
}

// ListedClaim is a claim with the names of its players; the id of one who has none.
type ListedClaim struct {
	*Claim
	OwnerName   string   `json:"owner_name"`
	MemberNames []string `json:"member_names"`
}

// ListClaims returns all claims, those of an owner together.
func (s *State) ListClaims() []ListedClaim {
	all := []ListedClaim{}
	s.claims.All(func(c *Claim) {
		all = append(all, ListedClaim{Claim: c, OwnerName: s.PlayerLabel(c.Owner), MemberNames: labels(s, c.Members)})
	})
	return all
}
