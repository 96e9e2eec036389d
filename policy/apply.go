package policy

import (
	"errors"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/policy/sanction"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// ErrRepeated is returned for an act that was applied already.
var ErrRepeated = notice.New("repeated", "that command was carried out already")

// Apply applies the next act, whose signature is verified. An error is for its author; the act then has changed
// nothing.
func (s *State) Apply(a nodemsg.Act) (Effect, error) {
	s.acts++
	return s.run(a, true)
}

// maxDrift is how far the time that the catalog's leader gives an act may be from the number that its author has
// signed, which counts microseconds since 1970. Otherwise a leader that lies could make bans longer or shorter. If the
// author's clock is wrong by more, so is the time until which a ban lasts.
const maxDrift = 10 * time.Minute

// timeOf returns when an act was entered, in Unix milliseconds.
func timeOf(a nodemsg.Act) int64 {
	signed, drift := int64(a.Seq/1000), maxDrift.Milliseconds() //nolint:gosec // a thousandth of a uint64 fits
	return min(max(a.At, signed-drift), signed+drift)
}

// Skip counts an act that counts for nothing.
func (s *State) Skip() { s.acts++ }

// Try returns why the act must not be entered now: mostly why Apply would refuse it.
func (s *State) Try(a nodemsg.Act) error {
	if s.acts >= MaxActs {
		return notice.New("log_full", "this world has had {count} commands that changed its policy, and takes no more", MaxActs)
	}
	_, err := s.run(a, false)
	return err
}

// run carries out an act, or only checks it.
func (s *State) run(a nodemsg.Act, change bool) (Effect, error) {
	at := timeOf(a)
	name, rest, _ := strings.Cut(strings.TrimSpace(a.Text), " ")
	c, known := find(commands, name)
	switch {
	case !known || c.run == nil:
		return Effect{}, notice.New("unknown_command", "there is no command /{command}: try /help", name)
	case s.lastSeq(a) == a.Seq:
		return Effect{}, ErrRepeated
	case s.lastSeq(a) > a.Seq, !a.Operator && s.lastSeq(a) == 0 && a.Seq <= s.forgotten, a.Operator && a.Charter < s.charter:
		return Effect{}, notice.New("old_command", "that command is older than one that was carried out already: if the clock of your machine was set back, wait until it catches up")
	}
	by := author{id: authorOf(a), name: s.NameFor(authorOf(a), a.Name), role: s.roleOf(authorOf(a), false), act: a, entered: a.At, entering: !change}
	if a.Operator {
		by.name, by.role = sanction.Operator, operator
	}
	times := []int64{at}
	if by.entering {
		times = append(times, a.At) // the author may have signed a time when they will not be banned any more
	}
	for _, when := range times {
		if ban := s.Judge(Subject{Player: by.id, Name: by.name}, time.UnixMilli(when)).Ban; ban != nil && !a.Operator {
			return Effect{}, ban.Describe(time.UnixMilli(when))
		}
	}
	if by.role.AtLeast(c.Role) && !by.role.MayUse(c) {
		return Effect{}, notice.New("command_denied", "the role {role} may not use /{command}", by.role, c.Name)
	}
	if !by.role.MayUse(c) {
		return Effect{}, notice.New("command_of_role", "/{command} is for the role {needed} and above; yours is {role}", c.Name, c.Role, by.role)
	}
	do, err := c.run(s, by, strings.Fields(rest), at)
	if errors.Is(err, ErrUsage) {
		err = c.WrongUsage()
	}
	if err != nil || !change {
		return Effect{}, err
	}
	s.noteSeq(a)
	effect := do()
	if !a.Operator {
		s.noteUse(by.id, min(at, by.entered))
	}
	return effect, nil
}

// WrongUsage returns the error for arguments that the command does not have.
func (c Command) WrongUsage() error { return wrongUsage(c.Name, c.Usage) }

func wrongUsage(command, usage string) error {
	return notice.New("usage", "usage: /{command}[ {usage:usage}]", command, usage)
}

func (s *State) lastSeq(a nodemsg.Act) uint64 {
	if a.Operator {
		return s.nodes[authorOf(a)]
	}
	if m := s.members[authorOf(a)]; m != nil {
		return m.seq
	}
	return 0
}

func (s *State) noteSeq(a nodemsg.Act) {
	if a.Operator {
		s.nodes[authorOf(a)], s.charter = a.Seq, a.Charter
		return
	}
	s.member(authorOf(a)).seq = a.Seq
}
