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
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// recoverTime bounds the recovery of one region.
const recoverTime = 8 * time.Second

// allLost is the flag, and the name, for all regions that have lost the majority of their members.
const allLost = "all-lost"

type planAnswer struct {
	Plans []region.Recovery `json:"plans"`
	Error string            `json:"error,omitempty"`
}

type doneAnswer struct {
	Released []string `json:"told,omitempty"`   // peers that have released it
	Missed   []string `json:"missed,omitempty"` // peers that could not be reached
	Error    string   `json:"error,omitempty"`
}

func newRegion() *cobra.Command {
	c := &cobra.Command{
		Use: "region", Short: "Repair a region: compare its replicas, recover it after a loss, release it from quarantine",
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
		Use: "recover CELL|catalog|--all-lost", Short: "Recover a region from one replica after most of its members are lost for good",
		Long: "Recreates a region from the replica on this node, after the majority of its members is lost for good.\n" +
			"Edits that only the lost members stored are lost. The command shows its plan and asks for confirmation;\n" +
			"--yes skips the question. CELL is a cell as voxeld regions and voxeld doctor print it. If the catalog is\n" +
			"lost too, recover it first: its name is catalog. --all-lost recovers the catalog and all lost regions of\n" +
			"which this node has a replica.",
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
	c.Flags().BoolVar(&all, allLost, false, "recover the catalog and all regions on this node that have lost most of their members")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
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
		if err := printPlan(out, p); err != nil {
			return err
		}
		if p.Refused == "" {
			able = append(able, p)
		}
	}
	if len(able) == 0 {
		if name == allLost && len(plan.Plans) == 0 {
			fmt.Fprintln(out, "No region on this node has lost most of its members.")
			return nil
		}
		return errors.New("nothing can be recovered here")
	}
	fmt.Fprintf(out, "\nThis node will run %s alone, from its own replica. Edits that only the missing members stored are lost.\n"+
		"If a missing member comes back, its replica is deleted and replaced.\n", plural(len(able), "this region", "these regions"))
	if !yes {
		if err := confirm(c.InOrStdin(), out); err != nil {
			return err
		}
	}
	failed := 0
	for _, p := range able {
		var done doneAnswer
		err := postNode(ctx, socket, "/recovery?region="+url.QueryEscape(p.Name), &done)
		if err == nil && done.Error != "" {
			err = errors.New(done.Error)
		}
		if err != nil {
			failed++
			fmt.Fprintf(out, "%s: not recovered: %v\n", p.Name, err)
			continue
		}
		fmt.Fprintf(out, "%s: recovered; other nodes become members automatically\n", p.Name)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d not recovered", failed, len(able))
	}
	return nil
}

// confirm asks for confirmation at a terminal. Scripts must pass --yes.
func confirm(in io.Reader, out io.Writer) error {
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			return usageError{errors.New("nothing was done: pass --yes to confirm")}
		}
	}
	fmt.Fprint(out, "Continue? Type yes: ")
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

// printPlan prints the state of a region's replicas, and why it cannot be recovered here, if so.
func printPlan(out io.Writer, p region.Recovery) error {
	fmt.Fprintf(out, "\n%s, %d voting members\n", p.Name, p.Voters)
	w := tabwriter.NewWriter(out, 2, 8, 2, ' ', 0)
	fmt.Fprintln(w, "  MEMBER\tLAST INDEX\tTERM\tAPPLIED\tSTATE")
	for _, c := range p.Copies {
		state := c.Missing
		switch {
		case state == "" && c.Peer == p.Best:
			state = "alive, most complete"
		case state == "":
			state = "alive"
		case c.Heard.IsZero():
			state += "; not seen since this node started"
		default:
			state += "; last seen " + time.Since(c.Heard).Round(time.Second).String() + " ago"
		}
		if c.Learner {
			state += " (learner, no vote yet)"
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
		fmt.Fprintf(out, "  cannot be recovered here: %s\n", p.Refused)
	}
	return nil
}

func newRelease() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "release CELL|catalog", Short: "Reopen a quarantined region on all its members",
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
			if err := postNode(c.Context(), cfg.AdminSocket(), "/release?region="+url.QueryEscape(args[0]), &done); err != nil {
				return err
			}
			if done.Error != "" {
				return errors.New(done.Error)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: released on %d of its members\n", args[0], len(done.Released))
			if len(done.Missed) > 0 {
				return fmt.Errorf("these members could not be reached: %s; release the region there when they are back, or restart them", strings.Join(done.Missed, ", "))
			}
			return nil
		},
	}
	addOptions(c.Flags(), &file, "data-dir", "admin")
	return c
}

// negativeCell matches a cell west of the world's origin, which looks like a flag.
var negativeCell = regexp.MustCompile(`^-[0-9]+,-?[0-9]+/[01]*$`)

// cellsLast moves cells that look like flags behind "--", so that they can be typed as they are printed.
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

// findRegions returns the regions of this node with the name.
func (n *node) findRegions(name string) ([]nodemsg.Region, error) {
	all, err := n.regions.Memberships()
	if err != nil || name == allLost {
		return all, err
	}
	for _, info := range all {
		if region.Name(info) == name || fmt.Sprintf("%016x", info.ID) == name {
			return []nodemsg.Region{info}, nil
		}
	}
	return nil, fmt.Errorf("this node has no replica of %q: pass a cell as voxeld regions prints it, or catalog, on a node that voxeld doctor names", name)
}

func (n *node) answerPlan(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), recoverTime)
	defer cancel()
	name := r.URL.Query().Get("region")
	all, err := n.findRegions(name)
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
	all, err := n.findRegions(r.URL.Query().Get("region"))
	if err == nil && len(all) != 1 {
		err = errors.New("name one region")
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
	all, err := n.findRegions(r.URL.Query().Get("region"))
	if err == nil && len(all) != 1 {
		err = errors.New("name one region")
	}
	var answer doneAnswer
	if err == nil {
		answer.Released, answer.Missed, err = n.regions.Release(ctx, all[0].ID)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	reply(w, answer)
}
