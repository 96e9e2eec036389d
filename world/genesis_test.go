package world

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/trust"
)

func someGenesis() Genesis {
	return Genesis{
		Name: "Waldenburg", Seed: 42, Sections: 4, Terrain: 1, Placement: grid.PlacementWalkad,
		Spawn: grid.Pos{X: 5, Y: 66, Z: -7}, Origin: 1_700_000_000_000, OriginalBase: 50,
	}
}

// A world's id never changes: existing data directories must keep their world.
func TestGenesisIDIsStable(t *testing.T) {
	const want = "b64707203ede6609348728cc789f8d5fe9ffdd98b4064efd93899149b1d30ffd"
	if got := someGenesis().ID(); got != want {
		t.Errorf("id %s, want %s", got, want)
	}
}

func TestEveryFactIsInTheID(t *testing.T) {
	id := someGenesis().ID()
	for name, change := range map[string]func(*Genesis){
		"name":      func(g *Genesis) { g.Name += "!" },
		"seed":      func(g *Genesis) { g.Seed = -g.Seed },
		"sections":  func(g *Genesis) { g.Sections++ },
		"terrain":   func(g *Genesis) { g.Terrain++ },
		"placement": func(g *Genesis) { g.Placement = grid.PlacementHash },
		"spawn":     func(g *Genesis) { g.Spawn.Z++ },
		"origin":    func(g *Genesis) { g.Origin++ },
		"base":      func(g *Genesis) { g.OriginalBase++ },
		"day":       func(g *Genesis) { g.DayMS = 60_000 },
		"root key":  func(g *Genesis) { g.Roots = []trust.Key{{1}} },
	} {
		g := someGenesis()
		change(&g)
		if g.ID() == id {
			t.Errorf("the %s does not change the id", name)
		}
	}
}

func TestGenesisValidate(t *testing.T) {
	if err := someGenesis().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Genesis)
		ok     bool
	}{
		"no name":             {func(g *Genesis) { g.Name = "" }, false},
		"long name":           {func(g *Genesis) { g.Name = strings.Repeat("a", 65) }, false},
		"longest name":        {func(g *Genesis) { g.Name = strings.Repeat("ä", 32) }, true},
		"control character":   {func(g *Genesis) { g.Name = "a\nb" }, false},
		"not UTF-8":           {func(g *Genesis) { g.Name = "a\xff" }, false},
		"flat":                {func(g *Genesis) { g.Sections = 0 }, false},
		"one section":         {func(g *Genesis) { g.Sections, g.Spawn.Y, g.OriginalBase = 1, 32, 0 }, true},
		"too tall":            {func(g *Genesis) { g.Sections = MaxSections + 1 }, false},
		"no terrain":          {func(g *Genesis) { g.Terrain = 0 }, false},
		"unknown placement":   {func(g *Genesis) { g.Placement = "somewhere" }, false},
		"spawn below":         {func(g *Genesis) { g.Spawn.Y = -1 }, false},
		"spawn on the top":    {func(g *Genesis) { g.Spawn.Y = 128 }, true},
		"spawn above":         {func(g *Genesis) { g.Spawn.Y = 129 }, false},
		"base below":          {func(g *Genesis) { g.OriginalBase = -1 }, false},
		"a short day":         {func(g *Genesis) { g.DayMS = 59_999 }, false},
		"the shortest day":    {func(g *Genesis) { g.DayMS = 60_000 }, true},
		"a week":              {func(g *Genesis) { g.DayMS = 7 * 24 * 3600 * 1000 }, true},
		"more than a week":    {func(g *Genesis) { g.DayMS = 7*24*3600*1000 + 1 }, false},
		"a root key":          {func(g *Genesis) { g.Roots = []trust.Key{{1}} }, true},
		"a root key twice":    {func(g *Genesis) { g.Roots = []trust.Key{{1}, {1}} }, false},
		"base leaves no slab": {func(g *Genesis) { g.OriginalBase = 97 }, false},
	} {
		g := someGenesis()
		c.change(&g)
		if err := g.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTimeOfDay(t *testing.T) {
	g := someGenesis()
	day := g.DayLength().Milliseconds()
	for _, c := range []struct {
		since int64 // milliseconds after the origin
		want  float64
	}{
		{0, 480}, {day / 4, 840}, {day * 2 / 3, 0}, {day, 480}, {-day, 480}, {-day / 3, 0}, {1000*day + day/2, 1200},
	} {
		if got := g.TimeOfDay(g.Origin + c.since); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%d ms after the origin it is %v, want %v", c.since, got, c.want)
		}
	}
	g.DayMS = 60_000
	if got := g.TimeOfDay(g.Origin + 20_000); got != 960 {
		t.Errorf("after a third of a day of a minute it is %v, want 960", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		g.Origin = rapid.Int64().Draw(t, "origin")
		if m := g.TimeOfDay(rapid.Int64().Draw(t, "now")); !(m >= 0 && m < MinutesPerDay) {
			t.Fatalf("minute %v of the day", m)
		}
	})
}

func TestDecodeGenesisRefuses(t *testing.T) {
	good := someGenesis().Encode()
	bad := someGenesis()
	bad.Sections = 0
	for name, data := range map[string][]byte{
		"nothing": nil, "other version": append([]byte{9}, good[1:]...), "cut": good[:len(good)-1],
		"longer": append(good[:len(good):len(good)], 0), "invalid": bad.Encode(),
	} {
		if g, err := DecodeGenesis(data); err == nil {
			t.Errorf("%s: decoded as %+v", name, g)
		}
	}
}

func FuzzDecodeGenesis(f *testing.F) {
	f.Add(someGenesis().Encode())
	closed := someGenesis()
	closed.Roots = []trust.Key{{1}, {2}}
	f.Add(closed.Encode())
	closed.DayMS = 3_600_000
	f.Add(closed.Encode())
	f.Add([]byte{openGenesis, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := DecodeGenesis(data)
		if err != nil {
			return
		}
		if err := g.Validate(); err != nil {
			t.Fatalf("decoded %+v: %v", g, err)
		}
		if again, err := DecodeGenesis(g.Encode()); err != nil || !reflect.DeepEqual(again, g) {
			t.Fatalf("%+v came back as %+v, %v", g, again, err)
		}
	})
}
