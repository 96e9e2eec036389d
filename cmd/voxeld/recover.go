package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
)

// recoverTime bounds the recovery of one region.
const recoverTime = 8 * time.Second

// allLost is the name that stands for every region that has lost the majority of its members.
const allLost = "all-lost"

type planAnswer struct {
	Plans []region.Recovery `json:"plans"`
	Error string            `json:"error,omitempty"`
}

type doneAnswer struct {
	Told   []string `json:"told,omitempty"`   // peers that have released it
	Missed []string `json:"missed,omitempty"` // peers that could not be told
	Error  string   `json:"error,omitempty"`
}

func newRegion() *cobra.Command {
	c := &cobra.Command{
		Use: "region", Short: "Mend a region: compare its copies, recover it after a loss, release it from quarantine",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newScrub(), newRecover(), newRelease())
	return c
}

func newRecover() *cobra.Command {
	var file string
	var all, yes bool
	c := &cobra.Command{
		Use: "recover CELL|catalog|--all-lost", Short: "Go on with one copy of a region after most of them are lost for good",
		Long: "Makes a region anew out of the one copy on this node, after the majority of its members is lost for good.\n" +
			"Edits that were acknowledged by the lost members only are lost. Says what it is about to do, and asks; --yes\n" +
			"answers. CELL is a cell as voxeld regions and voxeld doctor print it, catalog the catalog itself, which must\n" +
			"be recovered first if it is lost, too. --all-lost takes the catalog and every region of this node that is lost.",
		Args: func(c *cobra.Command, args []string) error {
			if all && len(args) == 0 || !all && len(args) == 1 {
				return nil
			}
			return usageError{fmt.Errorf("%s takes one cell, or catalog, or --%s; see --help", c.CommandPath(), allLost)}
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := loadConfig(c, file)
			if err != nil {
				return err
			}
			name := allLost
			if !all {
				name = args[0]
			}
			return recoverRegions(c, cfg.AdminSocket(), name, yes)
		},
	}
	addOptions(c.Flags(), &file, "data-dir", "admin")
	c.Flags().BoolVar(&all, allLost, false, "the catalog and all regions on this node that have lost most of their members")
	c.Flags().BoolVar(&yes, "yes", false, "do it without asking")
	return c
}

// recoverRegions shows the plan, asks, and carries it out.
func recoverRegions(c *cobra.Command, socket, name string, yes bool) error {
	ctx, out := c.Context(), c.OutOrStdout()
	var plan planAnswer
	if err := askNode(ctx, socket, "/recovery?region="+url.QueryEscape(name), &plan); err != nil {
		return err
	}
	if plan.Error != "" {
		return errors.New(plan.Error)
	}
	var able []region.Recovery
	for _, p := range plan.Plans {
		if err := tellPlan(out, p); err != nil {
			return err
		}
		if p.Refused == "" {
			able = append(able, p)
		}
	}
	if len(able) == 0 {
		if name == allLost && len(plan.Plans) == 0 {
			fmt.Fprintln(out, "Nothing on this node is lost.")
			return nil
		}
		return errors.New("nothing can be recovered here")
	}
	fmt.Fprintf(out, "\nThis node goes on alone with what it has of %s. Edits that only the missing members had acknowledged are lost.\n"+
		"If the missing members come back, what they have is dropped, and they begin anew.\n", plural(len(able), "this region", "these regions"))
	if !yes {
		if err := confirm(c.InOrStdin(), out); err != nil {
			return err
		}
	}
	failed := 0
	for _, p := range able {
		var done doneAnswer
		err := tellNode(ctx, socket, "/recovery?region="+url.QueryEscape(p.Name), &done)
		if err == nil && done.Error != "" {
			err = errors.New(done.Error)
		}
		if err != nil {
			failed++
			fmt.Fprintf(out, "%s: not recovered: %v\n", p.Name, err)
			continue
		}
		fmt.Fprintf(out, "%s: recovered; other nodes become members by themselves\n", p.Name)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d not recovered", failed, len(able))
	}
	return nil
}

// confirm asks a person at a terminal. Scripts say --yes.
func confirm(in io.Reader, out io.Writer) error {
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			return usageError{errors.New("nothing was done: say --yes to go on")}
		}
	}
	fmt.Fprint(out, "Go on? Type yes: ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return errors.Join(errors.New("nothing was done"), ignoreEnd(err))
	}
	return nil
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// tellPlan prints what is known of a region's copies, and whether it can be recovered.
func tellPlan(out io.Writer, p region.Recovery) error {
	fmt.Fprintf(out, "\n%s, %d members with a vote\n", p.Name, p.Voters)
	w := tabwriter.NewWriter(out, 2, 8, 2, ' ', 0)
	fmt.Fprintln(w, "  MEMBER\tLOG ENDS AT\tTERM\tIN THE LAND\tSTATE")
	for _, c := range p.Copies {
		state := c.Missing
		switch {
		case state == "" && c.Peer == p.Best:
			state = "lives, has the most"
		case state == "":
			state = "lives"
		case c.Heard.IsZero():
			state += "; never heard of since this node was started"
		default:
			state += "; heard of last " + time.Since(c.Heard).Round(time.Second).String() + " ago"
		}
		if c.Learner {
			state += " (no vote yet)"
		}
		if c.Missing != "" {
			fmt.Fprintf(w, "  %s\t\t\t\t%s\n", c.Peer, state)
		} else {
			fmt.Fprintf(w, "  %s\t%d\t%d\t%d\t%s\n", c.Peer, c.Last, c.Term, c.Applied, state)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if p.Refused != "" {
		fmt.Fprintf(out, "  not here: %s\n", p.Refused)
	}
	return nil
}

func newRelease() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "release CELL|catalog", Short: "Try a quarantined region again, on all its members",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return usageError{fmt.Errorf("%s takes one cell, or catalog; see --help", c.CommandPath())}
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := loadConfig(c, file)
			if err != nil {
				return err
			}
			var done doneAnswer
			if err := tellNode(c.Context(), cfg.AdminSocket(), "/release?region="+url.QueryEscape(args[0]), &done); err != nil {
				return err
			}
			if done.Error != "" {
				return errors.New(done.Error)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: released on %d of its members\n", args[0], len(done.Told))
			if len(done.Missed) > 0 {
				return fmt.Errorf("not told: %s; release it there when they are back, or restart them", strings.Join(done.Missed, ", "))
			}
			return nil
		},
	}
	addOptions(c.Flags(), &file, "data-dir", "admin")
	return c
}

// negativeCell is a cell west of the world's origin, which looks like a flag.
var negativeCell = regexp.MustCompile(`^-[0-9]+,-?[0-9]+/[01]*$`)

// cellsLast makes cells that look like flags arguments, so that people can type them as they are printed.
func cellsLast(args []string) []string {
	var cells []string
	rest := slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		if !negativeCell.MatchString(arg) {
			return false
		}
		cells = append(cells, arg)
		return true
	})
	if len(cells) == 0 || slices.Contains(rest, "--") {
		return args
	}
	return append(append(rest, "--"), cells...)
}

// named finds the regions of this node that an operator means.
func (n *node) named(name string) ([]wire.Region, error) {
	all, err := n.regions.Memberships()
	if err != nil || name == allLost {
		return all, err
	}
	for _, info := range all {
		if region.Name(info) == name || fmt.Sprintf("%016x", info.ID) == name {
			return []wire.Region{info}, nil
		}
	}
	return nil, fmt.Errorf("this node has no copy of %q: say a cell as voxeld regions prints it, or catalog, on a node that voxeld doctor names", name)
}

func (n *node) answerPlan(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), recoverTime)
	defer cancel()
	name := r.URL.Query().Get("region")
	all, err := n.named(name)
	if err != nil {
		reply(w, planAnswer{Error: err.Error()})
		return
	}
	ids := make([]uint64, len(all))
	for i, info := range all {
		ids[i] = info.ID
	}
	plans, err := n.regions.PlanRecovery(ctx, ids)
	if err != nil {
		reply(w, planAnswer{Error: err.Error()})
		return
	}
	var answer planAnswer
	for _, p := range plans {
		if name != allLost || !p.Alive {
			answer.Plans = append(answer.Plans, p)
		}
	}
	reply(w, answer)
}

func (n *node) answerRecover(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), recoverTime)
	defer cancel()
	all, err := n.named(r.URL.Query().Get("region"))
	if err == nil && len(all) != 1 {
		err = errors.New("one region at a time")
	}
	if err == nil {
		err = n.regions.Recover(ctx, all[0].ID)
	}
	var answer doneAnswer
	if err != nil {
		answer.Error = err.Error()
	}
	reply(w, answer)
}

func (n *node) answerRelease(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), recoverTime)
	defer cancel()
	all, err := n.named(r.URL.Query().Get("region"))
	if err == nil && len(all) != 1 {
		err = errors.New("one region at a time")
	}
	var answer doneAnswer
	if err == nil {
		answer.Told, answer.Missed, err = n.regions.Release(ctx, all[0].ID)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	reply(w, answer)
}
