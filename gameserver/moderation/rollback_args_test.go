package moderation

import (
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/policy"
)

func TestParseRollback(t *testing.T) {
	box := grid.Box{Min: grid.Pos{X: -9, Y: 5, Z: -8}, Max: grid.Pos{X: 7, Y: 60, Z: 6}}
	columns := grid.Box{Min: grid.Pos{X: -9, Z: -8}, Max: grid.Pos{X: 7, Y: grid.MaxHeight, Z: 6}}
	for text, want := range map[string]wantedRollback{
		"eve 2h":                            {players: "eve", ago: 2 * time.Hour},
		"guest:eve,bob 30m":                 {players: "guest:eve,bob", ago: 30 * time.Minute},
		"eve 2h 200":                        {players: "eve", ago: 2 * time.Hour, radius: 200},
		"eve 2h radius:200":                 {players: "eve", ago: 2 * time.Hour, radius: 200},
		"eve 2h 7,60,6 -9,5,-8":             {players: "eve", ago: 2 * time.Hour, box: box, hasBox: true},
		"player:eve player:guest:b time:1d": {players: "eve,guest:b", ago: 24 * time.Hour},
		"time:2h area:-9,5,-8:7,60,6 player:eve,bob": {players: "eve,bob", ago: 2 * time.Hour, box: box, hasBox: true},
		"player:eve 2h area:-9,-8:7,6":               {players: "eve", ago: 2 * time.Hour, box: columns, hasBox: true},
		"radius:5 player:eve time:1h":                {players: "eve", ago: time.Hour, radius: 5},
	} {
		got, err := parseRollback(strings.Fields(text))
		if err != nil || got != want {
			t.Errorf("/rollback %s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                               policy.ErrUsage.Error(),
		"eve":                            policy.ErrUsage.Error(),
		"player:eve":                     policy.ErrUsage.Error(),
		"eve 2h 5 6 7":                   policy.ErrUsage.Error(),
		"eve 2h radius:5 area:-9,-8:7,6": policy.ErrUsage.Error(),
		"eve x":                          `"x" is not a time: write 30m, 2h, 7d or 4w`,
		"eve 2h 0":                       `"0" is not a radius: choose 1 to 1500 blocks, or two corners as X,Y,Z`,
		"eve 2h area:1,2":                `area "1,2": want X1,Z1:X2,Z2 or X1,Y1,Z1:X2,Y2,Z2 in blocks, such as -64,-64:64,64`,
		"eve 2h area:0,0:4000,9":         "the area is too large: at most 3584 blocks to each side",
		"eve 2h 0,0 4000,9":              `"0,0" is not a position: write X,Y,Z`,
	} {
		if got, err := parseRollback(strings.Fields(text)); err == nil || err.Error() != want {
			t.Errorf("/rollback %s: %+v, %v, want %q", text, got, err, want)
		}
	}
}
