package moderation

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// maxLines is the most lines that answer a command.
const maxLines = 40

// Command carries out a command of the player, in the goroutine that handles their messages. What has to wait for
// others is run in the background, one after the other. An error ends the session.
func (s *Permissions) Command(m sessionmsg.Command, g Gateway) error {
	text := wire.Known(m.Text)
	c, rest, local := policy.Local(text)
	switch {
	case local:
		return s.answer(c, rest, g)
	case !policy.Known(text):
		s.notice(notice.New("no_such_command", "There is no such command: /help lists those that you may use."))
		return nil
	case s.key == nil:
		s.notice(notice.New("command_needs_key", "Only players with a key may use that command."))
		return nil
	case text != m.Text: // what is signed cannot be changed
		s.notice(notice.New("unknown_character", "That command contains a character that this node does not know, such as a new emoji. Leave it out."))
		return nil
	}
	signature, err := hex.DecodeString(m.Signature)
	if err != nil || m.Signature == "" {
		return &wire.Error{Code: wire.FailBadSignature, Message: "sign the command with the key of the player"}
	}
	act := nodemsg.Act{Key: s.key, Seq: m.Seq, Name: s.who.Name, Text: m.Text, Signature: signature}
	s.background(g, func(ctx context.Context) []notice.Notice {
		warning, err := Absent(ctx, m.Text, g.Elsewhere)
		if err != nil {
			return []notice.Notice{sentence(err)}
		}
		done, err := s.enforcer.Enter(ctx, act, func() error { return s.charge(m.Text, g) })
		if err != nil {
			return []notice.Notice{sentence(err)}
		}
		if done.Code == policy.RollbackBegun {
			g.Background(func(ctx context.Context) { s.follow(ctx, done, g) })
		}
		return compact(done, warning)
	})
	return nil
}

// charge counts a command against the quota of the player's address, and returns why they may not give it.
func (s *Permissions) charge(text string, g Gateway) error {
	kind := policy.QuotaKind(text, s.verdict.Load().Role)
	quota := s.enforcer.Settings().QuotaOf(s.who.Address)
	if kind == policy.Free || g.Charge(kind, quota.Of(kind)) {
		return nil
	}
	return quota.Exceeded(kind)
}

// answer answers a command that changes no policy. An error ends the session.
func (s *Permissions) answer(c policy.Command, rest string, g Gateway) (err error) {
	if role := s.verdict.Load().Role; !role.MayUse(c) {
		s.notice(notice.New("not_for_role", "/{command} is not for the role {role}.", c.Name, role))
		return nil
	}
	var why error // the player is not obeyed
	switch c.Name {
	case "spawn", "home", "warp", "visit", "tp":
		why = s.travel(c.Name, strings.Fields(rest), g)
	case "sethome":
		why = s.setHome(g)
	case "world", "me":
		if rest == "" {
			why = policy.ErrUsage
		} else if c.Name == "world" {
			why, err = g.SayToWorld(rest)
		} else {
			why, err = g.Say(nodemsg.EmotePrefix + rest)
		}
	case "msg":
		why = s.message(rest, g)
	case "r":
		why = s.reply(rest, g)
	case "inspect":
		why = s.inspect(strings.Fields(rest), g)
	case "rollback":
		why = s.propose(strings.Fields(rest), g)
	case "who":
		s.listPlayers(g)
	default:
		s.list(s.lines(c.Name, rest, g))
	}
	if errors.Is(why, policy.ErrUsage) {
		why = c.WrongUsage()
	}
	s.Tell(why)
	return err
}

// list shows lines to the player.
func (s *Permissions) list(lines []notice.Notice) {
	for _, line := range lines[:min(len(lines), maxLines)] {
		s.notice(line)
	}
	if more := len(lines) - maxLines; more > 0 {
		s.notice(notice.New("more_lines", "… and {count} more.", more))
	}
}
