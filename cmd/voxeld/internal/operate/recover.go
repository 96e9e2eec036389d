package operate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/region"
)

func newRegion() *cobra.Command {
	c := &cobra.Command{
		Use: "region", Short: "Repair a region: compare its replicas, recover it after a loss, release it from quarantine; split it",
		Example: "  voxeld region scrub --all\n  voxeld region recover 0,0/0110",
		Args:    cli.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newScrub(), newRecover(), newRelease(), newSplit())
	return c
}

func newRecover() *cobra.Command {
	var file string
	var all, yes, anew bool
	var from []string
	c := &cobra.Command{
		Use: "recover CELL|catalog|--all-lost", Short: "Recover a region from one replica after most of its members are lost for good",
		Long: "Recreates a region from the replica on this node, after the majority of its members is lost for good.\n" +
			"Edits that only the lost members stored are lost. The command shows its plan and asks for confirmation;\n" +
			"--yes skips the question. CELL is a cell as voxeld regions and voxeld doctor print it. If the catalog is\n" +
			"lost too, recover it first: its name is catalog. --all-lost recovers the catalog and all lost regions of\n" +
			"which this node has a replica.\n\n" +
			"If no replica is left on any node, run the command on the node that leads the catalog, with --from and a backup,\n" +
			"or with --anew: the land is then as it was generated, and what was built there is lost.",
		Example: "  voxeld region recover 0,0/0110\n  voxeld region recover 0,0/0110 --from world.voxback\n  voxeld region recover 0,0/0110 --anew\n  voxeld region recover catalog\n  voxeld region recover --all-lost --yes",
		Args: func(c *cobra.Command, args []string) error {
			if all && len(args) == 0 || !all && len(args) == 1 {
				return nil
			}
			return cli.Usage(fmt.Errorf("%s takes one cell, or catalog, or --%s; see --help", c.CommandPath(), admin.AllLost))
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := cli.LoadConfig(c, file)
			if err != nil {
				return err
			}
			name := admin.AllLost
			if !all {
				name = args[0]
			}
			if anew || len(from) > 0 {
				if all || anew && len(from) > 0 || name == "catalog" {
					return cli.Usage(errors.New("--anew and --from take one cell, and exclude each other; if the catalog is lost without a replica, see voxeld restore"))
				}
				return replaceRegion(c, cfg.AdminSocket(), name, from, yes)
			}
			return recoverRegions(c, cfg.AdminSocket(), name, yes)
		},
	}
	cli.AddOptions(c, &file, "data-dir", "admin")
	c.Flags().BoolVar(&all, admin.AllLost, false, "recover the catalog and all regions on this node that have lost most of their members")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	c.Flags().BoolVar(&anew, "anew", false, "no replica is left: found the region anew, as it was generated; what was built there is lost")
	c.Flags().StringArrayVar(&from, "from", nil, "no replica is left: put back the region of this backup; repeat it for incremental backups, the full one first")
	return c
}

// recoverRegions shows the plan, asks, and carries it out.
func recoverRegions(c *cobra.Command, socket, name string, yes bool) error {
	ctx, out := c.Context(), c.OutOrStdout()
	var plan admin.Plan
	if err := admin.Get(ctx, socket, "/recovery?region="+url.QueryEscape(name), &plan); err != nil {
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
		if name == admin.AllLost && len(plan.Plans) == 0 {
			fmt.Fprintln(out, "No region on this node has lost most of its members.")
			return nil
		}
		return errors.New("nothing can be recovered here")
	}
	fmt.Fprintf(out, "\nThis node will run %s alone, from its own replica. Edits that only the missing members stored are lost.\n"+
		"If a missing member comes back, its replica is deleted and replaced.\n", cli.Plural(len(able), "this region", "these regions"))
	if !yes {
		if err := confirm(c.InOrStdin(), out); err != nil {
			return err
		}
	}
	failed := 0
	for _, p := range able {
		var done admin.Done
		err := admin.Post(ctx, socket, "/recovery?region="+url.QueryEscape(p.Name), &done)
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
			return cli.Usage(errors.New("nothing was done: pass --yes to confirm"))
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
		case c.LastHeard.IsZero():
			state += "; not seen since this node started"
		default:
			state += "; last seen " + time.Since(c.LastHeard).Round(time.Second).String() + " ago"
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
		Example: "  voxeld region release 0,0/0110",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return cli.Usage(fmt.Errorf("%s takes one cell, or catalog; see --help", c.CommandPath()))
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := cli.LoadConfig(c, file)
			if err != nil {
				return err
			}
			var done admin.Done
			if err := admin.Post(c.Context(), cfg.AdminSocket(), "/release?region="+url.QueryEscape(args[0]), &done); err != nil {
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
	cli.AddOptions(c, &file, "data-dir", "admin")
	return c
}
