package classicube

import (
	"fmt"
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/games"
)

const (
	colourEvery = 5 * time.Second // at least between changes of the sky
	placeEvery  = 500 * time.Millisecond
	// bottomRight is where the coordinates are shown, as a type of message.
	bottomRight = 11
)

// skies are the colours of the sky, the clouds, the fog, of shadows and of light: at night and by day.
var skies = [...][2][3]float64{
	{{10, 14, 30}, {153, 204, 255}},
	{{30, 34, 50}, {255, 255, 255}},
	{{16, 20, 36}, {220, 235, 255}},
	{{24, 26, 40}, {155, 155, 155}},
	{{70, 74, 96}, {255, 255, 255}},
}

// showTime colours the sky by the time of day.
func (cl *Client) showTime(now time.Time) {
	w := &cl.mu.welcome
	if !cl.features[extEnvColors] || now.Sub(cl.mu.clock.coloured) < colourEvery || w.DayMS <= 0 {
		return
	}
	cl.mu.clock.coloured = now
	day := daylight(games.Days(w, now.Sub(cl.mu.since)))
	for variable, c := range skies {
		p := begin(packetEnvColor).u8(byte(variable))
		for i := range 3 {
			p = p.u16(uint16(c[0][i] + day*(c[1][i]-c[0][i])))
		}
		cl.put(p)
	}
}

// daylight returns how light it is, 0 to 1, at a time in days since midnight.
func daylight(days float64) float64 {
	height := -math.Cos(2 * math.Pi * days) // of the sun
	return max(0, min(1, height*2+.5))
}

// showPlace shows the player's coordinates in the world: those of the level differ.
func (cl *Client) showPlace(now time.Time) {
	if !cl.features[extMessageTypes] || now.Sub(cl.mu.clock.located) < placeEvery {
		return
	}
	cl.mu.clock.located = now
	at := cl.mu.player.Pose.Block()
	if line := fmt.Sprintf("%d %d %d", at.X, at.Y, at.Z); line != cl.mu.clock.line {
		cl.mu.clock.line = line
		cl.put(begin(packetMessage).u8(bottomRight).text(line))
	}
}
