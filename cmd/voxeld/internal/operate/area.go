package operate

import (
	"fmt"
	"io"
	"strconv"

	"github.com/dustin/go-humanize/english"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
)

// This file prints what is in an area of the world.

func printAreaRegions(w io.Writer, a admin.Area) {
	fmt.Fprintln(w, "REGION\tCELL\tSTATE\tMEMBERS\tPLAYERS\tEDITS\tLEADER")
	for _, r := range a.Regions {
		edits := "-"
		if r.Edits != nil {
			edits = strconv.Itoa(*r.Edits)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", r.ID, r.Cell, r.State, len(r.Members), r.Players, edits, r.Leader)
	}
}

func printAreaPlayers(w io.Writer, a admin.Area) {
	fmt.Fprintln(w, "PLAYER\tGUEST\tX\tY\tZ\tCELL\tID")
	for _, p := range a.Players {
		fmt.Fprintf(w, "%s\t%v\t%d\t%d\t%d\t%s\t%s\n", p.Name, p.Guest, p.X, p.Y, p.Z, p.Cell, p.ID)
	}
}

// shownMissing is the maximum number of missing cells in the table.
const shownMissing = 10

// printGaps prints what of the area has no region, and what is missing.
func printGaps(w io.Writer, a admin.Area) {
	if n := len(a.Unfounded); n > 0 {
		fmt.Fprintf(w, "\n%s of the area without a region: nobody has been there.\n", english.Plural(n, "cell", ""))
	}
	for i, m := range a.Missing {
		if i == 0 {
			fmt.Fprintf(w, "\nThe list is not complete: nothing is known of %s.\n", english.Plural(len(a.Missing), "cell", ""))
		}
		if i == shownMissing {
			fmt.Fprintf(w, "%d more (--json lists all)\n", len(a.Missing)-i)
			break
		}
		fmt.Fprintf(w, "%s: %s\n", m.Cell, m.Why)
	}
}
