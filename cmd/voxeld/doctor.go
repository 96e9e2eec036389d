package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/region"
)

// examineTime bounds an examination, within what askNode waits.
const examineTime = 8 * time.Second

// shownOfAKind is how many findings of one kind the table shows: a node that is down is behind a thousand of them.
const shownOfAKind = 10

func newDoctor() *cobra.Command {
	var file string
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with the world, and say what to do",
		Long: "Asks the node to examine itself, the regions of the world and the nodes that hold them. Takes some\n" +
			"seconds if something is wrong. The exit code is 0 if nothing is, else 1.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := loadConfig(c, file)
			if err != nil {
				return err
			}
			var health region.Health
			if err := askNode(c.Context(), cfg.AdminSocket(), "/doctor", &health); err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(c.OutOrStdout())
				e.SetIndent("", "  ")
				err = e.Encode(health)
			} else {
				err = tellHealth(c.OutOrStdout(), health)
			}
			if n := len(health.Findings); err == nil && n > 0 {
				err = fmt.Errorf("%d %s wrong", n, plural(n, "thing is", "things are"))
			}
			return err
		},
	}
	addOptions(c.Flags(), &file, "data-dir", "admin")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// tellHealth prints the findings for people: what is wrong, and below what to do, once for each kind that repeats.
func tellHealth(out io.Writer, health region.Health) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "examined\t%d %s, %d awake, and the catalog\n", health.Regions, plural(health.Regions, "region", "regions"), health.Awake)
	fmt.Fprintf(w, "nodes\t%d answered\n", health.Nodes)
	for _, what := range health.Unknown {
		fmt.Fprintf(w, "not known\t%s\n", what)
	}
	if len(health.Findings) == 0 {
		fmt.Fprintf(w, "result\tnothing is wrong\n")
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

// addOperations adds to the admin socket what doctor and region ask.
func (n *node) addOperations(mux *http.ServeMux) {
	mux.HandleFunc("GET /doctor", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), examineTime)
		defer cancel()
		reply(w, n.regions.Examine(ctx))
	})
	mux.HandleFunc("GET /recovery", func(w http.ResponseWriter, r *http.Request) { n.answerPlan(w, r) })
	mux.HandleFunc("POST /recovery", func(w http.ResponseWriter, r *http.Request) { n.answerRecover(w, r) })
	mux.HandleFunc("POST /release", func(w http.ResponseWriter, r *http.Request) { n.answerRelease(w, r) })
}
