package operate

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/region"
)

func newRegion() *cobra.Command {
	c := &cobra.Command{
		Use: "region", Short: "Repair a region: compare its replicas, recover it after a loss, release it from quarantine; split and merge it",
		Example: "  voxeld region scrub --all\n  voxeld region recover 0,0/0110",
		Args:    cli.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newScrub(), newRecover(), newRelease(), newSplit(), newMerge())
	return c
}

func newRecover() *cobra.Command {
	var all, yes, anew, oldCopy bool
	var from []string
	c := &cobra.Command{
		Use: "recover CELL|catalog|--all-lost", Short: "Recover a region from one replica after most of its members are lost for good",
		Long: "Recreates a region from the replica on this node, after the majority of its members is lost for good.\n" +
			"Edits that only the lost members stored are lost. The command shows its plan and asks for confirmation;\n" +
			"--yes skips the question. CELL is a cell as voxeld regions and voxeld doctor print it. If the catalog is\n" +
			"lost too, recover it first: its name is catalog. --all-lost recovers the catalog and all lost regions of\n" +
			"which this node has a replica.\n\n" +
			"If the data of this node was put back to an earlier state, its replicas are old copies: they lack what was\n" +
			"acknowledged since, and are offered only if no good replica is left. That is confirmed separately: type\n" +
			"'" + oldCopyText + "', or pass --" + admin.OldCopy + " together with --yes. A newer backup is better: --from.\n\n" +
			"If no replica is left on any node, run the command on the node that leads the catalog, with --from and a backup,\n" +
			"or with --anew: the land is then as it was generated, and what was built there is lost.",
		Example: "  voxeld region recover 0,0/0110\n  voxeld region recover 0,0/0110 --from world.voxback\n  voxeld region recover 0,0/0110 --anew\n  voxeld region recover catalog\n  voxeld region recover --all-lost --yes",
		Args: func(c *cobra.Command, args []string) error {
			if all && len(args) == 0 || !all && len(args) == 1 {
				return nil
			}
			return cli.Usage(fmt.Errorf("%s takes one cell, or catalog, or --%s; see --help", c.CommandPath(), admin.AllLost))
		},
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		name := admin.AllLost
		if !all {
			name = args[0]
		}
		if oldCopy && !yes {
			return cli.Usage(fmt.Errorf("--%s is for scripts, together with --yes; without them the command asks", admin.OldCopy))
		}
		if anew || len(from) > 0 {
			if all || anew && len(from) > 0 || name == "catalog" {
				return cli.Usage(errors.New("--anew and --from take one cell, and exclude each other; if the catalog is lost without a replica, see voxeld restore"))
			}
			return replaceRegion(c, socket, name, from, yes)
		}
		return recoverRegions(c, socket, name, yes, oldCopy)
	})
	c.Flags().BoolVar(&all, admin.AllLost, false, "recover the catalog and all regions on this node that have lost most of their members")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	c.Flags().BoolVar(&oldCopy, admin.OldCopy, false, "with --yes: if no good replica is left, use an old copy; what was acknowledged after it was made is lost")
	c.Flags().BoolVar(&anew, "anew", false, "no replica is left: found the region anew, as it was generated; what was built there is lost")
	c.Flags().StringArrayVar(&from, "from", nil, "no replica is left: put back the region of this backup; repeat it for incremental backups, the full one first")
	return c
}

// recoverRegions shows the plan, asks, and carries it out. Old copies are only used if that is confirmed separately.
func recoverRegions(c *cobra.Command, socket, name string, yes, oldCopy bool) error {
	ctx, out := c.Context(), c.OutOrStdout()
	var plan admin.Plan
	if err := admin.GetWithin(ctx, 0, socket, "/recovery?region="+url.QueryEscape(name), &plan); err != nil {
		return err
	}
	if plan.Error != "" {
		return errors.New(plan.Error)
	}
	var good, old []region.RecoveryPlan
	for _, p := range plan.Plans {
		if err := printPlan(out, p); err != nil {
			return err
		}
		switch {
		case p.Refused != "":
		case p.Old:
			old = append(old, p)
		default:
			good = append(good, p)
		}
	}
	if len(good)+len(old) == 0 {
		if name == admin.AllLost && len(plan.Plans) == 0 {
			fmt.Fprintln(out, "No region on this node has lost most of its members.")
			return nil
		}
		return errors.New("nothing can be recovered here")
	}
	fmt.Fprintln(out, "\nThis node will be the only member at first. If a missing member comes back, its replica is deleted and replaced.")
	in := bufio.NewReader(c.InOrStdin())
	if !yes && len(good) > 0 {
		question := fmt.Sprintf("Recover %s from good replicas?", english.Plural(len(good), "region", ""))
		if err := confirm(c.InOrStdin(), in, out, question, "yes", "--yes"); err != nil {
			return err
		}
	}
	if len(old) > 0 && (!yes || !oldCopy) {
		question := fmt.Sprintf("\nLast resort: of %s only an old copy is left. What was acknowledged after it was made is lost for good,\n"+
			"unless a missing node can still be started or a newer backup exists (--from). Use the old %s?",
			english.Plural(len(old), "region", ""), english.PluralWord(len(old), "copy", ""))
		err := errSkipped
		if !yes {
			err = confirm(c.InOrStdin(), in, out, question, oldCopyText, "--yes --"+admin.OldCopy)
		}
		switch {
		case err != nil && len(good) == 0:
			return err
		case err != nil:
			fmt.Fprintf(out, "%s left out: %v\n", english.Plural(len(old), "region", ""), err)
			old = nil
		}
	}
	return recoverAll(ctx, out, socket, good, old)
}

// oldCopyText is what an operator types to allow that old copies are used.
const oldCopyText = "old copy"

// errSkipped means that a script did not allow old copies.
var errSkipped = fmt.Errorf("only an old copy is left, and what was acknowledged after it was made would be lost: pass --%s as well to use it", admin.OldCopy)

// recoverAll recovers the regions, the catalog first, and says what became of each.
func recoverAll(ctx context.Context, out io.Writer, socket string, good, old []region.RecoveryPlan) error {
	all := slices.Concat(good, old)
	slices.SortStableFunc(all, func(a, b region.RecoveryPlan) int { return cmp.Compare(a.Region, b.Region) })
	failed := 0
	for _, p := range all {
		path := "/recovery?region=" + url.QueryEscape(p.Name)
		if p.Old {
			path += "&" + admin.OldCopy
		}
		var done admin.Done
		err := admin.PostWithin(ctx, 0, socket, path, &done)
		if err == nil && done.Error != "" {
			err = errors.New(done.Error)
		}
		if err != nil {
			failed++
			fmt.Fprintf(out, "%s: not recovered: %v\n", p.Name, err)
			continue
		}
		fmt.Fprintf(out, "%s: recovered%s; other nodes become members automatically\n", p.Name, map[bool]string{true: " from the old copy"}[p.Old])
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d not recovered", failed, len(all))
	}
	return nil
}

// confirm asks a question at a terminal, which is answered by typing the text want. Scripts must pass the flags
// instead.
func confirm(terminal io.Reader, in *bufio.Reader, out io.Writer, question, want, flags string) error {
	if f, ok := terminal.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			return cli.Usage(fmt.Errorf("nothing was done: pass %s to confirm", flags))
		}
	}
	fmt.Fprintf(out, "%s Type '%s' to confirm: ", question, want)
	answer, err := in.ReadString('\n')
	if strings.TrimSpace(answer) != want {
		return errors.Join(errors.New("not confirmed"), ignoreEnd(err))
	}
	return nil
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// printPlan prints the state of a region's replicas, and from which it can be recovered here and what is lost then, or
// why it cannot.
func printPlan(out io.Writer, p region.RecoveryPlan) error {
	fmt.Fprintf(out, "\n%s, %s\n", p.Name, english.Plural(p.Voters, "voting member", ""))
	w := tabwriter.NewWriter(out, 2, 8, 2, ' ', 0)
	fmt.Fprintln(w, "  MEMBER\tLAST INDEX\tTERM\tAPPLIED\tSTATE")
	for _, c := range p.Copies {
		state := c.Missing
		switch {
		case c.Outdated:
			state = "old copy: its data was put back to an earlier state" + reach(c.Until)
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
	switch {
	case p.Refused != "":
		fmt.Fprintf(out, "  cannot be recovered here: %s\n", p.Refused)
	case p.Old:
		fmt.Fprintf(out, "  recovered from: the old copy on this node (%s)%s\n  lost: everything that was acknowledged there after it was made\n", p.Best, reach(p.Until))
	default:
		fmt.Fprintf(out, "  recovered from: the replica on this node (%s)\n  lost: edits that only the members that do not answer have stored\n", p.Best)
	}
	return nil
}

// reach returns a part of a sentence that says how far an old copy reaches.
func reach(until time.Time) string {
	if until.IsZero() {
		return ", of an unknown time"
	}
	return fmt.Sprintf(", of about %s (%s ago)", until.Local().Format("2006-01-02 15:04:05"), time.Since(until).Round(time.Second))
}

func newRelease() *cobra.Command {
	c := &cobra.Command{
		Use: "release CELL|catalog", Short: "Reopen a quarantined region on all its members",
		Example: "  voxeld region release 0,0/0110",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return cli.Usage(fmt.Errorf("%s takes one cell, or catalog; see --help", c.CommandPath()))
		},
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		var done admin.Done
		if err := admin.Post(c.Context(), socket, "/release?region="+url.QueryEscape(args[0]), &done); err != nil {
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
	})
	return c
}
