package terrain

import (
	"math"

	"github.com/ojrac/opensimplex-go"
)

// quantum is the step to which noise is rounded, so that architectures agree (see the package comment).
const quantum = 1.0 / (1 << 20)

// amplitude2 and amplitude3 bound the raw noise in two and three dimensions (measured by opensimplex-go).
const (
	amplitude2 = 0.8659203878240322
	amplitude3 = 0.9871048542519545
)

// field is fractal noise with values in about -1..1: octaves of half the amplitude and half the wavelength.
type field struct {
	octaves []octave
	norm    float64 // 1 / the sum of the octaves' amplitudes
}

type octave struct {
	noise     opensimplex.Noise
	frequency float64 // 1/blocks
	amplitude float64
}

// newField makes the field number salt of a world. The wavelength of the first octave is in blocks.
func newField(seed int64, salt uint64, wavelength float64, octaves int) field {
	f := field{octaves: make([]octave, octaves)}
	sum, frequency, amplitude := 0.0, 1/wavelength, 1.0
	for i := range f.octaves {
		octaveSeed := int64(mix(mix(uint64(seed)^salt*golden) + uint64(i)))
		f.octaves[i] = octave{opensimplex.New(octaveSeed), frequency, amplitude}
		sum += amplitude
		frequency *= 2
		amplitude /= 2
	}
	f.norm = 1 / sum
	return f
}

// at samples the field in two dimensions.
func (f *field) at(x, z float64) float64 {
	sum := 0.0
	for i := range f.octaves {
		o := &f.octaves[i]
		v := o.noise.Eval2(mul(x, o.frequency), mul(z, o.frequency))
		sum += mul(o.amplitude, v)
	}
	return quantize(mul(sum, f.norm) / amplitude2)
}

// ridge samples the field folded at its zeros into crests: 0..1, 1 on a crest. Finer octaves
// weigh more near the crests of coarser ones, so that valleys stay smooth.
func (f *field) ridge(x, z float64) float64 {
	sum, weight := 0.0, 1.0
	for i := range f.octaves {
		o := &f.octaves[i]
		v := quantize(o.noise.Eval2(mul(x, o.frequency), mul(z, o.frequency)) / amplitude2)
		crest := 1 - math.Abs(v)
		crest = mul(crest, crest)
		sum += mul(mul(o.amplitude, weight), crest)
		weight = min(1, mul(crest, 1.6))
	}
	return mul(sum, f.norm)
}

// at3 samples the field in three dimensions.
func (f *field) at3(x, y, z float64) float64 {
	sum := 0.0
	for i := range f.octaves {
		o := &f.octaves[i]
		v := o.noise.Eval3(mul(x, o.frequency), mul(y, o.frequency), mul(z, o.frequency))
		sum += mul(o.amplitude, v)
	}
	return quantize(mul(sum, f.norm) / amplitude3)
}

func quantize(v float64) float64 { return math.Floor(v/quantum) * quantum }

// mul is a product that no compiler may fuse with a sum around it (see the package comment).
func mul(a, b float64) float64 { return float64(a * b) }

// lerp goes from a at t=0 to b at t=1.
func lerp(a, b, t float64) float64 { return a + mul(b-a, t) }

func clamp01(t float64) float64 {
	switch {
	case t > 1:
		return 1
	case t > 0:
		return t
	}
	return 0
}

// smooth rises from 0 at lo to 1 at hi with level ends.
func smooth(lo, hi, v float64) float64 {
	t := clamp01((v - lo) / (hi - lo))
	return mul(mul(t, t), 3-mul(2, t))
}
