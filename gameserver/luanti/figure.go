package luanti

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
)

// Images of a player, from the front and from the back.
const (
	frontImage = prefix + "player_front.png"
	backImage  = prefix + "player_back.png"
)

// drawPlayer returns the image of a player as PNG: 16×32 pixels.
func drawPlayer(front bool) ([]byte, error) {
	var (
		skin     = color.NRGBA{224, 172, 132, 255}
		hair     = color.NRGBA{92, 62, 40, 255}
		shirt    = color.NRGBA{64, 120, 168, 255}
		trousers = color.NRGBA{58, 62, 92, 255}
		shoes    = color.NRGBA{48, 42, 40, 255}
		eye      = color.NRGBA{40, 44, 60, 255}
	)
	m := image.NewNRGBA(image.Rect(0, 0, 16, 32))
	fill := func(c color.NRGBA, x0, y0, x1, y1 int) {
		for y := y0; y < y1; y++ {
			for x := x0; x < x1; x++ {
				shade := c
				if (x*7+y*13)%5 == 0 { // a little grain, as on blocks
					shade.R, shade.G, shade.B = c.R-c.R/12, c.G-c.G/12, c.B-c.B/12
				}
				m.SetNRGBA(x, y, shade)
			}
		}
	}
	fill(skin, 4, 0, 12, 8)
	fill(hair, 4, 0, 12, 2)
	if front {
		fill(eye, 5, 4, 7, 5)
		fill(eye, 9, 4, 11, 5)
	} else {
		fill(hair, 4, 2, 12, 6)
	}
	fill(shirt, 1, 8, 15, 13)
	fill(skin, 1, 13, 4, 20)
	fill(skin, 12, 13, 15, 20)
	fill(shirt, 4, 13, 12, 20)
	fill(trousers, 4, 20, 12, 30)
	fill(shoes, 4, 30, 12, 32)
	var out bytes.Buffer
	err := png.Encode(&out, m)
	return out.Bytes(), err
}
