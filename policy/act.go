package policy

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Effect is what an act has done.
type Effect struct {
	Text notice.Notice // for its author
	Say  string        // for all players; empty if there is nothing
}

// author is who does an act.
type author struct {
	id   player.ID
	name string
	role Role
	act  nodemsg.Act
	// entered is when the catalog's leader entered the act, in Unix milliseconds; for what a player could gain by
	// signing another time.
	entered int64
	// entering means that the act is not in the catalog yet. Then more is refused than when it is applied: what a
	// version refuses in addition must not change what the acts of before have done.
	entering bool
}

// day returns the day on which the act was entered, since 1970.
func (by author) day() int64 { return by.entered / (24 * time.Hour).Milliseconds() }

// ErrUsage is returned for arguments that a command does not have; Command.WrongUsage tells the player.
var ErrUsage = errors.New("wrong arguments")

// splitTime returns the duration that the arguments begin with, 0 if with none, and the rest as a text. A word that
// begins with a digit must be a duration: otherwise a mistyped one would mean for good.
func splitTime(args []string) (d time.Duration, rest string, err error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if len(args) > 0 {
		last := len(args[0]) - 1
		n, err := strconv.ParseUint(args[0][:last], 10, 16)
		if unit := units[args[0][last]]; err == nil && n > 0 && unit != 0 {
			return time.Duration(n) * unit, strings.Join(args[1:], " "), nil
		}
		if first := args[0][0]; first >= '0' && first <= '9' {
			return 0, "", notice.New("not_a_time_or_reason", "\"{text}\" is not a time: write 30m, 2h, 7d or 4w, or begin the reason with another word", args[0])
		}
	}
	return 0, strings.Join(args, " "), nil
}

// ParseDuration returns a duration written as 30s, 5m, 2h, 7d or 4w.
func ParseDuration(text string) (time.Duration, error) {
	d, rest, err := splitTime([]string{text})
	if err != nil || d == 0 || rest != "" {
		return 0, notice.New("not_a_time", "\"{text}\" is not a time: write 30m, 2h, 7d or 4w", text)
	}
	return d, nil
}
