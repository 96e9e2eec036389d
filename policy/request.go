package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
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
func (r Request) What() notice.Notice {
	if r.Claim == nil {
		return notice.New("a_name", "the name {name}", r.Name)
	}
	from, to, _ := strings.Cut(corners(r.Claim.Box), " ")
	return notice.New("a_claim", "the claim {claim}, {from} to {to}", r.Claim.Name, from, to)
}

// Line returns the request as a line of a list.
func (r Request) Line() notice.Notice {
	return notice.New("request", "{id}: {name} wants {what}", r.ID, r.Name, r.What())
}

// waiting returns the answer to a player whose request waits for a moderator.
func waiting(r Request) notice.Notice {
	return notice.New("request_waits", "Your request for {what} waits for a moderator. Its number is {id}.", r.What(), r.ID)
}

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
		return nil, waiting(own[i])
	}
	if len(own) >= maxRequestsOfOne {
		return nil, notice.New("many_requests_yours", "{count} requests of yours wait for a moderator: wait until they are answered", len(own))
	}
	if len(s.requests) >= MaxRequests {
		return nil, notice.New("requests_full", "{count} requests wait for a moderator, and there is no room for more: ask one to answer them (/requests)", MaxRequests)
	}
	r := Request{ID: s.requested + 1, Player: by.id, Name: by.name, Claim: claim, At: at}
	return func() Effect {
		s.requested = r.ID
		s.requests = append(slices.Clip(s.requests), r)
		return Effect{Text: waiting(r)}
	}, nil
}

// requestOf returns the request that a command names.
func (s *State) requestOf(args []string) (r Request, err error) {
	if len(args) == 0 {
		return r, ErrUsage
	}
	id, err := strconv.Atoi(args[0])
	i := slices.IndexFunc(s.requests, func(r Request) bool { return r.ID == id })
	if err != nil || i < 0 {
		return r, notice.New("no_request", "there is no request {id}: /requests lists them", args[0])
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
		return nil, ErrUsage
	}
	var give func() notice.Notice
	if r.Claim == nil {
		owner, taken := s.OwnerOf(r.Name)
		switch {
		case taken && owner != r.Player:
			err = nameTaken(r.Name)
		case len(s.names) >= MaxNames:
			err = errNamesFull
		}
		give = func() notice.Notice {
			s.giveName(r.Player, r.Name, max(at, by.entered))
			return notice.New("name_theirs", "The name {name} is theirs.", r.Name)
		}
	} else {
		claim := *r.Claim
		claim.At = at
		give = func() notice.Notice {
			claim.Number = s.nextNumber(at)
			s.changeClaims(nil, &claim)
			return notice.New("claim_theirs", "The claim {claim} is theirs.", s.LabelOf(&claim))
		}
		err = checkLimits(s, r.Player, claim.Box)
		if err == nil {
			err = addable(s, &claim)
		}
	}
	if err != nil {
		return nil, notice.New("request_refused", "request {id} cannot be approved: {why}; deny it", r.ID, wire.NoticeOf(err))
	}
	return func() Effect {
		s.requests = kept(s.requests, func(other Request) bool { return other.ID != r.ID })
		return Effect{Text: notice.New("approved", "Request {id} of {name} is approved. {done}", r.ID, r.Name, give())}
	}, nil
}

// deny drops a request: NUMBER.
func deny(s *State, _ author, args []string, _ int64) (func() Effect, error) {
	r, err := s.requestOf(args)
	if err == nil && len(args) > 1 {
		err = ErrUsage
	}
	return func() Effect {
		s.requests = kept(s.requests, func(other Request) bool { return other.ID != r.ID })
		return Effect{Text: notice.New("denied", "Request {id} of {name} for {what} is denied.", r.ID, r.Name, r.What())}
	}, err
}

// setApproval sets whether new names, or claims, wait for a moderator: names|claims on|off.
func setApproval(s *State, _ author, args []string) (func() Effect, error) {
	if len(args) != 2 || args[1] != "on" && args[1] != "off" {
		return nil, ErrUsage
	}
	of := map[string]*bool{"names": &s.settings.ApproveNames, "claims": &s.settings.ApproveClaims}[args[0]]
	if of == nil {
		return nil, ErrUsage
	}
	what := namesWord
	if args[0] == "claims" {
		what = claimsWord
	}
	return func() Effect {
		*of = args[1] == "on"
		if *of {
			return Effect{Text: notice.New("approval_on", "New {what} wait for a moderator.", what)}
		}
		return Effect{Text: notice.New("approval_off", "New {what} wait for nobody. Those that wait go on waiting: /requests lists them.", what)}
	}, nil
}
