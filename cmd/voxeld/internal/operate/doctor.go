package operate

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
)

// shownOfAKind is the maximum number of findings of one kind in the table: a node that is down can cause a thousand.
const shownOfAKind = 10

func newDoctor() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Find problems in the world and print what to do about them",
		Long: "Examines this node, the regions of the world and the nodes that hold them. This takes some seconds if\n" +
			"something is wrong. The exit code is 0 if no problem is found, else 1.",
		Example: "  voxeld doctor\n  voxeld doctor --data-dir /var/lib/voxeld --json",
		Args:    cli.NoArgs,
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		var health admin.Doctor
		if err := admin.Get(c.Context(), socket, "/doctor", &health); err != nil {
			return err
		}
		var err error
		if asJSON {
			err = cli.PrintJSON(c.OutOrStdout(), health)
		} else {
			err = printHealth(c.OutOrStdout(), health)
		}
		if n := len(health.Findings); err == nil && n > 0 {
			err = fmt.Errorf("%s found", english.Plural(n, "problem", ""))
		}
		return err
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// printHealth prints the findings as text: what is wrong and what to do, at most shownOfAKind of each kind.
func printHealth(out io.Writer, health admin.Doctor) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "examined\t%s (%d open) and the catalog\n", english.Plural(health.Regions, "region", ""), health.Awake)
	fmt.Fprintf(w, "nodes\t%d answered\n", health.Nodes)
	fmt.Fprintf(w, "access\t%s\n", accessText(health.Access))
	for _, what := range health.Unknown {
		fmt.Fprintf(w, "unknown\t%s\n", what)
	}
	for _, what := range health.Notes {
		fmt.Fprintf(w, "note\t%s\n", what)
	}
	if len(health.Findings) == 0 {
		fmt.Fprintf(w, "result\tno problems found\n")
		return w.Flush()
	}
	if err := w.Flush(); err != nil {
		return err
	}
	last, shown := "", 0
	for i, f := range health.Findings {
		if f.Kind != last {
			last, shown = f.Kind, 0
		}
		if shown++; shown <= shownOfAKind {
			fmt.Fprintf(out, "\n%s: %s\n  %s\n  do: %s\n", f.Kind, f.Subject, f.What, f.Do)
		}
		if more := shown - shownOfAKind; more > 0 && (i+1 == len(health.Findings) || health.Findings[i+1].Kind != f.Kind) {
			fmt.Fprintf(out, "\n%s: %d more (--json lists all)\n", f.Kind, more)
		}
	}
	_, err := fmt.Fprintln(out)
	return err
}
