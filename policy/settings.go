package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy/place"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Settings are those of the world.
type Settings struct {
	Players Role   `json:"players"` // the role of players without one of their own
	Guests  Role   `json:"guests"`
	Message string `json:"message"` // of the day

	// Claims and ClaimArea are how many claims a builder may have, and how many columns of blocks all of theirs
	// together. Moderators and above may have more.
	Claims    int   `json:"claims"`
	ClaimArea int64 `json:"claim_area"`

	// AddressQuota is the quota of an address (of IPv6 a /64) on each gateway, RangeQuotas those of addresses that have
	// another one: an operator has raised them for a school behind one address, say. GatewayQuota is that of all
	// players of a gateway below moderator. None is changed in place.
	AddressQuota Quota        `json:"address_quota"`
	RangeQuotas  []RangeQuota `json:"range_quotas,omitempty"`
	GatewayQuota Quota        `json:"gateway_quota"`

	Expiry        int64 `json:"expiry_ms"`                // how long names and claims are kept that are not used; 0: for good
	ApproveNames  bool  `json:"approve_names,omitempty"`  // new names wait for a moderator
	ApproveClaims bool  `json:"approve_claims,omitempty"` // new claims do

	Spawn      *grid.Pos     `json:"spawn,omitempty"`        // where new players start; nil: where the world was created
	Border     *place.Border `json:"border,omitempty"`       // nil: none
	NoOriginal bool          `json:"no_original,omitempty"`  // VoxelPopuli's own clients may not play
	FloodBan   int64         `json:"flood_ban_ms,omitempty"` // for how long who floods the chat may not join a node; 0: not at all
	// Edits has the number of blocks a second that a player of the role may change. Others may change as many as their
	// node grants. It is never changed, only replaced.
	Edits map[Role]int `json:"edits,omitempty"`
	// Bulk has how many blocks a player of the role may change by bulk edits, where it is not defaultBulk. It is never
	// changed, only replaced.
	Bulk map[Role]BulkLimits `json:"bulk,omitempty"`
	// Textures is the hash of the texture pack that pages show (mod.Hash); empty for none.
	Textures string `json:"textures,omitempty"`
}

// BulkLimits is how many blocks a player may change by bulk edits: in one operation of the page, and in an hour. None
// are allowed if it is zero.
type BulkLimits struct {
	AtOnce int `json:"at_once"`
	Hour   int `json:"hour"`
}

const (
	// minBulk is the least that a role may change at once, unless nothing: one message.
	minBulk = nodemsg.MaxBulkBlocks
	// maxBulk is the most that a role may change at once, or in an hour.
	maxBulk = 1 << 24
)

// defaultBulk is what moderators and above may change by bulk edits, if nothing is set. Others may change nothing.
var defaultBulk = BulkLimits{AtOnce: 1 << 16, Hour: 1 << 18}

// BulkOf returns what a player of a role may change by bulk edits.
func (s Settings) BulkOf(r Role) BulkLimits {
	if r.of != nil && r.of.Bulk != nil {
		return *r.of.Bulk
	}
	if set, ok := s.Bulk[r.base()]; ok {
		return set
	}
	if r.AtLeast(Moderator) {
		return defaultBulk
	}
	return BulkLimits{}
}

// parseBulk reads AT-ONCE and HOUR, or off.
func parseBulk(args []string) (b BulkLimits, ok bool) {
	if len(args) == 1 && args[0] == "off" {
		return b, true
	}
	if len(args) != 2 {
		return b, false
	}
	atOnce, err := strconv.Atoi(args[0])
	hour, errHour := strconv.Atoi(args[1])
	ok = errors.Join(err, errHour) == nil && atOnce >= minBulk && hour >= atOnce && hour <= maxBulk
	return BulkLimits{AtOnce: atOnce, Hour: hour}, ok
}

// args returns what parseBulk reads, with a separator.
func (b BulkLimits) args(separator string) string {
	if b == (BulkLimits{}) {
		return "off"
	}
	return fmt.Sprintf("%d%s%d", b.AtOnce, separator, b.Hour)
}

// setBulk sets what a role may change by bulk edits: ROLE AT-ONCE HOUR, ROLE off or ROLE default.
func setBulk(s *State, _ author, args []string) (func() Effect, error) {
	if len(args) < 2 {
		return nil, ErrUsage
	}
	role, err := s.roles.named(args[0])
	if err != nil {
		return nil, err
	}
	if role.custom() {
		return nil, notice.New("own_bulk", "the role {role} is defined by /role create, with bulk=BLOCKS,HOUR", role)
	}
	limits, ok := parseBulk(args[1:])
	reset := len(args) == 2 && args[1] == "default"
	if !ok && !reset {
		return nil, notice.New("bulk_bounds", "write how many blocks at once, at least {least}, and how many in an hour, at most {most}, or off, or default", minBulk, maxBulk)
	}
	return func() Effect {
		bulk := maps.Clone(s.settings.Bulk)
		if bulk == nil {
			bulk = make(map[Role]BulkLimits)
		}
		if bulk[role] = limits; reset {
			delete(bulk, role)
		}
		s.settings.Bulk = bulk
		now := s.settings.BulkOf(role)
		if now == (BulkLimits{}) {
			return Effect{Text: notice.New("bulk_off", "The role {role} may change nothing by bulk edits.", role)}
		}
		return Effect{Text: notice.New("bulk_set", "The role {role} may change by bulk edits: {once} blocks at once, {hour} in an hour.", role, now.AtOnce, now.Hour)}
	}, nil
}

// EditsOf returns how many blocks a second a player of a role may change; 0: as many as their node grants.
func (s Settings) EditsOf(r Role) int {
	if r.of != nil && r.of.Edits != 0 {
		return r.of.Edits
	}
	return s.Edits[r.base()]
}

const (
	// maxEdits is the most blocks a second that a role may change.
	maxEdits = 1000
	// MaxWarps is the most warps of a world.
	MaxWarps = 256
	// maxFloodBan is the longest ban of who floods the chat.
	maxFloodBan = 24 * time.Hour
)

// changes are the settings that /set changes, beside roles and the message.
var changes = map[string]struct {
	usage string
	run   func(s *State, by author, args []string) (func() Effect, error)
}{
	"border":   {"RADIUS | X,Z X,Z | off", setBorder},
	"original": {"on | off", setOriginal},
	"edits":    {"ROLE COUNT | ROLE default", setEdits},
	"bulk":     {"ROLE BLOCKS HOUR | ROLE off | ROLE default", setBulk},
	"floodban": {"TIME | off", setFloodBan},
	"claims":   {"COUNT AREA", setClaims},
	"approval": {"names|claims on|off", setApproval},
	"expiry":   {"TIME | off", setExpiry},
	"textures": {"HASH | off", setTextures},
	"quota":    {"all|gateway|RANGE NAMES CLAIMS | all|gateway|RANGE default", setQuota},
}

func setBorder(s *State, _ author, args []string) (func() Effect, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, ErrUsage
	}
	border, err := place.ParseBorder(args)
	if err == nil && s.settings.Spawn != nil && !border.Contains(*s.settings.Spawn) {
		err = notice.New("spawn_outside", "the spawn would be outside: move it first, with setspawn")
	}
	return func() Effect {
		s.settings.Border = border
		if border == nil {
			return Effect{Text: notice.New("border_off", "The world has no border.")}
		}
		return Effect{Text: notice.New("border_set", "The border of the world is at {border}.", border)}
	}, err
}

func setOriginal(s *State, _ author, args []string) (func() Effect, error) {
	if len(args) != 1 || args[0] != "on" && args[0] != "off" {
		return nil, ErrUsage
	}
	return func() Effect {
		s.settings.NoOriginal = args[0] == "off"
		if s.settings.NoOriginal {
			return Effect{Text: notice.New("original_off", "VoxelPopuli's own clients may not play.")}
		}
		return Effect{Text: notice.New("original_on", "VoxelPopuli's own clients may play wherever guests may.")}
	}, nil
}

// TexturesHash returns the hash of the texture pack that pages show, and reports whether there is one.
func (s Settings) TexturesHash() (hash mod.Hash, set bool) {
	hash, err := mod.ParseHash(s.Textures)
	return hash, err == nil
}

// setTextures sets the world's texture pack: HASH or off. Only operators set one, which they have put on a node: anybody
// can have what it names.
func setTextures(s *State, by author, args []string) (func() Effect, error) {
	if len(args) != 1 {
		return nil, ErrUsage
	}
	off := args[0] == "off"
	if _, err := mod.ParseHash(args[0]); !off && (err != nil || by.role != operator) {
		return nil, notice.New("textures_hash", "an operator sets the textures: voxeld textures FILE")
	}
	return func() Effect {
		if off {
			s.settings.Textures = ""
			return Effect{Text: notice.New("textures_off", "The world has no textures of its own.")}
		}
		s.settings.Textures = args[0]
		return Effect{Text: notice.New("textures_set", "The world has textures of its own, which pages show from their next load on.")}
	}, nil
}

func setEdits(s *State, _ author, args []string) (func() Effect, error) {
	if len(args) != 2 {
		return nil, ErrUsage
	}
	role, err := s.roles.named(args[0])
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(args[1])
	if args[1] == "default" {
		n, err = 0, nil
	}
	if role.custom() {
		return nil, notice.New("own_edits", "the role {role} is defined by /role create, with edits=COUNT", role)
	}
	if err != nil || n < 0 || n > maxEdits || n == 0 && args[1] != "default" {
		return nil, notice.New("edits_bounds", "choose 1 to {most} blocks a second, or default", maxEdits)
	}
	return func() Effect {
		edits := maps.Clone(s.settings.Edits)
		if edits == nil {
			edits = make(map[Role]int)
		}
		if n == 0 {
			delete(edits, role)
			s.settings.Edits = edits
			return Effect{Text: notice.New("edits_off", "The role {role} may change as many blocks a second as the node grants.", role)}
		}
		edits[role] = n
		s.settings.Edits = edits
		return Effect{Text: notice.New("edits_set", "The role {role} may change {count} {count:block|blocks} a second.", role, n)}
	}, nil
}

// setClaims sets what builders may claim: COUNT AREA.
func setClaims(s *State, _ author, args []string) (func() Effect, error) {
	if len(args) != 2 {
		return nil, ErrUsage
	}
	limits, ok := parseClaimLimits(args)
	if !ok {
		return nil, notice.New("claims_bounds", "write how many claims a builder may have, 0 to {claims}, and how many columns of blocks in all, 0 to {area}", mostClaims, mostClaimArea)
	}
	return func() Effect {
		s.settings.Claims, s.settings.ClaimArea = limits.Count, limits.Area
		return Effect{Text: notice.New("claims_set", "A builder may have {claims} {claims:claim|claims} with {area} {area:column|columns} of blocks, moderators and above {times} times as much.", limits.Count, limits.Area, moderatorClaims)}
	}, nil
}

// parseClaimLimits reads COUNT and AREA.
func parseClaimLimits(args []string) (*ClaimLimits, bool) {
	if len(args) != 2 {
		return nil, false
	}
	count, err := strconv.ParseUint(args[0], 10, 32)
	area, errArea := strconv.ParseUint(args[1], 10, 32)
	if errors.Join(err, errArea) != nil || count > mostClaims || area > mostClaimArea {
		return nil, false
	}
	return &ClaimLimits{Count: int(count), Area: int64(area)}, true
}

// timeOrOff parses the arguments of a setting that is a length of time: TIME or off.
func timeOrOff(args []string) (length time.Duration, off bool, err error) {
	length, rest, err := splitTime(args)
	off = len(args) == 1 && args[0] == "off"
	if err == nil && !off && (length == 0 || rest != "") {
		err = ErrUsage
	}
	return length, off, err
}

func setFloodBan(s *State, _ author, args []string) (func() Effect, error) {
	length, off, err := timeOrOff(args)
	switch {
	case err != nil:
		return nil, err
	case length > maxFloodBan:
		return nil, notice.New("floodban_bounds", "choose at most {most:duration}", maxFloodBan)
	}
	return func() Effect {
		s.settings.FloodBan = length.Milliseconds()
		if off {
			return Effect{Text: notice.New("floodban_off", "Who floods the chat is muted for a minute.")}
		}
		return Effect{Text: notice.New("floodban_set", "Who floods the chat may not join their node again for {length:duration}.", length)}
	}, nil
}

// ErrOutside is returned for a place outside of the border of the world.
var ErrOutside = notice.New("outside_border", "that is outside the border of the world")

func setSpawn(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 3 {
		return nil, ErrUsage
	}
	pos, err := place.ParsePos(args)
	if err == nil && !s.settings.Border.Contains(pos) {
		err = ErrOutside
	}
	if err == nil && by.entering && (pos.Y < 0 || pos.Y > grid.MaxHeight) {
		err = notice.New("height_out_of_world", "the height {height} is out of the world: write X Y Z, with Y between 0 and {most}", pos.Y, grid.MaxHeight)
	}
	return func() Effect {
		s.settings.Spawn = &pos
		return Effect{Text: notice.New("spawn_set", "New players start at {place}.", pos)}
	}, err
}

// Warps are the places that /warp leads to, by name, in lower case.
type Warps map[string]grid.Pos

// Warps returns the world's warps, which are only read.
func (s *State) Warps() Warps { return s.warps }

// At returns where the warp with the name leads.
func (w Warps) At(name string) (grid.Pos, bool) {
	pos, ok := w[strings.ToLower(name)]
	return pos, ok
}

// Names returns the names of all warps, in order.
func (w Warps) Names() []string { return slices.Sorted(maps.Keys(w)) }

// NoWarp returns the error for a warp that there is not.
func NoWarp(name string) error {
	return notice.New("no_warp", "there is no warp {warp}: /warps lists them", name)
}

func setWarp(s *State, _ author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 4 {
		return nil, ErrUsage
	}
	name := strings.ToLower(args[0])
	if err := player.CheckName(name); err != nil {
		return nil, notice.New("bad_warp_name", "\"{text}\" is no name for a warp: use 1 to {most} letters, digits, _ and -", args[0], player.MaxName)
	}
	pos, err := place.ParsePos(args[1:])
	if _, known := s.warps[name]; err == nil && !known && len(s.warps) >= MaxWarps {
		err = notice.New("many_warps", "there are {count} warps: delete some first", MaxWarps)
	}
	return func() Effect {
		s.warps[name] = pos
		return Effect{Text: notice.New("warp_set", "/warp {warp} leads to {place}.", name, pos)}
	}, err
}

func deleteWarp(s *State, _ author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 1 {
		return nil, ErrUsage
	}
	name := strings.ToLower(args[0])
	if _, known := s.warps[name]; !known {
		return nil, NoWarp(name)
	}
	return func() Effect {
		delete(s.warps, name)
		return Effect{Text: notice.New("warp_deleted", "The warp {warp} is deleted.", name)}
	}, nil
}

// keepingCommands returns the operator's commands that set in another policy what is approved, and what expires.
func keepingCommands(s Settings) (all []string) {
	if s.ApproveNames {
		all = append(all, "set approval names on")
	}
	if s.ApproveClaims {
		all = append(all, "set approval claims on")
	}
	switch days := s.Expiry / (24 * time.Hour).Milliseconds(); {
	case s.Expiry == 0:
		all = append(all, "set expiry off")
	case s.Expiry != defaultExpiry.Milliseconds():
		all = append(all, fmt.Sprintf("set expiry %dd", days))
	}
	return all
}

// settingsCommands returns the operator's commands that make the settings and warps of another policy these.
func settingsCommands(s *State) []string {
	all := []string{
		"set players " + s.settings.Players.String(), "set guests " + s.settings.Guests.String(),
		strings.TrimSpace("set message " + s.settings.Message),
		fmt.Sprintf("set claims %d %d", s.settings.Claims, s.settings.ClaimArea), "set border " + s.settings.Border.String(),
	}
	if at := s.settings.Spawn; at != nil {
		all = append(all, fmt.Sprintf("setspawn %d %d %d", at.X, min(max(at.Y, 0), grid.MaxHeight), at.Z)) // earlier versions took any
	}
	if s.settings.NoOriginal {
		all = append(all, "set original off")
	}
	if ban := s.settings.FloodBan; ban%time.Minute.Milliseconds() != 0 {
		all = append(all, fmt.Sprintf("set floodban %ds", ban/1000))
	} else if ban > 0 {
		all = append(all, fmt.Sprintf("set floodban %dm", ban/time.Minute.Milliseconds()))
	}
	if s.settings.Textures != "" {
		all = append(all, "set textures "+s.settings.Textures)
	}
	all = append(append(all, quotaCommands(s.settings)...), keepingCommands(s.settings)...)
	for _, role := range builtInRoles {
		if n, set := s.settings.Edits[role]; set {
			all = append(all, fmt.Sprintf("set edits %v %d", role, n))
		}
		if b, set := s.settings.Bulk[role]; set {
			all = append(all, fmt.Sprintf("set bulk %v %s", role, b.args(" ")))
		}
	}
	for _, name := range s.warps.Names() {
		at := s.warps[name]
		all = append(all, fmt.Sprintf("setwarp %s %d %d %d", name, at.X, at.Y, at.Z))
	}
	return all
}
