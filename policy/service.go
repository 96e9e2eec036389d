package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy/place"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Scopes of services.
const (
	ScopeRead = "read" // list players and regions, read blocks and their history, and be sent events
	ScopeEdit = "edit" // change blocks
	ScopeChat = "chat" // write to the whole world
)

// Scopes are all of them.
var Scopes = []string{ScopeRead, ScopeEdit, ScopeChat}

// MaxServices is the most services of a world.
const MaxServices = 64

// maxServiceRate bounds Service.Rate.
const maxServiceRate = 100_000

// Service is a program that uses the world over HTTP, with a key (docs/adr/0119). Its edits are signed with that key, as
// a player's are, but it never joins, and gives no commands. It is never changed, only replaced.
type Service struct {
	Name   string        `json:"name"` // registered to it
	ID     player.ID     `json:"id"`   // of its key
	Scopes []string      `json:"scopes"`
	Area   *place.Border `json:"area,omitempty"`     // where it may read and change blocks; nil: everywhere
	Rate   int           `json:"rate,omitempty"`     // how many blocks a second it may change at a node; 0: as many as the node grants a service
	Until  int64         `json:"until_ms,omitempty"` // when its key ends, in Unix milliseconds; 0: never
}

// May reports whether a service may do now what a scope is for.
func (v *Service) May(scope string, now time.Time) bool {
	return slices.Contains(v.Scopes, scope) && (v.Until == 0 || now.UnixMilli() < v.Until)
}

// serviceUsage are the arguments of the command service, which String writes and parseService reads.
const serviceUsage = "add NAME ID SCOPE,… [area=X,Z:X,Z] [rate=BLOCKS] [until=MILLISECONDS] | remove NAME"

// String returns the arguments of the command that adds the service.
func (v *Service) String() string {
	text := fmt.Sprintf("add %s %v %s", v.Name, v.ID, strings.Join(v.Scopes, ","))
	if a := v.Area; a != nil {
		text += fmt.Sprintf(" area=%d,%d:%d,%d", a.MinX, a.MinZ, a.MaxX, a.MaxZ)
	}
	if v.Rate != 0 {
		text += fmt.Sprintf(" rate=%d", v.Rate)
	}
	if v.Until != 0 {
		text += fmt.Sprintf(" until=%d", v.Until)
	}
	return text
}

// parseService reads NAME ID SCOPE,… [OPTION=VALUE]….
func parseService(args []string) (*Service, error) {
	if len(args) < 3 {
		return nil, ErrUsage
	}
	v := &Service{Name: args[0], Scopes: strings.Split(args[2], ",")}
	id, err := player.ParseID(args[1])
	if err = errors.Join(err, player.CheckName(v.Name)); err != nil {
		return nil, err
	}
	v.ID = id
	slices.Sort(v.Scopes)
	v.Scopes = slices.Compact(v.Scopes)
	for _, scope := range v.Scopes {
		if !slices.Contains(Scopes, scope) {
			return nil, fmt.Errorf("there is no scope %q: choose of %s", scope, strings.Join(Scopes, ", "))
		}
	}
	for _, arg := range args[3:] {
		option, value, _ := strings.Cut(arg, "=")
		switch option {
		case "area":
			box, err := grid.ParseBox(value)
			if err != nil {
				return nil, err
			}
			v.Area = &place.Border{MinX: box.Min.X, MinZ: box.Min.Z, MaxX: box.Max.X, MaxZ: box.Max.Z}
		case "rate":
			if v.Rate, err = strconv.Atoi(value); err != nil || v.Rate < 1 || v.Rate > maxServiceRate {
				return nil, fmt.Errorf("rate %q: want 1 to %d blocks a second", value, maxServiceRate)
			}
		case "until":
			if v.Until, err = strconv.ParseInt(value, 10, 64); err != nil || v.Until < 1 {
				return nil, ErrUsage
			}
		default:
			return nil, ErrUsage
		}
	}
	return v, nil
}

// service adds or removes a service. One with the name of another takes its place: its key is a new one.
func service(s *State, _ author, args []string, at int64) (func() Effect, error) {
	switch {
	case len(args) == 2 && args[0] == "remove":
		v := s.ServiceNamed(args[1])
		if v == nil {
			return nil, fmt.Errorf("there is no service %s: voxeld service list lists them", args[1])
		}
		return func() Effect {
			s.removeService(v)
			return Effect{Text: notice.Plain(fmt.Sprintf("The key of %s is valid no longer. Its edits are found by its id: %v.", v.Name, v.ID))}
		}, nil
	case len(args) == 0 || args[0] != "add":
		return nil, ErrUsage
	}
	v, err := parseService(args[1:])
	if err != nil {
		return nil, err
	}
	before := s.ServiceNamed(v.Name)
	owner, taken := s.OwnerOf(v.Name)
	m := s.members[v.ID]
	switch {
	case taken && owner != v.ID && before == nil:
		return nil, nameTaken(v.Name)
	case before == nil && len(s.services) >= MaxServices:
		return nil, fmt.Errorf("there are %d services: remove some first", MaxServices)
	case m != nil && !strings.EqualFold(m.Name, v.Name):
		return nil, errors.New("that key is known already, as another player's or service's")
	}
	return func() Effect {
		if before != nil {
			s.removeService(before)
		}
		s.giveName(v.ID, v.Name, at)
		s.members[v.ID].used = true // its name does not expire
		s.services[v.ID] = v
		return Effect{Text: notice.Plain(fmt.Sprintf("%s has a key.", v.Name))}
	}, nil
}

// removeService removes a service, and what its key was good for. Its name is free.
func (s *State) removeService(v *Service) {
	delete(s.services, v.ID)
	delete(s.names, strings.ToLower(v.Name))
	m := s.members[v.ID]
	m.Name, m.used = "", false
	s.roles.assign(m, Role{})
	var joined []*Claim
	s.claims.All(func(c *Claim) {
		if slices.Contains(c.Members, v.ID) {
			joined = append(joined, c)
		}
	})
	for _, c := range joined {
		fresh := *c
		fresh.Members = slices.DeleteFunc(slices.Clone(c.Members), func(id player.ID) bool { return id == v.ID })
		s.changeClaims(c, &fresh)
	}
}

// Service returns the service with the id; nil if there is none.
func (s *State) Service(id player.ID) *Service { return s.services[id] }

// ServiceNamed returns the service with the name, in any case; nil if there is none.
func (s *State) ServiceNamed(name string) *Service {
	id, _ := s.OwnerOf(name)
	return s.services[id]
}

// Services returns all services, by name.
func (s *State) Services() []*Service {
	all := []*Service{}
	for _, v := range s.services {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b *Service) int { return strings.Compare(a.Name, b.Name) })
	return all
}
