package overlay

import "math"

// Point is a position on the ground, or a displacement: X and Z in blocks. The papers' second axis is Z here; overlays
// ignore height.
type Point struct{ X, Z float64 }

// Add is p moved by q.
func (p Point) Add(q Point) Point { return Point{p.X + q.X, p.Z + q.Z} }

// Sub is the displacement from q to p.
func (p Point) Sub(q Point) Point { return Point{p.X - q.X, p.Z - q.Z} }

// Times is p scaled by f.
func (p Point) Times(f float64) Point { return Point{p.X * f, p.Z * f} }

// Dist is the distance to q in blocks.
func (p Point) Dist(q Point) float64 { return math.Sqrt(p.Dist2(q)) }

// Dist2 is the square of the distance to q.
func (p Point) Dist2(q Point) float64 {
	dx, dz := p.X-q.X, p.Z-q.Z
	return dx*dx + dz*dz
}

// Valid reports whether both coordinates are numbers within ±MaxCoordinate.
func (p Point) Valid() bool {
	return math.Abs(p.X) <= MaxCoordinate && math.Abs(p.Z) <= MaxCoordinate
}

// Reach adds to the vision range the distance that two avatars can cover in lead rounds, up to half of the range.
func Reach(vision, lead float64, v, w Point) float64 {
	if lead == 0 {
		return vision
	}
	return vision + min(lead*(math.Hypot(v.X, v.Z)+math.Hypot(w.X, w.Z)), vision/2)
}
