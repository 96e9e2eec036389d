package clocks

import "slices"

// Setting is a walk with a name.
type Setting struct {
	Name   string
	Config Config
}

// Settings returns the walks of research/measured.md: the reference, and variations of it. Zero values of the
// reference's fields mean the defaults.
func Settings(reference Config) []Setting {
	with := func(name string, edit func(*Config)) Setting {
		c := reference
		edit(&c)
		return Setting{name, c}
	}
	return []Setting{
		{"reference", reference},
		with("relevant for 10 s more", func(c *Config) { c.Linger = 10 }),
		with("pairs within 10 s", func(c *Config) { c.Window = 10 }),
		with("an event in 100 s", func(c *Config) { c.Rate = 0.01 }),
		with("the same, 10 s more", func(c *Config) { c.Rate, c.Linger = 0.01, 10 }),
		with("vision 50", func(c *Config) { c.Vision = 50 }),
		with("the same, 10 s more", func(c *Config) { c.Vision, c.Linger = 50, 10 }),
		with("vision 200", func(c *Config) { c.Vision, c.Rate = 200, 0.01 }),
		with("the same, the nearest 32", func(c *Config) { c.Vision, c.Rate, c.Nearest = 200, 0.01, 32 }),
		with("the same, 32 heard last", func(c *Config) { c.Vision, c.Rate, c.Limit = 200, 0.01, 33 }),
	}
}

// Merge combines the results of several seeds of one setting: counts are added, sizes averaged, and maxima taken over
// all. It keeps the first one's Config.
func Merge(results []Result) Result {
	all := results[0]
	all.Sizes = slices.Clone(all.Sizes)
	for _, r := range results[1:] {
		all.Events += r.Events
		all.Hearing += r.Hearing
		all.Received.add(&r.Received)
		all.Facing.add(&r.Facing)
		for i := range all.Sizes {
			all.Sizes[i].add(&r.Sizes[i])
		}
	}
	for i := range all.Sizes {
		all.Sizes[i].divide(float64(len(results)))
	}
	return all
}

func (s *Size) add(o *Size) {
	s.Vision += o.Vision
	s.Pruned += o.Pruned
	s.Sparse += o.Sparse
	s.PrunedBytes += o.PrunedBytes
	s.SparseBytes += o.SparseBytes
	s.MaxVision, s.MaxPruned, s.MaxSparse = max(s.MaxVision, o.MaxVision), max(s.MaxPruned, o.MaxPruned), max(s.MaxSparse, o.MaxSparse)
}

func (s *Size) divide(by float64) {
	s.Vision /= by
	s.Pruned /= by
	s.Sparse /= by
	s.PrunedBytes /= by
	s.SparseBytes /= by
}

func (j *Judged) add(o *Judged) {
	j.Ordered += o.Ordered
	j.Apart += o.Apart
	for c := range j.Tallies {
		t, u := &j.Tallies[c], &o.Tallies[c]
		t.Right += u.Right
		t.Reversed += u.Reversed
		t.Tied += u.Tied
		t.Missed += u.Missed
		t.Invented += u.Invented
		t.Merged += u.Merged
	}
}

// Unsound returns the comparisons that must never be wrong but were: by the authors' own components, alone or chained.
// It is empty after any walk.
func (r Result) Unsound() (wrong []Comparison) {
	for _, c := range []Comparison{Own, OwnHistory, SharedHistory} {
		for _, j := range []Judged{r.Received, r.Facing} {
			if t := j.Tallies[c]; j.Wrong(c)+t.Tied+t.Merged > 0 && !slices.Contains(wrong, c) {
				wrong = append(wrong, c)
			}
		}
	}
	return wrong
}
