package player

import (
	"regexp"
	"strings"
	"testing"
)

var aName = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,20}\z`)

func TestCheckName(t *testing.T) {
	for _, test := range []struct {
		name string
		ok   bool
	}{
		{"a", true},
		{"Steve_the-2nd", true},
		{"-_-", true},
		{strings.Repeat("z", 20), true},
		{"", false},
		{strings.Repeat("z", 21), false},
		{"two words", false},
		{"new\nline", false},
		{"nul\x00", false},
		{"bell\a", false},
		{"Zoë", false},
		{"\xff", false},
		{"<b>", false},
		{"a/b", false},
		{"a.b", false},
	} {
		if err := CheckName(test.name); (err == nil) != test.ok {
			t.Errorf("%q: %v", test.name, err)
		}
	}
}

func FuzzCheckName(f *testing.F) {
	f.Add("steve")
	f.Add("no\u200bspace")
	f.Fuzz(func(t *testing.T, name string) {
		if err := CheckName(name); (err == nil) != aName.MatchString(name) {
			t.Fatalf("%q: %v", name, err)
		}
	})
}
