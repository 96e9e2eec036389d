package main

import (
	"strings"
	"testing"
)

// Each figure names the command that measures it again.
func TestArguments(t *testing.T) {
	for line, want := range map[string]string{
		"--write all":                           "ramp",
		"--write --nice -15 all":                "--nice -15 ramp",
		"--write ramp --nice -15":               "ramp --nice -15",
		"--nice -15 --write land --players 100": "--nice -15 land --players 100",
		"land --binary bin/voxeld --nice -15":   "land --nice -15",
	} {
		if got := arguments(strings.Fields(line), "ramp"); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
