package moderation

import (
	"strconv"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// maxRadius is how far around the player a rollback may reach, in blocks.
const maxRadius = 1500

// wantedRollback is what the arguments of /rollback name.
type wantedRollback struct {
	players string // with commas
	ago     time.Duration
	radius  int32
	box     grid.Box // if hasBox
	hasBox  bool
}

// parseRollback reads PLAYERS TIME [RADIUS | CORNER CORNER]. Words such as player:eve, time:2h, radius:50 and
// area:-9,-9:9,9 may be anywhere.
func parseRollback(args []string) (w wantedRollback, err error) {
	var players, plain []string
	var ago, radius, area string
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, ":")
		switch key {
		case "player":
			players = append(players, value)
		case "time":
			ago = value
		case "radius":
			radius = value
		case "area":
			area = value
		default:
			plain = append(plain, arg)
		}
	}
	next := func(to *string) {
		if *to == "" && len(plain) > 0 {
			*to, plain = plain[0], plain[1:]
		}
	}
	w.players = strings.Join(players, ",")
	next(&w.players)
	next(&ago)
	if w.players == "" || ago == "" {
		return w, policy.ErrUsage
	}
	if w.ago, err = policy.ParseDuration(ago); err != nil {
		return w, err
	}
	if area == "" && radius == "" && len(plain) == 2 {
		w.hasBox = true
		w.box, err = policy.ParseCorners(plain[0], plain[1])
		return w, err
	}
	next(&radius)
	switch {
	case len(plain) > 0 || area != "" && radius != "":
		return w, policy.ErrUsage
	case area != "":
		w.hasBox = true
		if w.box, err = grid.ParseBox(area); err == nil {
			w.box, err = policy.ParseCorners(w.box.Min.String(), w.box.Max.String())
		}
	case radius != "":
		n, parseErr := strconv.Atoi(radius)
		if parseErr != nil || n < 1 || n > maxRadius {
			return w, notice.New("not_a_radius", "\"{text}\" is not a radius: choose 1 to {most} blocks, or two corners as X,Y,Z", radius, maxRadius)
		}
		w.radius = int32(n)
	}
	return w, err
}
