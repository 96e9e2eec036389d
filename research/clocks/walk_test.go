package clocks

import (
	"flag"
	"math"
	"reflect"
	"testing"

	"github.com/voxelpopuli/voxeld/vclock"
)

var seed = flag.Uint64("walk.seed", 1, "seed of all walks")

// small returns the reference walk at a tenth of its area and players, with the same density.
func small() Config {
	return Config{Seed: *seed, Players: 120, Side: 350, Rounds: 150, Observers: 30}
}

func walk(t *testing.T, cfg Config) Result {
	t.Helper()
	r, err := Walk(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sound fails if a comparison by the authors' own components reports a wrong result.
func sound(t *testing.T, name string, r Result) {
	t.Helper()
	for _, c := range []Comparison{Own, OwnHistory, SharedHistory} {
		for _, j := range []Judged{r.Received, r.Facing} {
			if j.Ordered < 1000 || j.Apart < 100 {
				t.Errorf("%s: only %d ordered and %d concurrent pairs were judged", name, j.Ordered, j.Apart)
			}
			if tally := j.Tallies[c]; j.Wrong(c) > 0 || tally.Tied > 0 || tally.Merged > 0 {
				t.Errorf("%s, %v: wrong: %+v", name, c, tally)
			}
		}
	}
}

// The properties that research/measured.md promises of the chosen comparison, and the ranking of the comparisons.
func promised(t *testing.T, name string, r Result) {
	t.Helper()
	sound(t, name, r)
	if got := r.Received.Share(SharedHistory); got < 98 {
		t.Errorf("%s: %.2f %% of the ordered pairs are recognised by the gateway's chains, want 98", name, got)
	}
	if got := r.Facing.Share(Own); got < 98 {
		t.Errorf("%s: %.2f %% of the ordered pairs of authors who see each other are recognised by their own components, want 98", name, got)
	}
	if printed, own := r.Facing.Share(Printed), r.Facing.Share(Own); printed >= own {
		t.Errorf("%s: Algorithm 2 recognises %.2f %%, the authors' own components %.2f %%", name, printed, own)
	}
	last := r.Sizes[len(r.Sizes)-1]
	if last.Sparse < 0.99*float64(r.Config.Players) {
		t.Errorf("%s: sparse clocks have %.1f entries of %d", name, last.Sparse, r.Config.Players)
	}
	for _, s := range r.Sizes {
		if s.Pruned > 1.1*s.Vision {
			t.Errorf("%s: after %d s pruned clocks have %.1f entries, with %.1f players in vision", name, s.Round, s.Pruned, s.Vision)
		}
	}
}

func TestWalk(t *testing.T) {
	r := walk(t, small())
	promised(t, "small walk", r)
	if again := walk(t, small()); !reflect.DeepEqual(again, r) {
		t.Error("the same walk again shows something else")
	}
}

func TestNearestBoundsClocks(t *testing.T) {
	cfg := small()
	cfg.Nearest = 8
	r := walk(t, cfg)
	sound(t, "nearest 8", r)
	for _, s := range r.Sizes {
		if s.MaxPruned > 8+1 { // plus the player
			t.Errorf("after %d s a clock has %d entries", s.Round, s.MaxPruned)
		}
	}
}

func TestLimitBoundsClocks(t *testing.T) {
	cfg := small()
	cfg.Limit = 9
	r := walk(t, cfg)
	sound(t, "the 8 heard last", r)
	for _, s := range r.Sizes {
		if s.MaxPruned > 9 {
			t.Errorf("after %d s a clock has %d entries", s.Round, s.MaxPruned)
		}
	}
	if got := r.Received.Share(SharedHistory); got < 98 {
		t.Errorf("%.2f %% of the ordered pairs are recognised with the 8 heard last, want 98", got)
	}
}

// The whole clocks of the walk equal vclock's clocks if nothing is pruned.
func TestWholeClocksAreSparseClocks(t *testing.T) {
	cfg := small()
	cfg.Vision, cfg.Side, cfg.Players, cfg.Rounds = 1000, 100, 40, 30 // everybody is in vision
	r := walk(t, cfg)
	last := r.Sizes[len(r.Sizes)-1]
	if last.Pruned != last.Sparse || last.MaxPruned != last.MaxSparse {
		t.Errorf("with everybody in vision: %+v", last)
	}
	for _, c := range []Comparison{Own, OwnHistory, Printed} {
		if got := r.Received.Share(c); got != 100 || r.Received.Wrong(c) > 0 {
			t.Errorf("%v: %.2f %% with whole clocks, %d wrong", c, got, r.Received.Wrong(c))
		}
	}
}

func TestSizesAreWhatTravels(t *testing.T) {
	o := vclock.NewOwner(idOf(1), 126)
	for i, n := range []uint64{1, 127, 128, 1 << 20} {
		other := vclock.NewOwner(idOf(2+i), n-1)
		o.Merge(other.Act(), func(vclock.ID) bool { return true })
	}
	s := o.Act()
	data, err := s.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := 2
	for e := range s.Clock.All() {
		want += entryBytes(e.N)
	}
	if len(data) != want {
		t.Errorf("%v takes %d bytes, counted %d", s, len(data), want)
	}
}

func TestConfigIsChecked(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for _, cfg := range []Config{{Players: -1}, {Players: maxPlayers + 1}, {Rate: 2}, {Vision: -1}, {Speed: 2000}, {Linger: -2}, {Limit: 1}} {
		if err := cfg.Validate(); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

// The settings of research/measured.md, at a tenth of their area and players: `sim vclock --figure all` runs them
// in full.
func TestSettings(t *testing.T) {
	reference := small()
	reference.Rounds, reference.Observers = 50, 10
	for _, s := range Settings(reference) {
		t.Run(s.Name, func(t *testing.T) {
			r := walk(t, s.Config)
			if wrong := r.Unsound(); len(wrong) > 0 || r.Received.Ordered == 0 {
				t.Errorf("of %d ordered pairs wrong: %v", r.Received.Ordered, wrong)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	cfg := small()
	cfg.Rounds = 40
	one := walk(t, cfg)
	cfg.Seed++
	other := walk(t, cfg)
	both := Merge([]Result{one, other})
	if got, want := both.Received.Ordered, one.Received.Ordered+other.Received.Ordered; got != want || both.Events != one.Events+other.Events {
		t.Errorf("%d ordered pairs, want %d", got, want)
	}
	for c := range comparisons {
		if got, want := both.Facing.Tallies[c].Missed, one.Facing.Tallies[c].Missed+other.Facing.Tallies[c].Missed; got != want {
			t.Errorf("%v: %d missed, want %d", c, got, want)
		}
	}
	for i, s := range both.Sizes {
		if want := (one.Sizes[i].Pruned + other.Sizes[i].Pruned) / 2; math.Abs(s.Pruned-want) > 1e-9 || s.MaxPruned != max(one.Sizes[i].MaxPruned, other.Sizes[i].MaxPruned) {
			t.Errorf("after %d s: %+v, want a mean of %v", s.Round, s, want)
		}
	}
	if alone := Merge([]Result{one}); !reflect.DeepEqual(alone, one) {
		t.Error("a result alone is another one")
	}
	bad := one
	bad.Received.Tallies[OwnHistory].Reversed++
	if got := bad.Unsound(); len(got) != 1 || got[0] != OwnHistory {
		t.Errorf("a pair the wrong way round: %v", got)
	}
}
