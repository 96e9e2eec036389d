package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
)

// scrubAnswer is what the scrub of one region came to.
type scrubAnswer struct {
	ID       string   `json:"id"`
	Cell     string   `json:"cell"`
	Members  int      `json:"members"`
	Heard    int      `json:"heard"`
	Parts    int      `json:"parts"`
	Damaged  int      `json:"damaged"`
	Repaired int      `json:"repaired"`
	Open     []string `json:"open"`
	Error    string   `json:"error,omitempty"`
}

func (n *node) answerScrub(w http.ResponseWriter, r *http.Request) {
	var all []region.Scrubbed
	if name := r.URL.Query().Get("cell"); name == "" {
		all = n.regions.ScrubAll(r.Context())
	} else {
		cell, err := grid.ParseCell(name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		all = append(all, n.regions.Scrub(r.Context(), cell))
	}
	answer := []scrubAnswer{}
	for _, s := range all {
		a := scrubAnswer{
			ID: fmt.Sprintf("%016x", s.Region.ID), Cell: s.Region.Cell.String(), Members: s.Members, Heard: s.Heard,
			Parts: s.Parts, Damaged: s.Damaged, Repaired: s.Repaired, Open: append([]string{}, s.Open...),
		}
		if s.Err != nil {
			a.Error = s.Err.Error()
		}
		answer = append(answer, a)
	}
	reply(w, answer)
}

var errDamageLeft = errors.New("not everything is sound: see above")

func newScrub() *cobra.Command {
	var file string
	var asJSON, all bool
	c := &cobra.Command{
		Use:   "scrub CELL | --all",
		Short: "Compare the copies of a region on all its nodes, and repair damaged ones",
		Long: "Compares what all members of a region have in memory and on disk, at one place of its log, and repairs\n" +
			"what a minority has wrong. CELL is as voxeld regions prints it; --all is all regions that this node leads,\n" +
			"and the closed ones that it looks after. It fails if anything is not sound in the end.\n" +
			"Write -- before a CELL that begins with a minus.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return usageError{fmt.Errorf("name one cell, or --all; see %s --help", c.CommandPath())}
			}
			cfg, err := loadConfig(c, file)
			if err != nil {
				return err
			}
			path := "/region/scrub"
			if len(args) == 1 {
				if _, err := grid.ParseCell(args[0]); err != nil {
					return usageError{err}
				}
				path += "?" + url.Values{"cell": args}.Encode()
			}
			var answer []scrubAnswer
			if err := askNodeFor(c.Context(), 0, cfg.AdminSocket(), path, &answer); err != nil {
				return err
			}
			return tellScrub(c, answer, asJSON)
		},
	}
	addOptions(c.Flags(), &file, "data-dir", "admin")
	c.Flags().BoolVar(&all, "all", false, "all regions that this node looks after")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func tellScrub(c *cobra.Command, answer []scrubAnswer, asJSON bool) error {
	var left error
	for _, a := range answer {
		if a.Error != "" || len(a.Open) > 0 {
			left = errDamageLeft
		}
	}
	if asJSON {
		return errors.Join(printJSON(c.OutOrStdout(), answer), left)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "REGION\tCELL\tCOPIES\tPARTS\tDAMAGED\tREPAIRED\tLEFT")
	for _, a := range answer {
		rest := append([]string{}, a.Open...)
		if a.Error != "" {
			rest = append(rest, "not scrubbed: "+a.Error)
		}
		fmt.Fprintf(w, "%s\t%s\t%d of %d\t%d\t%d\t%d\t%s\n", a.ID, a.Cell, a.Heard, a.Members, a.Parts, a.Damaged, a.Repaired, strings.Join(rest, "; "))
	}
	return errors.Join(w.Flush(), left)
}
