package sim

// Figure is a figure or table of a paper: what was run for it, what the paper reads, and what is to be measured.
type Figure struct {
	Name    string // as in the paper, such as 3a
	Title   string
	X, Y    string // what the axes measure, with units
	ByRound bool   // the figure is a course over rounds; else one value for each trial, over Trial.X
	Trials  []Trial
	Measure func(Round) float64
	Second  func(Round) float64 // another course of each trial, such as the most; nil: none
	// SecondName names it.
	SecondName string
	Notes      string // what the paper leaves open, and how it was read
}

// Trial is one run of a figure, with as many seeds as one likes.
type Trial struct {
	Series string // trials of one series are joined by a line
	X      float64
	Paper  string // what the paper reads here, in words or as a number; "" if its text does not say
	Config func(seed uint64) Config
}

// SettledFrom is the first round of what the tables call settled: a crowd that joins in one round has found itself.
const SettledFrom = 100
