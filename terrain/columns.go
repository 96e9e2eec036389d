package terrain

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
