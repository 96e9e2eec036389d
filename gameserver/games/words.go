package games

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// refusals are the reasons for which an edit was refused, where the player cannot see them.
var refusals = map[string]string{
	wire.RefusedOutOfReach:    "That is out of reach.",
	wire.RefusedClaimed:       "That is another player's claim.",
	wire.RefusedOutsideBorder: "That is outside the border of the world.",
	wire.RefusedNotAllowed:    "You may not build here.",
	wire.RefusedText:          fmt.Sprintf("A sign has at most %d lines, of %d characters.", wire.MaxSignLines, wire.MaxSignLine),
	wire.RefusedSigns:         "There are too many signs with a text here.",
	wire.RefusedFull:          "Too much has been changed here.",
	wire.RefusedUnknownBlock:  "This world does not have that block yet.",
	wire.RefusedRate:          "You build too fast.",
	wire.RefusedNotLoaded:     "The land there is being loaded.",
	wire.RefusedUnavailable:   "This land cannot be reached right now. Try again.",
	wire.RefusedQuarantined:   "This land is locked for repair.",
	wire.RefusedStale:         "That came too late. Try again.",
	wire.RefusedUnsigned:      "The world could not verify that this edit is yours. Join again, and type /login PASSWORD.",
}

// elsewhere returns the text about where to go on when the node is stopping.
func elsewhere(m sessionmsg.Reconnect) string {
	if len(m.Gateways) > 0 {
		return "This node is stopping. Join again at " + m.Gateways[0].Game + "."
	}
	return "This node is stopping. Come back in a while."
}

// textOf returns a line as the clients of other games show it, which know no channels.
func textOf(m sessionmsg.Line) string {
	switch m.Channel {
	case sessionmsg.ChannelFrom:
		return "From " + m.Name + ": " + m.Text
	case sessionmsg.ChannelTo:
		return "To " + m.Name + ": " + m.Text
	}
	if does, ok := strings.CutPrefix(m.Text, nodemsg.EmotePrefix); ok {
		return "[" + m.Channel + "] * " + m.Name + " " + does
	}
	return "[" + m.Channel + "] " + m.Name + ": " + m.Text
}

// Emote returns the text of a line about what its author does, and reports whether it is one.
func Emote(u nodemsg.ChatEvent) (text string, ok bool) {
	does, ok := strings.CutPrefix(u.Text, nodemsg.EmotePrefix)
	return "* " + u.Name + " " + does, ok
}

// ChatOf returns the chat line, or the command, that a text becomes; nil if it is blank. What is too long is cut off.
func ChatOf(text string) sessionmsg.FromClient {
	text = wire.Known(strings.TrimSpace(text))
	for len(text) > wire.MaxChat {
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
	}
	command, isCommand := strings.CutPrefix(text, "/")
	switch {
	case wire.CheckChat(text) != nil, isCommand && wire.CheckChat(command) != nil:
		return nil
	case isCommand:
		return sessionmsg.Command{Text: command}
	}
	return sessionmsg.Chat{Text: text}
}
