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

	caves [caveNoises]caveField
}

// The noises of caves.
const (
	tunnelA = iota // a tunnel runs where tunnelA and tunnelB are both near 0
	tunnelB
	hallNoise // a hall opens where it is high
	caveNoises
)

// caveField is the field of a cave noise, which is sampled at heights scaled by steep.
type caveField struct {
	field
	steep float64
}

// newFields returns the fields of a world whose elevations are scaled by lift. In worlds of more than the default
// height the relief is also wider, so that slopes stay walkable.
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
		caves:     [caveNoises]caveField{{next(58, 2), 1.5}, {next(58, 2), 1.5}, {next(74, 2), 2}},
		lush:      next(48, 2),
		bloom:     next(42, 2),
	}
}
