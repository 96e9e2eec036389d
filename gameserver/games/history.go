package games

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// shownChanges is how many changes of a History are shown in the chat.
const shownChanges = 8

// historyLines returns a History as lines of the chat: the newest changes, and the command that shows those before
// them.
func historyLines(m sessionmsg.History, now time.Time) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if m.Missing {
		say("A part of the land there does not answer: try again later.")
	}
	all := len(m.Changes) / sessionmsg.HistoryFields
	if all == 0 {
		what := "anything"
		if m.Skip > 0 {
			what = "more"
		}
		say("Nobody has changed %s between %v and %v, in the history that is kept.", what, m.Min, m.Max)
		return lines
	}
	count := english.Plural(all, "change", "")
	if m.More {
		count += " or more"
	}
	say("%s between %v and %v, the newest first:", count, m.Min, m.Max)
	shown := min(all, shownChanges)
	for i := range shown {
		c := m.Changes[i*sessionmsg.HistoryFields:][:sessionmsg.HistoryFields]
		name := "?"
		if author := c[1]; author >= 0 && author < int64(len(m.Names)) {
			name = m.Names[author]
		}
		at := grid.Pos{X: int32(c[2]), Y: int32(c[3]), Z: int32(c[4])} //nolint:gosec // as the gateway has them
		before, after := chunk.Block(c[5]), chunk.Block(c[6])          //nolint:gosec // as the gateway has them
		say("%v: %s, %s: %s → %s", at, humanize.RelTime(time.UnixMilli(c[0]), now, "ago", "from now"), name, before.Name(), after.Name())
	}
	if shown < all || m.More {
		until := m.Until
		if until == 0 {
			until = m.Changes[0] // newer ones do not move the rest
		}
		say("Those before: /inspect %v %v %d %d", m.Min, m.Max, until, m.Skip+shown)
	}
	return lines
}
