package moderation

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
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
		s.notice("There is no such command: /help lists those that you may use.")
		return nil
	case s.key == nil:
		s.notice("Only players with a key may use that command.")
		return nil
	case text != m.Text: // what is signed cannot be changed
		s.notice("That command contains a character that this node does not know, such as a new emoji. Leave it out.")
		return nil
	}
	signature, err := hex.DecodeString(m.Signature)
	if err != nil || m.Signature == "" {
		return &wire.Error{Code: wire.FailBadSignature, Message: "sign the command with the key of the player"}
	}
	act := nodemsg.Act{Key: s.key, Seq: m.Seq, Name: s.who.Name, Text: m.Text, Signature: signature}
	s.background(g, func(ctx context.Context) []string {
		warning, err := Absent(ctx, m.Text, g.Elsewhere)
		if err != nil {
			return []string{sentence(wire.ErrorText(err))}
		}
		text, err := s.enforcer.Enter(ctx, act, func() error { return s.charge(m.Text, g) })
		if err != nil {
			return []string{sentence(wire.ErrorText(err))}
		}
		g.Background(func(ctx context.Context) { s.follow(ctx, text, g) })
		lines := []string{text, warning}
		return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
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
		s.notice(fmt.Sprintf("/%s is not for the role %v.", c.Name, role))
		return nil
	}
	var why string // the player is not obeyed
	switch c.Name {
	case "spawn", "home", "warp", "visit", "tp":
		why = s.travel(c.Name, strings.Fields(rest), g)
	case "sethome":
		why = s.setHome(g)
	case "world", "me":
		if rest == "" {
			why = wrongUsage
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
	if why == wrongUsage {
		why = "usage: /" + c.Name + " " + c.Usage
	}
	if why != "" {
		s.notice(sentence(why))
	}
	return err
}

// list shows lines to the player.
func (s *Permissions) list(lines []string) {
	for _, line := range lines[:min(len(lines), maxLines)] {
		s.notice(line)
	}
	if more := len(lines) - maxLines; more > 0 {
		s.notice(fmt.Sprintf("… and %d more.", more))
	}
}
