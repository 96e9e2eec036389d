package terrain

import "math"

// climate holds the values of the wide fields at one (x, z), sampled on a lattice.
type climate struct {
	atX, atZ float64 // where the bent fields are read, in blocks
	base     float64 // elevation of the bare continent (see column.rise)
	hilly    float64 // how far hills move the ground, in units of elevation
	sandy    float64 // 0..1, how high dunes are
	mountain float64 // 0..1, how high mountains are
	bumpy    float64 // how far bumps move the ground, in units of elevation
	river    float64 // a river runs where it is 0; 1 where the land bears none
	flow     float64 // 0..1, how deep a river may cut
	heat     float64 // -1..1, at the sea
	dry      float64 // see column
	wood     float64
	grove    float64
	mouth    float64
}

// mix sets v to p at t=0, to q at t=1.
func (v *climate) mix(p, q *climate, t float64) {
	v.atX = lerp(p.atX, q.atX, t)
	v.atZ = lerp(p.atZ, q.atZ, t)
	v.base = lerp(p.base, q.base, t)
	v.hilly = lerp(p.hilly, q.hilly, t)
	v.sandy = lerp(p.sandy, q.sandy, t)
	v.mountain = lerp(p.mountain, q.mountain, t)
	v.bumpy = lerp(p.bumpy, q.bumpy, t)
	v.river = lerp(p.river, q.river, t)
	v.flow = lerp(p.flow, q.flow, t)
	v.heat = lerp(p.heat, q.heat, t)
	v.dry = lerp(p.dry, q.dry, t)
	v.wood = lerp(p.wood, q.wood, t)
	v.grove = lerp(p.grove, q.grove, t)
	v.mouth = lerp(p.mouth, q.mouth, t)
}

// bumps holds the values of the fine fields at one (x, z), sampled on a lattice.
type bumps struct{ detail, patch float64 } // both -1..1

func (v *bumps) mix(p, q *bumps, t float64) {
	v.detail = lerp(p.detail, q.detail, t)
	v.patch = lerp(p.patch, q.patch, t)
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
	homeRadius = 420.0 // radius in blocks around the origin where the land is mild for newcomers
)

// climate samples the wide fields at (x, z), about 25 times.
func (g *Generator) climate(x, z int) climate {
	f := &g.fields
	rawX, rawZ := float64(x), float64(z)
	if g.params.Sections == 1 {
		return climate{atX: rawX, atZ: rawZ}
	}
	atX := rawX + mul(34, f.warpX.at(rawX, rawZ))
	atZ := rawZ + mul(34, f.warpZ.at(rawX, rawZ))

	// Every world has mild, green land at its origin, because newcomers arrive there.
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

	rough := smooth(-0.35, 0.5, f.rough.at(atX, atZ))
	hillUps := mul(hillUp, lerp(0.22, 1.25, rough))
	hillUps = mul(hillUps, lerp(0.35, 1, land))
	hillUps = mul(hillUps, 1-mul(0.45, dry))

	k := climate{
		atX: atX, atZ: atZ, base: mainland(continent), hilly: hillUps, sandy: mul(dry, land), mountain: mountain,
		heat: heat, dry: dry, river: 1,
		bumpy: lerp(0.7, 1.6, max(mountain, rough)),
		flow:  mul(smooth(0, 0.15, land), 1-smooth(0.25, 0.7, mountain)),
		grove: f.grove.at(rawX, rawZ),
		mouth: smooth(0.1, 0.5, f.mouth.at(rawX, rawZ)),
	}
	if k.flow > 0 {
		k.river = f.river.at(atX, atZ)
	}
	woods := f.wood.at(rawX, rawZ) + mul(0.35, rain) - mul(0.25, mountain)
	k.wood = mul(smooth(-0.12, 0.42, woods), 1-smooth(0.1, 0.6, dry))
	k.wood = max(k.wood, mul(0.035, 1-dry))
	return k
}

// hills returns the elevation of the ground without bumps and rivers at (x, z), whose climate is k. It samples
// 4 to 11 times.
func (g *Generator) hills(k *climate, x int) float64 {
	f := &g.fields
	hill := f.hill.at(k.atX, k.atZ)
	if g.params.Sections == 1 {
		return hill
	}
	rise := k.base + mul(hill+0.12, k.hilly)
	if k.dry > 0 {
		dune := 1 - math.Abs(f.dune.at(float64(x)+mul(0.5, k.atZ), k.atZ))
		rise += mul(mul(mul(dune, dune), mul(dune, 4)), k.sandy)
	}
	if k.mountain > 0 {
		crest := f.crest.ridge(k.atX, k.atZ)
		rise += mul(k.mountain, mul(crest, mul(mountainUp, lerp(crest, 1, 0.2))))
	}
	return rise
}

// bumps samples the fine fields at (x, z).
func (g *Generator) bumps(x, z int) bumps {
	if g.params.Sections == 1 {
		return bumps{}
	}
	atX, atZ := float64(x), float64(z)
	return bumps{detail: g.fields.detail.at(atX, atZ), patch: g.fields.patch.at(atX, atZ)}
}

// column combines the values of one place into a column.
func (g *Generator) column(k *climate, hills float64, b *bumps) column {
	if g.params.Sections == 1 {
		return column{ground: originalGround(hills)}
	}
	rise, bank := carveRiver(hills+mul(b.detail, k.bumpy), k)
	rise = g.bound(rise)
	return column{
		ground: g.sea + int(math.Floor(mul(rise, g.lift))),
		rise:   rise,
		cold:   k.heat - mul(max(0, rise-10), 1.0/52),
		dry:    k.dry,
		wood:   k.wood,
		grove:  k.grove,
		patch:  b.patch,
		bank:   bank,
		mouth:  k.mouth,
	}
}

// mainland returns the elevation of the bare continent: deep sea, shelf, shore, plain, highland.
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

// carveRiver lowers the land to a river bed where the river field is near 0, with wide banks in plains and gorges in
// hills. It leaves high ranges and the sea alone. It returns the new elevation and the bank.
func carveRiver(rise float64, k *climate) (float64, float64) {
	if k.flow <= 0 || rise < riverBed {
		return rise, 0
	}
	off, far := math.Abs(k.river), 0.1+mul(0.004, max(0, rise))
	if off >= far {
		return rise, 0
	}
	valley := mul(1-smooth(0.012, far, off), k.flow)
	return lerp(rise, riverBed, valley), valley
}

// bound keeps an elevation between the bedrock and the sky, flattening summits smoothly.
func (g *Generator) bound(rise float64) float64 {
	if rise > g.knee {
		over := (rise - g.knee) / (g.top - g.knee)
		rise = g.knee + mul(g.top-g.knee, over/(1+over))
	}
	return max(rise, g.bottom)
}

// relief computes the columns of a world from lattices of its ingredients.
type relief struct {
	g        *Generator
	climates lattice[climate]
	hills    lattice[float64]
	bumps    lattice[bumps]

	row, single reliefRow // single: for at
}

// begin resets a relief to one that keeps no samples, reusing its memory.
func (r *relief) begin(g *Generator) {
	r.g = g
	r.climates.begin(g.grain.climate, g.climate, (*climate).mix)
	r.hills.begin(g.grain.hills, func(x, z int) float64 { return g.hills(r.climates.at(x, z), x) }, mixElevation)
	r.bumps.begin(g.grain.bumps, g.bumps, (*bumps).mix)
}

func mixElevation(v, p, q *float64, t float64) { *v = lerp(*p, *q, t) }

// cover keeps the samples around w×d blocks from (minX, minZ).
func (r *relief) cover(minX, minZ, w, d int) {
	r.climates.cover(minX, minZ, w, d)
	r.hills.cover(minX, minZ, w, d)
	r.bumps.cover(minX, minZ, w, d)
}

// at computes the column at (x, z).
func (r *relief) at(x, z int) column {
	r.single.begin(r, z)
	return r.single.at(x)
}

// reliefRow computes the columns of a row along x.
type reliefRow struct {
	g        *Generator
	climates row[climate]
	hills    row[float64]
	bumps    row[bumps]
}

func (w *reliefRow) begin(r *relief, z int) {
	w.g = r.g
	w.climates.begin(&r.climates, z)
	w.hills.begin(&r.hills, z)
	w.bumps.begin(&r.bumps, z)
}

func (w *reliefRow) at(x int) column {
	return w.g.column(w.climates.at(x), *w.hills.at(x), w.bumps.at(x))
}
