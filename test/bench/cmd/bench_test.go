package main

import (
	"errors"
	"strings"
	"testing"
)

// Each figure names the command that measures it again.
func TestArguments(t *testing.T) {
	for line, want := range map[string]string{
		"--write all":                           "network",
		"--write --nice -15 all":                "--nice -15 network",
		"--write network --nice -15":            "network --nice -15",
		"--nice -15 --write land --players 100": "--nice -15 land --players 100",
		"land --binary bin/voxeld --nice -15":   "land --nice -15",
	} {
		if got := arguments(strings.Fields(line), "network"); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// Rows during which other programs used much of a core are not published; those that failed are, with the reason.
func TestRowsInDoubtAreLeftOut(t *testing.T) {
	quiet, busy, failed := crowdRow{wanted: 1}, crowdRow{wanted: 2}, crowdRow{wanted: 3, failed: errors.New("no room")}
	busy.Others, failed.Others = .2, .2
	kept := reliable([]crowdRow{quiet, busy, failed})
	if len(kept) != 2 || kept[0].wanted != 1 || kept[1].wanted != 3 {
		t.Errorf("kept %+v", kept)
	}
}
