package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy/place"
	"github.com/voxelpopuli/voxeld/policy/sanction"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// This file orders rollbacks. The leader of each region in the box carries them out, in the order of their numbers
// (docs/adr/0050). What an order undoes was there when it arrived at the region (docs/adr/0098).

const (
	// MaxRollbacks is how many rollbacks are listed; the oldest is dropped first.
	MaxRollbacks = 1000
	// listedFor is how long a player below moderator keeps no rollback in the list, and a moderator's is not dropped
	// from it for one of theirs.
	listedFor = 30 * 24 * time.Hour
	// maxRollbacksOfOne is how many rollbacks a player below moderator may have ordered within that time: few beside
	// MaxRollbacks.
	maxRollbacksOfOne = 100
	// MaxRollbackSide bounds the box of a rollback, in blocks along X and Z: what one range query covers.
	MaxRollbackSide = 3584
	// Everyone selects, in the place of a player, the changes of all.
	Everyone = "*"
)

// RollbackBegun is the code of the answer to who has ordered a rollback; its argument id is the number.
const RollbackBegun = "rollback_begun"

// AreaTooLarge returns the error for an area with more than so many blocks to a side.
func AreaTooLarge(most int) error {
	return notice.New("large_area", "the area is too large: at most {most} blocks to each side", most)
}

// Rollback is a rollback that was ordered.
type Rollback struct {
	history.Rollback
	ID     int    // what people call it: 1, 2 and so on
	By     string // who ordered it
	Of     string // whose changes it undoes, as the command had it, with commas between several; empty if Undoes is set
	Undoes int    // ID of the rollback that it undoes; 0: none
	by     author
	At     int64 // when it was ordered, in Unix milliseconds; only shown
	Paused bool
	// Aborted means that it was ended before it was complete: what is undone stays so.
	Aborted bool
}

// Line returns the rollback as a line of a list.
func (r *Rollback) Line() notice.Notice {
	var what, state notice.Notice
	switch {
	case r.Undoes != 0:
		what = notice.New("a_rollback", "rollback {id}", r.Undoes)
	case r.Of == Everyone:
		what = notice.New("all_changes", "all changes")
	default:
		what = notice.New("changes_of", "changes of {names}", strings.ReplaceAll(r.Of, ",", ", "))
	}
	switch {
	case r.Aborted:
		state = notice.New("is_aborted", "aborted")
	case r.Paused:
		state = notice.New("is_paused", "paused")
	}
	return notice.New("rollback", "{id}: {name} undoes {what} between {from} and {to}[ ({state})]", r.ID, sanction.By(r.By), what, r.Box.Min, r.Box.Max, state)
}

// Rollbacks returns all rollbacks in the order of their numbers. The elements must not be changed.
func (s *State) Rollbacks() []Rollback { return s.rollbacks }

// Rollback returns the rollback with an ID.
func (s *State) Rollback(id int) (r Rollback, found bool) {
	if i := slices.IndexFunc(s.rollbacks, func(r Rollback) bool { return r.ID == id }); i >= 0 {
		return s.rollbacks[i], true
	}
	return r, false
}

// rollbackOf returns the rollback with an ID, or the last one that its author ordered if there are no arguments.
func rollbackOf(s *State, by author, args []string) (*Rollback, error) {
	if len(args) > 1 {
		return nil, ErrUsage
	}
	if len(args) == 0 {
		for i := range slices.Backward(s.rollbacks) {
			r := &s.rollbacks[i]
			switch {
			case r.By != by.name:
			case by.entering && r.by.id != by.id && by.role != operator:
				return nil, notice.New("namesakes_rollback", "rollback {id} was ordered by another player with your name: name the number of yours, which /rollbacks lists", r.ID)
			default:
				return r, nil
			}
		}
		return nil, notice.New("no_rollback_yours", "you have ordered no rollback: name the number of one that /rollbacks lists")
	}
	id, err := strconv.Atoi(args[0])
	i := slices.IndexFunc(s.rollbacks, func(r Rollback) bool { return r.ID == id })
	if err != nil || i < 0 {
		return nil, notice.New("no_rollback", "there is no rollback {id}: /rollbacks lists them", args[0])
	}
	if r := &s.rollbacks[i]; r.by.id == by.id || by.role.AtLeast(Moderator) && by.role.AtLeast(r.by.role) {
		return r, nil
	}
	if !by.role.AtLeast(Moderator) {
		return nil, notice.New("rollback_not_yours", "rollback {id} is not yours", id)
	}
	return nil, notice.New("rollback_of_higher_role", "rollback {id} was ordered by somebody of a higher role than yours", id)
}

// orderable returns why a rollback of a player below moderator must not be entered now: the land is not theirs any
// more, they have many in the list, or the one that it would drop from it was ordered by a moderator, and may be left
// to be carried out.
func orderable(s *State, by author, box grid.Box) error {
	if !by.entering || by.role.AtLeast(Moderator) {
		return nil
	}
	own := 0
	for i := range s.rollbacks {
		if of := &s.rollbacks[i].by; of.id == by.id && by.entered-of.entered < listedFor.Milliseconds() {
			own++
		}
	}
	full := len(s.rollbacks) >= MaxRollbacks
	first := &Rollback{}
	if full {
		first = &s.rollbacks[0]
	}
	switch {
	case ownClaimOf(s, by.id, box) == nil:
		return errNotOwned
	case own >= maxRollbacksOfOne:
		return notice.New("many_rollbacks", "you have ordered {count} rollbacks within 30 days: ask a moderator to order yours", maxRollbacksOfOne)
	case full && first.by.role.AtLeast(Moderator) && !first.Aborted && by.entered-first.by.entered < listedFor.Milliseconds():
		return notice.New("rollbacks_full", "the list of rollbacks is full, and rollback {id}, its first, may not be complete: ask a moderator to order yours", first.ID)
	}
	return nil
}

// orderRollback adds a rollback.
func orderRollback(s *State, r Rollback, by author, at int64) Effect {
	r.ID, r.Number, r.By, r.At, r.by = 1, s.nextNumber(at), by.name, at, by
	if n := len(s.rollbacks); n > 0 {
		r.ID = s.rollbacks[n-1].ID + 1
	}
	s.rollbacks = append(slices.Clip(s.rollbacks[max(0, len(s.rollbacks)-MaxRollbacks+1):]), r)
	return Effect{Text: notice.New(RollbackBegun, "Rollback {id} has begun.", r.ID)}
}

// PlayersOf returns the ids of the players whom a command about the past names, with commas between them: the owner of
// a registered name, an id, or a guest, also as guest:NAME, in upper and lower case as they write it, or a mod, as
// mod:NAME. Of everybody, who is *, there are none.
func (s *State) PlayersOf(text string) ([]player.ID, error) {
	if text == Everyone {
		return nil, nil
	}
	var all []player.ID
	for name := range strings.SplitSeq(text, ",") {
		id, err := s.playerOf(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	if len(all) > wire.MaxHistoryPlayers {
		return nil, notice.New("many_players", "{count} players are too many: name at most {most}", len(all), wire.MaxHistoryPlayers)
	}
	return all, nil
}

func (s *State) playerOf(text string) (player.ID, error) {
	if name, guest := strings.CutPrefix(text, "guest:"); guest {
		return player.GuestID(name), player.CheckName(name)
	}
	if name, is := strings.CutPrefix(text, "mod:"); is {
		return mod.Author(name), mod.CheckName(name)
	}
	target, err := s.targetOf(text)
	switch {
	case err != nil || target.Network.IsValid():
		return player.ID{}, notice.New("not_a_player", "\"{text}\" is neither a player's name nor an id", text)
	case target.Name != "":
		return player.GuestID(text), nil
	case target.Player == player.ID{}:
		return player.ID{}, notice.New("nobodys_id", "\"{text}\" is nobody's id", text) // in a filter it would stand for everybody
	}
	return target.Player, nil
}

// ParseCorners returns the box between two corners, each written as X,Y,Z.
func ParseCorners(a, b string) (box grid.Box, err error) {
	var corners [2]grid.Pos
	for i, text := range [2]string{a, b} {
		parts := strings.Split(text, ",")
		if len(parts) != 3 {
			return grid.Box{}, notice.New("not_a_position", "\"{text}\" is not a position: write X,Y,Z", text)
		}
		if corners[i], err = place.ParsePos(parts); err != nil {
			return grid.Box{}, err
		}
	}
	box = grid.BoxOf(corners[0], corners[1])
	if int64(box.Max.X)-int64(box.Min.X) >= MaxRollbackSide || int64(box.Max.Z)-int64(box.Min.Z) >= MaxRollbackSide {
		return grid.Box{}, AreaTooLarge(MaxRollbackSide)
	}
	return box, nil
}

// farthest is a corner of the world. No box has a longer text than the one between two of them.
var farthest = grid.Pos{X: math.MinInt32, Y: grid.MaxHeight - 1, Z: math.MinInt32}

// ProposeRollback returns the rollback of players' changes, as PlayersOf takes the players, since a time (Unix
// milliseconds). RevertText orders it. The zero Box stands for one that is not known yet: the command has room for any.
func (s *State) ProposeRollback(of string, since int64, box grid.Box) (p history.Rollback, err error) {
	p.Box, p.Since = box, since/1000*1000
	p.Players, err = s.PlayersOf(of)
	if box == (grid.Box{}) {
		box = grid.BoxOf(farthest, farthest)
	}
	if text := RevertText(of, since, box); err == nil && len(text) > wire.MaxChat {
		err = notice.New("names_too_long", "the names are too long for one command: name fewer players at a time")
	}
	return p, err
}

// ProposedTo returns a proposed rollback as it would be if a player ordered it: without what only an owner of land may
// not undo.
func (s *State) ProposedTo(id player.ID, of string, p history.Rollback) history.Rollback {
	if number, err := claimed(s, author{id: id, role: s.roleOf(id, false)}, of, p.Players, p.Box); err == nil {
		p.After = number
	}
	return p
}

// AuthorName returns what the author of a change of a block is called: a registered name, a guest's name, a mod, a
// rollback, or the id.
func (s *State) AuthorName(id player.ID, guest string) string {
	if guest != "" {
		return guest + " (guest)"
	}
	if name := s.NameOf(id); name != "" {
		return name
	}
	for i := range s.mods {
		if name := s.mods[i].Name; mod.Author(name) == id {
			return "mod:" + name
		}
	}
	for i := range s.rollbacks {
		if r := &s.rollbacks[i]; history.Author(r.Number) == id {
			return fmt.Sprintf("rollback %d by %s", r.ID, r.By)
		}
	}
	return id.String()
}

// RevertText returns the command that undoes changes of players, as PlayersOf takes them, since a time (Unix
// milliseconds).
func RevertText(of string, since int64, box grid.Box) string {
	return fmt.Sprintf("revert %s %d %v %v", of, since/1000, box.Min, box.Max)
}

var errNotOwned = notice.New("land_not_yours", "this land is not within a claim of yours: ask a moderator")

// ownClaimOf returns the claim of a player that a box is within; nil if there is none.
func ownClaimOf(s *State, id player.ID, box grid.Box) *Claim {
	if c := s.claims.At(box.Min); c != nil && c.Owner == id && s.claims.At(box.Max) == c {
		return c
	}
	return nil
}

// nextNumber returns the number of the next order of which regions take the mark. It is its time, so that a restored
// world counts on.
func (s *State) nextNumber(at int64) int64 {
	s.numbered = max(at, s.numbered+1)
	return s.numbered
}

// revert orders a rollback: PLAYERS SINCE CORNER CORNER, with Unix seconds.
func revert(s *State, by author, args []string, at int64) (func() Effect, error) {
	if len(args) != 4 {
		return nil, ErrUsage
	}
	r := Rollback{Of: args[0]}
	r.Marked = true
	var err error
	if r.Players, err = s.PlayersOf(args[0]); err != nil {
		return nil, err
	}
	since, err := strconv.ParseUint(args[1], 10, 40)
	if err != nil {
		return nil, notice.New("not_seconds", "\"{text}\" is not a time in seconds since 1970", args[1])
	}
	r.Since = int64(since) * 1000
	if r.Box, err = ParseCorners(args[2], args[3]); err != nil {
		return nil, err
	}
	if r.After, err = claimed(s, by, args[0], r.Players, r.Box); err != nil {
		return nil, err
	}
	return func() Effect { return orderRollback(s, r, by, at) }, orderable(s, by, r.Box)
}

// claimed returns the number of the claim by which somebody may undo changes in a box: what was there before the claim
// is not theirs. It is 0 if they need none.
func claimed(s *State, by author, of string, players []player.ID, box grid.Box) (number int64, err error) {
	if err = mayUndo(s, by, of, players); err == nil {
		return 0, nil
	}
	if claim := ownClaimOf(s, by.id, box); claim != nil {
		return claim.Number, nil
	}
	return 0, err
}

// mayUndo returns why somebody may not undo the changes of players outside of their own claims.
func mayUndo(s *State, by author, of string, players []player.ID) error {
	switch {
	case !by.role.AtLeast(Moderator):
		return notice.New("undo_outside_claims", "only the role {role} and above may undo changes outside of their own claims: choose two corners in a claim of yours", Moderator)
	case of == Everyone && !by.role.AtLeast(Admin):
		return notice.New("undo_everybody", "to undo the changes of everybody is for the role {role} and above: name a player", Admin)
	}
	for _, id := range players {
		if id == by.id {
			continue
		}
		if err := s.outranks(by, sanction.Target{Player: id}); err != nil {
			return err
		}
	}
	return nil
}

// undo orders a rollback of a rollback. In each region it begins when that is complete there, or was aborted. A paused
// one is aborted.
func undo(s *State, by author, args []string, at int64) (func() Effect, error) {
	of, err := rollbackOf(s, by, args)
	if err != nil {
		return nil, err
	}
	r := Rollback{Undoes: of.ID}
	r.Filter = history.Filter{Box: of.Box, Players: []player.ID{history.Author(of.Number)}}
	return func() Effect {
		effect := orderRollback(s, r, by, at)
		if of.Paused {
			changeRollback(s, of.ID, func(r *Rollback) { r.Aborted = true }) // the new one would wait for it
		}
		return effect
	}, orderable(s, by, of.Box)
}

// changeRollback changes a rollback in a new list: others may be reading the one of before.
func changeRollback(s *State, id int, change func(*Rollback)) {
	s.rollbacks = slices.Clone(s.rollbacks)
	if i := slices.IndexFunc(s.rollbacks, func(r Rollback) bool { return r.ID == id }); i >= 0 {
		change(&s.rollbacks[i])
	}
}

func paused(id int) notice.Notice {
	return notice.New("rollback_paused", "Rollback {id} is paused.", id)
}

func resumed(id int) notice.Notice {
	return notice.New("rollback_resumed", "Rollback {id} goes on.", id)
}

func aborted(id int) notice.Notice {
	return notice.New("rollback_aborted", "Rollback {id} is aborted: what it has undone stays so.", id)
}

// control returns a command that changes how a rollback goes on.
func control(done func(id int) notice.Notice, change func(*Rollback)) func(*State, author, []string, int64) (func() Effect, error) {
	return func(s *State, by author, args []string, _ int64) (func() Effect, error) {
		r, err := rollbackOf(s, by, args)
		if err != nil {
			return nil, err
		}
		fresh := *r
		change(&fresh)
		switch {
		case r.Aborted:
			return nil, notice.New("rollback_was_aborted", "rollback {id} was aborted", r.ID)
		case by.entering && fresh.Paused == r.Paused && fresh.Aborted == r.Aborted: // the catalog may have such from earlier versions
			return nil, notice.New("rollback_so_already", "nothing was changed: {is}", done(r.ID))
		case by.entering && r.Paused && !fresh.Paused && !by.role.AtLeast(Moderator) && ownClaimOf(s, by.id, r.Box) == nil: // it would go on
			return nil, errNotOwned
		}
		id := r.ID
		return func() Effect {
			changeRollback(s, id, change)
			return Effect{Text: done(id)}
		}, nil
	}
}
