package sim

// Figure is a figure or table of a paper: its runs, the paper's values, and the measures.
type Figure struct {
	Name    string // as in the paper, such as 3a
	Title   string
	X, Y    string // what the axes measure, with units
	ByRound bool   // the figure plots rounds; otherwise one value for each trial, over Trial.X
	Trials  []Trial
	Measure func(Round) float64
	Second  func(Round) float64 // a second curve of each trial, such as the maximum; nil: none
	// label of Second
	SecondName string
	Notes      string // what the paper does not state, and the interpretation chosen
}

// Trial is one run of a figure, with any number of seeds.
type Trial struct {
	Series string // trials of one series are connected by a line
	X      float64
	Paper  string // the paper's value, in words or as a number; "" if its text has none
	Config func(seed uint64) Config
}

// SettledFrom is the first round that the tables count as settled: by then a crowd that joined in one round is
// connected.
const SettledFrom = 100
