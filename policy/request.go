package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/player"
)

// This file holds the names and claims that wait for a moderator, if the world's settings want that.

const (
	// MaxRequests is how many names and claims may wait for a moderator.
	MaxRequests = 1000
	// maxRequestsOfOne is how many of them may be of one player.
	maxRequestsOfOne = 5
)

// Request is a name or a claim that waits for a moderator. It never changes.
type Request struct {
	ID     int       `json:"id"` // what people call it: 1, 2 and so on
	Player player.ID `json:"player"`
	Name   string    `json:"name"`            // under which the player asks, and which they want if Claim is nil
	Claim  *Claim    `json:"claim,omitempty"` // that they want
	At     int64     `json:"at"`              // Unix milliseconds
}

// What returns what the player wants.
func (r Request) What() string {
	if r.Claim == nil {
		return "the name " + r.Name
	}
	return fmt.Sprintf("the claim %s, %s", r.Claim.Name, strings.Replace(corners(r.Claim.Box), " ", " to ", 1))
}

// String returns the request as a line of a list.
func (r Request) String() string { return fmt.Sprintf("%d: %s wants %s", r.ID, r.Name, r.What()) }

// Requests returns all requests in the order of their numbers. The elements must not be changed.
func (s *State) Requests() []Request { return s.requests }

// RequestsOf returns the requests of a player.
func (s *State) RequestsOf(id player.ID) []Request {
	return kept(s.requests, func(r Request) bool { return r.Player == id })
}

// Has reports whether the player of a request has what they have requested.
func (s *State) Has(r Request) bool {
	if r.Claim == nil {
		return s.NameOf(r.Player) == r.Name
	}
	c := s.claims.named(r.Player, r.Claim.Name)
	return c != nil && c.Box == r.Claim.Box
}

// kept returns the requests that are to be kept, in a new list: others may be reading the one of before.
func kept(all []Request, keep func(Request) bool) (left []Request) {
	for _, r := range all {
		if keep(r) {
			left = append(left, r)
		}
	}
	return left
}

// request adds a request of a player.
func (s *State) request(by author, at int64, claim *Claim) (func() Effect, error) {
	own := s.RequestsOf(by.id)
	if i := slices.IndexFunc(own, func(r Request) bool { return r.Claim == nil }); i >= 0 && claim == nil {
		return nil, fmt.Errorf("your request for %s waits for a moderator: its number is %d", own[i].What(), own[i].ID)
	}
	if len(own) >= maxRequestsOfOne {
		return nil, fmt.Errorf("%d requests of yours wait for a moderator: wait until they are answered", len(own))
	}
	if len(s.requests) >= MaxRequests {
		return nil, fmt.Errorf("%d requests wait for a moderator, and there is no room for more: ask one to answer them (/requests)", MaxRequests)
	}
	r := Request{ID: s.requested + 1, Player: by.id, Name: by.name, Claim: claim, At: at}
	return func() Effect {
		s.requested = r.ID
		s.requests = append(slices.Clip(s.requests), r)
		return Effect{Text: fmt.Sprintf("Your request for %s waits for a moderator. Its number is %d.", r.What(), r.ID)}
	}, nil
}

// requestOf returns the request that a command names.
func (s *State) requestOf(args []string) (r Request, err error) {
	if len(args) == 0 {
		return r, errUsage
	}
	id, err := strconv.Atoi(args[0])
	i := slices.IndexFunc(s.requests, func(r Request) bool { return r.ID == id })
	if err != nil || i < 0 {
		return r, fmt.Errorf("there is no request %s: /requests lists them", args[0])
	}
	return s.requests[i], nil
}

// approve gives a player what they have requested: NUMBER.
func approve(s *State, by author, args []string, at int64) (func() Effect, error) {
	r, err := s.requestOf(args)
	if err != nil {
		return nil, err
	}
	if len(args) > 1 {
		return nil, errUsage
	}
	var give func() string
	if r.Claim == nil {
		owner, taken := s.OwnerOf(r.Name)
		switch {
		case taken && owner != r.Player:
			err = fmt.Errorf("the name %s is registered to another player", r.Name)
		case len(s.names) >= MaxNames:
			err = fmt.Errorf("this world has %d registered names, and takes no more", MaxNames)
		}
		give = func() string {
			s.giveName(r.Player, r.Name, max(at, by.entered))
			return fmt.Sprintf("The name %s is theirs.", r.Name)
		}
	} else {
		claim := *r.Claim
		claim.At = at
		give = func() string {
			claim.Number = s.nextNumber(at)
			s.changeClaims(nil, &claim)
			return fmt.Sprintf("The claim %s is theirs.", s.LabelOf(&claim))
		}
		err = checkLimits(s, r.Player, claim.Box)
		if err == nil {
			err = addable(s, &claim)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("request %d cannot be approved: %w; deny it", r.ID, err)
	}
	return func() Effect {
		s.requests = kept(s.requests, func(other Request) bool { return other.ID != r.ID })
		return Effect{Text: fmt.Sprintf("Request %d of %s is approved. %s", r.ID, r.Name, give())}
	}, nil
}

// deny drops a request: NUMBER.
func deny(s *State, _ author, args []string, _ int64) (func() Effect, error) {
	r, err := s.requestOf(args)
	if err == nil && len(args) > 1 {
		err = errUsage
	}
	return func() Effect {
		s.requests = kept(s.requests, func(other Request) bool { return other.ID != r.ID })
		return Effect{Text: fmt.Sprintf("Request %d of %s for %s is denied.", r.ID, r.Name, r.What())}
	}, err
}

// setApproval sets whether new names, or claims, wait for a moderator: names|claims on|off.
func setApproval(s *State, args []string) (func() Effect, error) {
	if len(args) != 2 || args[1] != "on" && args[1] != "off" {
		return nil, errUsage
	}
	of := map[string]*bool{"names": &s.settings.ApproveNames, "claims": &s.settings.ApproveClaims}[args[0]]
	if of == nil {
		return nil, errUsage
	}
	return func() Effect {
		*of = args[1] == "on"
		if *of {
			return Effect{Text: fmt.Sprintf("New %s wait for a moderator.", args[0])}
		}
		return Effect{Text: fmt.Sprintf("New %s wait for nobody. Those that wait go on waiting: /requests lists them.", args[0])}
	}, nil
}
