package terrain

import "math"

// fields are the noises of a world. Wavelengths are in blocks.
type fields struct {
	warpX, warpZ field // bend the coordinates of the large fields, so that nothing looks round
	continent    field // sea below about 0, land above
	mountain     field // where ranges rise
	crest        field // the ranges' ridges
	rough        field // how hilly the land is
	hill         field
	detail       field // the bumps one steps over
	river        field // rivers run where it is 0
	heat, rain   field
	dune         field
	wood, grove  field // where forests stand, and of which trees
	patch        field // small spots that fray the edges of materials
	mouth        field // where caves open to the sky
	lush, bloom  field // where grass stands high, and where flowers

	tunnelA, tunnelB field // a tunnel runs where both are 0
	hall             field // a hall opens where it is high
}

// newFields makes the fields of a world whose elevations are scaled by lift; in worlds of more than the
// default height the relief spreads too, so that slopes stay walkable.
func newFields(seed int64, lift float64) fields {
	wide := math.Sqrt(max(1, lift))
	salt := uint64(0)
	next := func(wavelength float64, octaves int) field {
		salt++
		return newField(seed, salt, wavelength, octaves)
	}
	return fields{
		warpX:     next(190, 2),
		warpZ:     next(190, 2),
		continent: next(760*wide, 4),
		mountain:  next(560*wide, 2),
		crest:     next(250*wide, 5),
		rough:     next(420*wide, 2),
		hill:      next(150*wide, 4),
		detail:    next(26, 2),
		river:     next(560*wide, 2),
		heat:      next(820, 2),
		rain:      next(640, 2),
		dune:      next(46, 2),
		wood:      next(150, 3),
		grove:     next(130, 2),
		patch:     next(17, 2),
		mouth:     next(90, 1),
		tunnelA:   next(58, 2),
		tunnelB:   next(58, 2),
		hall:      next(74, 2),
		lush:      next(48, 2),
		bloom:     next(42, 2),
	}
}

// column is the climate and the ground at one (x, z), before caves.
type column struct {
	ground int     // y of the topmost block of soil or rock; water may stand over it
	rise   float64 // height over the sea in units of elevation: blocks of a world of 4 sections
	cold   float64 // -1..1 and beyond: heat less what the height takes; snow lies below about snowBelow
	dry    float64 // 0..1, desert above 1/2
	wood   float64 // share of places where a tree may stand that bear one, 0..1
	grove  float64 // -1..1, which trees
	patch  float64 // -1..1
	bank   float64 // 0 far from a river, 1 in its bed
	mouth  float64 // 0..1, how wide caves are at the surface
}

// Elevations, in units of elevation (see column.rise).
const (
	seaFloor   = -25.0
	plain      = 5.0
	highland   = 15.0
	mountainUp = 84.0
	hillUp     = 17.0
	riverBed   = -3.6
	homeRadius = 420.0 // blocks around the origin that are tempered for newcomers
)

// column computes the column at (x, z). It costs about 40 samples of noise.
func (g *Generator) column(x, z int) column {
	f := &g.fields
	rawX, rawZ := float64(x), float64(z)
	atX := rawX + mul(34, f.warpX.at(rawX, rawZ))
	atZ := rawZ + mul(34, f.warpZ.at(rawX, rawZ))

	// Every world has mild, green land at its origin, whatever its seed: newcomers arrive there.
	home := clamp01(1 - (mul(rawX, rawX)+mul(rawZ, rawZ))/(homeRadius*homeRadius))
	home = smooth(0, 0.8, home)

	continent := f.continent.at(atX, atZ) + 0.16
	continent = lerp(continent, 0.16+mul(0.45, continent), home)
	land := smooth(-0.02, 0.16, continent)

	heat := mul(1.25, f.heat.at(atX, atZ)) + 0.06
	heat = lerp(heat, mul(heat, 0.45), home)
	rain := mul(1.3, f.rain.at(atX, atZ))
	rain = lerp(rain, 0.1+mul(rain, 0.6), home)
	dry := smooth(0.05, 0.45, heat-mul(0.8, rain)-0.2)

	mountain := smooth(-0.02, 0.42, f.mountain.at(atX, atZ))
	mountain = mul(mul(mountain, smooth(0.0, 0.2, continent)), 1-mul(0.9, mul(home, home)))
	mountain = mul(mountain, 1-mul(0.7, dry))

	rise := mainland(continent)
	rough := smooth(-0.35, 0.5, f.rough.at(atX, atZ))
	hills := f.hill.at(atX, atZ) + 0.12
	hillUps := mul(hillUp, lerp(0.22, 1.25, rough))
	hillUps = mul(hillUps, lerp(0.35, 1, land))
	hillUps = mul(hillUps, 1-mul(0.45, dry))
	rise += mul(hills, hillUps)
	if dry > 0 {
		dune := 1 - math.Abs(f.dune.at(rawX+mul(0.5, atZ), atZ))
		rise += mul(mul(mul(dune, dune), mul(dune, 4)), mul(dry, land))
	}
	if mountain > 0 {
		crest := f.crest.ridge(atX, atZ)
		rise += mul(mountain, mul(crest, mul(mountainUp, lerp(crest, 1, 0.2))))
	}
	rise += mul(f.detail.at(rawX, rawZ), lerp(0.7, 1.6, max(mountain, rough)))

	rise, bank := g.carveRiver(rise, mountain, land, atX, atZ)
	rise = g.bound(rise)
	patch := f.patch.at(rawX, rawZ)

	c := column{rise: rise, dry: dry, patch: patch, bank: bank}
	c.ground = g.sea + int(math.Floor(mul(rise, g.lift)))
	c.cold = heat - mul(max(0, rise-10), 1.0/52)
	c.grove = f.grove.at(rawX, rawZ)
	woods := f.wood.at(rawX, rawZ) + mul(0.35, rain) - mul(0.25, mountain)
	c.wood = mul(smooth(-0.12, 0.42, woods), 1-smooth(0.1, 0.6, dry))
	c.wood = max(c.wood, mul(0.035, 1-dry))
	c.mouth = smooth(0.1, 0.5, f.mouth.at(rawX, rawZ))
	return c
}

// mainland gives the elevation of the bare continent: deep sea, shelf, shore, plain, highland.
func mainland(continent float64) float64 {
	switch {
	case continent < -0.12:
		return lerp(seaFloor, -9, smooth(-0.6, -0.12, continent))
	case continent < 0:
		return lerp(-9, 0.5, mul(continent+0.12, 1/0.12))
	case continent < 0.1:
		return lerp(0.5, plain, smooth(0, 0.1, continent))
	default:
		return lerp(plain, highland, smooth(0.1, 0.75, continent))
	}
}

// carveRiver lowers the land to a river bed where the river field is near 0, with wide banks in plains
// and gorges in hills. High ranges and the sea are left alone. It returns the new elevation and the bank.
func (g *Generator) carveRiver(rise, mountain, land, atX, atZ float64) (float64, float64) {
	strength := mul(smooth(0, 0.15, land), 1-smooth(0.25, 0.7, mountain))
	if strength <= 0 || rise < riverBed {
		return rise, 0
	}
	off := math.Abs(g.fields.river.at(atX, atZ))
	valley := 1 - smooth(0.012, 0.1+mul(0.004, max(0, rise)), off)
	if valley <= 0 {
		return rise, 0
	}
	valley = mul(valley, strength)
	return lerp(rise, riverBed, valley), valley
}

// bound keeps an elevation between the bedrock and the sky, bending rather than cutting summits.
func (g *Generator) bound(rise float64) float64 {
	const soft = 0.8 // share of the room below the sky from which summits are pressed
	top := (float64(g.height-10-g.sea) / g.lift)
	if knee := mul(soft, top); rise > knee {
		over := (rise - knee) / (top - knee)
		rise = knee + mul(top-knee, over/(1+over))
	}
	return max(rise, float64(6-g.sea)/g.lift)
}
