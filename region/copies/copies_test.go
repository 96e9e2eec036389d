package copies

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the table into docs/runbook.md")

// all calls visit with all facts that there may be.
func all(visit func(Facts)) {
	for s := range stored {
		for m := range members {
			for p := range peers {
				for f := range failed {
					for n := range limits {
						visit(Facts{s, m, p, f, n})
					}
				}
			}
		}
	}
}

// One example of each row of the table.
var examples = [reasons]struct {
	facts Facts
	want  Action
}{
	Superseded:       {Facts{Peers: Without}, Drop},
	RolledBackAlone:  {Facts{Stored: Earlier, Members: Alone}, Serve},
	MembersUnknown:   {Facts{Stored: Earlier, Members: Unknown}, Wait},
	OnlyCopy:         {Facts{Stored: Unreadable, Members: Alone}, Ask},
	FileDamaged:      {Facts{Stored: Unreadable, Limit: Broken}, Ask},
	ReplacedTooOften: {Facts{Stored: Lacking, Limit: TooOften}, Ask},
	Damaged:          {Facts{Stored: Unreadable}, Replace},
	RolledBack:       {Facts{Stored: Earlier, Peers: Claim}, Replace},
	Forgetful:        {Facts{Stored: Lacking}, Replace},
	Lost:             {Facts{Stored: Missing}, Replace},
	Quarantined:      {Facts{Failed: Repeatedly, Members: Alone}, Ask},
	Failure:          {Facts{Failed: Pausing}, Wait},
	InOrder:          {Facts{Peers: Claim}, Serve},
}

func TestEveryRow(t *testing.T) {
	for reason, e := range examples {
		if got := Decide(e.facts); got != (Decision{e.want, Reason(reason)}) { //nolint:gosec // an index of an array
			t.Errorf("%+v: %v because %v, want %v because %v", e.facts, got.Action, got.Reason, e.want, Reason(reason)) //nolint:gosec // the same
		}
	}
	if len(Table) != int(reasons) {
		t.Errorf("%d rows for %d reasons", len(Table), reasons)
	}
	for i, r := range Table {
		if r.Reason != Reason(i) { //nolint:gosec // the same
			t.Errorf("row %d has the reason %v", i, r.Reason)
		}
	}
}

// What must hold whatever the facts are.
func TestEveryFact(t *testing.T) {
	reached := make(map[Reason]bool)
	all(func(f Facts) {
		d := Decide(f)
		reached[d.Reason] = true
		for what, broken := range map[string]bool{
			"dropped although nothing confirms that the group continues without it": d.Action == Drop && f.Peers != Without,
			"kept although the group continues without it":                          d.Action != Drop && f.Peers == Without,
			"a lone copy, or one that may be, is replaced":                          d.Action == Replace && f.Members != Others,
			"a sound copy is replaced":                                              d.Action == Replace && f.Stored == Sound,
			"a copy that has forgotten promises is opened while others have them":   d.Opens() && f.Stored == Earlier && f.Members != Alone,
			"a copy that cannot be read is opened":                                  d.Opens() && f.Stored == Unreadable,
			"a copy that does not exist is opened":                                  d.Opens() && f.Stored == Missing,
			"a copy that failed is opened at once":                                  d.Opens() && f.Stored == Sound && f.Failed != Works,
			"a sound copy that works is kept closed":                                !d.Opens() && f.Stored == Sound && f.Failed == Works && f.Peers != Without,
			"replaced on a broken file, or again and again":                         d.Action == Replace && f.Limit != NoLimit,
			"an operator is asked, who can do nothing":                              d.Action == Ask && d.Reason.Do() == "",
		} {
			if broken {
				t.Errorf("%+v: %v because %v: %s", f, d.Action, d.Reason, what)
			}
		}
	})
	for i := range Table {
		if !reached[Table[i].Reason] {
			t.Errorf("no facts lead to row %d, %v", i, Table[i].Reason)
		}
	}
}

// The table in docs/runbook.md is this one.
func TestTableIsPrinted(t *testing.T) {
	const path, begin, end = "../../docs/runbook.md", "<!-- the table of region/copies -->\n", "<!-- end of the table -->\n"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	printed, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no table", path)
	}
	if *update {
		err = os.WriteFile(path, []byte(before+begin+markdown()+end+after), 0o600)
		if printed = markdown(); err != nil {
			t.Fatal(err)
		}
	}
	if printed != markdown() {
		t.Errorf("the table in %s is another one: go test ./region/copies -update", path)
	}
}

// markdown returns the table for docs/runbook.md.
func markdown() string {
	var b strings.Builder
	b.WriteString("| | the copy | decision | reason |\n|---|---|---|---|\n")
	for i, r := range Table {
		fmt.Fprintf(&b, "| %d | %s | %s | `%s` |\n", i+1, r.When, r.Action, r.Reason)
	}
	return b.String()
}

func TestFailures(t *testing.T) {
	const panics, refuses = false, true
	type at struct {
		after   time.Duration
		refused bool
	}
	begin := time.Unix(0, 0)
	for name, test := range map[string]struct {
		failures []at
		want     Failed // just after the last one
	}{
		"once":         {[]at{{0, panics}}, Pausing},
		"twice":        {[]at{{0, panics}, {time.Minute, panics}}, Repeatedly},
		"long ago":     {[]at{{0, panics}, {11 * time.Minute, panics}}, Pausing},
		"of two kinds": {[]at{{0, panics}, {1, refuses}, {2, refuses}, {3, refuses}, {4, refuses}, {5, refuses}}, Pausing},
		"a full disk":  {[]at{{0, refuses}, {1, refuses}, {2, refuses}, {3, refuses}, {4, refuses}, {5, refuses}}, Repeatedly},
	} {
		var f Failures
		for _, each := range test.failures {
			f.Add(begin.Add(each.after), each.refused)
		}
		last := begin.Add(test.failures[len(test.failures)-1].after)
		if got := f.State(last); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		if f.State(last.Add(time.Hour)) == Repeatedly != (test.want == Repeatedly) || f.Lately(last.Add(time.Hour)) {
			t.Errorf("%s: an hour later it is in another state", name)
		}
	}
	var f Failures
	for i, want := range []time.Duration{1, 2, 4, 8, 16} {
		f.Add(begin, refuses)
		if pause := f.Until().Sub(begin); pause != want*time.Second {
			t.Errorf("after failure %d: a pause of %v", i, pause)
		}
	}
	for range 1000 {
		f.Add(begin, panics)
	}
	if len(f.lately) > 1 {
		t.Errorf("%d failures are kept of a copy that is closed", len(f.lately))
	}
}
