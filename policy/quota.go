package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/internal/netaddr"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Quota is what some players together may add to the policy within a day.
type Quota struct {
	Names  int `json:"names"`  // that they register
	Claims int `json:"claims"` // new ones
}

// RangeQuota is the quota of each address of a range.
type RangeQuota struct {
	Range netip.Prefix `json:"range"`
	Quota
}

// Quotas of a new world.
var (
	defaultAddressQuota = Quota{Names: 20, Claims: 20}
	defaultGatewayQuota = Quota{Names: 1000, Claims: 400}
)

const (
	// maxQuota is the highest quota.
	maxQuota = 100_000
	// commandsPerQuota is how many other commands come with each name and each claim of a quota.
	commandsPerQuota = 10
	// MaxQuotaRanges is how many ranges may have a quota of their own.
	MaxQuotaRanges = 256
)

// Kind is what a command takes of a quota.
type Kind int

// The kinds of commands.
const (
	Free       Kind = iota // nothing
	NewName                // a name
	NewClaim               // a claim
	AnyCommand             // a command: all others that players below moderator enter into the catalog's log
	QuotaKinds             // their number
)

// String returns what a kind is called in metrics.
func (k Kind) String() string { return [QuotaKinds]string{"free", "names", "claims", "commands"}[k] }

// Of returns how many commands of a kind the quota has.
func (q Quota) Of(k Kind) int {
	return [QuotaKinds]int{NewName: q.Names, NewClaim: q.Claims, AnyCommand: commandsPerQuota * (q.Names + q.Claims)}[k]
}

// Exceeded returns the error for a command of a kind, of which the players of an address have no more today.
func (q Quota) Exceeded(k Kind) error {
	return notice.New("quota_exceeded", "players of your address have {what} within a day, and that is all they may: go on tomorrow, or ask an operator to raise the quota of your address (set quota)", q.used(k))
}

// GatewayExceeded returns the error for a command of a kind, of which the players of a gateway have no more today.
func (q Quota) GatewayExceeded(k Kind) error {
	return notice.New("gateway_quota", "players of your node have {what} within a day, and that is all they may: go on tomorrow, use another node, or ask an operator to raise the quota of gateways (set quota gateway)", q.used(k))
}

// used returns what players have done who have used up the quota of a kind.
func (q Quota) used(k Kind) notice.Notice {
	switch n := q.Of(k); k {
	case NewName:
		return notice.New("quota_of_names", "registered {count} {count:name|names}", n)
	case NewClaim:
		return notice.New("quota_of_claims", "claimed land {count} {count:time|times}", n)
	default:
		return notice.New("quota_of_commands", "given {count} commands", n)
	}
}

// QuotaKind returns what a command takes of the quotas if a player with the role gives it.
func QuotaKind(text string, role Role) Kind {
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	c, known := find(commands, name)
	switch {
	case !known || c.Local || role.AtLeast(Moderator):
		return Free
	case c.quota != Free:
		return c.quota
	}
	return AnyCommand
}

// QuotaOf returns the quota of an address: that of the smallest range which contains it, else the one for all.
func (s Settings) QuotaOf(address netip.Addr) Quota {
	q, bits := s.AddressQuota, -1
	for _, r := range s.RangeQuotas {
		if r.Range.Bits() > bits && r.Range.Contains(address.Unmap().WithZone("")) {
			q, bits = r.Quota, r.Range.Bits()
		}
	}
	return q
}

// setQuota sets what an address, or a gateway, may add to the policy: all NAMES CLAIMS, gateway NAMES CLAIMS, RANGE
// NAMES CLAIMS or RANGE default.
func setQuota(s *State, _ author, args []string) (func() Effect, error) {
	if len(args) < 2 {
		return nil, ErrUsage
	}
	var q Quota
	clear := len(args) == 2 && args[1] == "default"
	if !clear {
		var ok bool
		if q, ok = parseQuota(args[1:]); !ok {
			return nil, notice.New("quota_bounds", "write how many names, and how many claims, 0 to {most}", maxQuota)
		}
	}
	switch args[0] {
	case "all":
		if clear {
			q = defaultAddressQuota
		}
		return func() Effect {
			s.settings.AddressQuota = q
			return Effect{Text: notice.New("quota_all", "The players of an address may register {names} {names:name|names} and {claims} {claims:claim|claims} a day.", q.Names, q.Claims)}
		}, nil
	case "gateway":
		if clear {
			q = defaultGatewayQuota
		}
		return func() Effect {
			s.settings.GatewayQuota = q
			return Effect{Text: notice.New("quota_gateway", "The players of a gateway may register {names} {names:name|names} and {claims} {claims:claim|claims} a day.", q.Names, q.Claims)}
		}, nil
	}
	of, err := parseRange(args[0])
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(s.settings.RangeQuotas), func(r RangeQuota) bool { return r.Range == of })
	if !clear && len(others) >= MaxQuotaRanges {
		return nil, notice.New("many_quotas", "there are {count} ranges with a quota of their own: set one of them to default first", MaxQuotaRanges)
	}
	return func() Effect {
		s.settings.RangeQuotas = others
		if clear {
			return Effect{Text: notice.New("quota_default", "The quota of {range} is that of all addresses.", of)}
		}
		s.settings.RangeQuotas = append(others, RangeQuota{of, q})
		return Effect{Text: notice.New("quota_range", "The players of each address in {range} may register {names} {names:name|names} and {claims} {claims:claim|claims} a day.", of, q.Names, q.Claims)}
	}, nil
}

// parseRange reads an address, or a range of addresses.
func parseRange(text string) (netip.Prefix, error) {
	of, ok := netaddr.Parse(text)
	if !ok {
		return netip.Prefix{}, notice.New("not_a_range", "\"{text}\" is not all, gateway, an address or a range such as 203.0.113.0/24", text)
	}
	return of, nil
}

// parseQuota reads NAMES and CLAIMS.
func parseQuota(args []string) (q Quota, ok bool) {
	if len(args) != 2 {
		return q, false
	}
	for i, to := range []*int{&q.Names, &q.Claims} {
		n, err := strconv.ParseUint(args[i], 10, 32)
		if err != nil || n > maxQuota {
			return q, false
		}
		*to = int(n)
	}
	return q, true
}

// quotaCommands returns the operator's commands that set the same quotas in another policy.
func quotaCommands(s Settings) (all []string) {
	add := func(of string, q Quota) {
		all = append(all, fmt.Sprintf("set quota %s %d %d", of, q.Names, q.Claims))
	}
	if s.AddressQuota != defaultAddressQuota {
		add("all", s.AddressQuota)
	}
	if s.GatewayQuota != defaultGatewayQuota {
		add("gateway", s.GatewayQuota)
	}
	for _, r := range s.RangeQuotas {
		add(r.Range.String(), r.Quota)
	}
	return all
}
