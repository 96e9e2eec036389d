package historycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newHistory(), newRollback(), newRollbacks()}
}

// queryTime bounds a query.
const queryTime = 20 * time.Second

func newHistory() *cobra.Command {
	var at, area, of, since, until string
	var asJSON bool
	last := 100
	c := &cobra.Command{
		Use: "history", Short: "List who changed which blocks of an area", Args: cli.NoArgs,
		Long: "Lists who changed which blocks of an area, when, and from what to what, the newest changes first. All nodes of the world are asked that\n" +
			"lead regions there. How long changes are kept is set by history_keep and history_size.",
		Example: "  voxeld history --at 10,64,-3\n  voxeld history --player eve --since 2h --area -512,-512:512,512 --last 1000 --json",
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		if at != "" {
			area = at + ":" + at
		}
		if area == "" {
			return cli.Usage(errors.New("name a block with --at X,Y,Z, or an area with --area X1,Z1:X2,Z2"))
		}
		if _, err := grid.ParseBox(area); err != nil {
			return cli.Usage(err)
		}
		query := url.Values{"area": {area}, "player": {of}, "since": {since}, "until": {until}, "last": {strconv.Itoa(last)}}
		var answer Changes
		if err := admin.GetWithin(c.Context(), queryTime, socket, "/history?"+query.Encode(), &answer); err != nil {
			return err
		}
		if asJSON {
			return cli.PrintJSON(c.OutOrStdout(), answer)
		}
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "TIME\tBY\tX\tY\tZ\tOLD\tNEW")
		for _, one := range answer.Changes {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", one.Time.Format(time.RFC3339), one.By, one.X, one.Y, one.Z, one.Old, one.New)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if answer.More {
			fmt.Fprintf(c.OutOrStdout(), "\nThere are older changes: list more with --last, or a smaller area.\n")
		}
		printMissing(c, answer.Missing)
		return nil
	})
	flags := c.Flags()
	flags.StringVar(&at, "at", "", "the block `X,Y,Z`")
	flags.StringVar(&area, "area", "", "an area, `X1,Z1:X2,Z2` or X1,Y1,Z1:X2,Y2,Z2, in blocks")
	flags.StringVar(&of, "player", "", "only changes of this player: a `NAME` or an id, or several with commas")
	flags.StringVar(&since, "since", "", "only changes of the last `TIME`, such as 30m, 2h or 7d")
	flags.StringVar(&until, "until", "", "only changes older than a `TIME`")
	flags.IntVar(&last, "last", last, "the `number` of changes, the newest")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printMissing(c *cobra.Command, missing []admin.AreaMissing) {
	for i, m := range missing {
		if i == 0 {
			fmt.Fprintf(c.OutOrStdout(), "\nThis is not complete: nothing is known of %s.\n", english.Plural(len(missing), "cell", ""))
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", m.Cell, m.Why)
	}
}

func newRollback() *cobra.Command {
	var area, since string
	var yes, asJSON bool
	var id int
	c := &cobra.Command{
		Use: "rollback PLAYER... --since TIME [--area AREA]", Short: "Undo players' changes of blocks", Args: cobra.MaximumNArgs(wire.MaxHistoryPlayers),
		Long: "Undoes what players have changed since a time: in an area, or wherever they have changed something. A PLAYER is a name, an id, or * for\n" +
			"everybody. Without --yes it only counts the blocks that would be changed. Blocks that somebody else has changed since then are left\n" +
			"alone. voxeld undo NUMBER takes a rollback back; pause, resume and abort control one. With --id it shows how far a rollback is,\n" +
			"until it is complete.",
		Example: "  voxeld rollback eve --since 2h --area -200,-200:200,200\n  voxeld rollback eve mallory --since 2h --yes\n  voxeld rollback --id 3",
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		if id != 0 {
			return watch(c, socket, id, asJSON)
		}
		if len(args) == 0 || since == "" {
			return cli.Usage(errors.New("name a player, and how far to go back with --since, such as voxeld rollback eve --since 2h"))
		}
		if _, err := grid.ParseBox(area); err != nil && area != "" {
			return cli.Usage(err)
		}
		preview, err := get(c.Context(), socket, url.Values{"player": args, "since": {since}, "area": {area}})
		if err != nil {
			return err
		}
		if !yes {
			if asJSON {
				return cli.PrintJSON(c.OutOrStdout(), preview)
			}
			text := english.Plural(preview.Left, "block", "")
			if preview.Left > 0 {
				text += fmt.Sprintf(" between %v and %v would be changed back. Add --yes to do so.", preview.From, preview.To)
			} else {
				text += " would be changed back."
			}
			fmt.Fprintln(c.OutOrStdout(), text)
			printOthers(c.OutOrStdout(), preview.Others)
			printMissing(c, preview.Missing)
			return nil
		}
		if preview.Command == "" {
			fmt.Fprintln(c.OutOrStdout(), "They have changed nothing.")
			printMissing(c, preview.Missing)
			return nil
		}
		printOthers(c.ErrOrStderr(), preview.Others)
		var ordered admin.Text
		if err := admin.Post(c.Context(), socket, "/policy?"+url.Values{"text": {preview.Command}}.Encode(), &ordered); err != nil {
			return err
		}
		if ordered.Error != "" {
			return errors.New(ordered.Error)
		}
		fmt.Fprintln(c.ErrOrStderr(), ordered.Text)
		if _, err := fmt.Sscanf(ordered.Text, "Rollback %d", &id); err != nil {
			return fmt.Errorf("the node answered %q", ordered.Text)
		}
		return watch(c, socket, id, asJSON)
	})
	flags := c.Flags()
	flags.StringVar(&area, "area", "", "an area, `X1,Z1:X2,Z2` or X1,Y1,Z1:X2,Y2,Z2, in blocks (default wherever the players have changed something)")
	flags.StringVar(&since, "since", "", "undo changes of the last `TIME`, such as 30m, 2h or 7d")
	flags.BoolVar(&yes, "yes", false, "carry it out, and show how far it is until it is complete")
	flags.IntVar(&id, "id", 0, "show how far the rollback with this `number` is")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printOthers(w io.Writer, others []Elsewhere) {
	for _, o := range others {
		fmt.Fprintf(w, "Too far away for the same rollback: %s between %v and %v. Undo them with --area %v:%v\n", english.Plural(o.Left, "change", ""), o.From, o.To, o.From, o.To)
	}
}

func get(ctx context.Context, socket string, query url.Values) (answer Rollback, err error) {
	return answer, admin.GetWithin(ctx, queryTime, socket, "/rollback?"+query.Encode(), &answer)
}

// watchEvery is how often a node is asked how far a rollback is.
const watchEvery = time.Second

// watch shows how far a rollback is, until it is complete.
func watch(c *cobra.Command, socket string, id int, asJSON bool) error {
	for {
		now, err := get(c.Context(), socket, url.Values{"id": {strconv.Itoa(id)}})
		if err != nil {
			return err
		}
		if (now.Complete || now.Aborted) && asJSON {
			return cli.PrintJSON(c.OutOrStdout(), now)
		}
		switch {
		case now.Aborted:
			fmt.Fprintf(c.OutOrStdout(), "Rollback %d was aborted after %s.\n", id, english.Plural(now.Changed, "block", ""))
			return nil
		case now.Complete:
			fmt.Fprintf(c.OutOrStdout(), "Rollback %d is complete: %s in %s.\n", id, english.Plural(now.Changed, "block", ""), english.Plural(now.Regions, "region", ""))
			return nil
		}
		state := ""
		if now.Paused {
			state = " (paused)"
		}
		fmt.Fprintf(c.ErrOrStderr(), "%d of %s, %d of %s%s\n", now.Changed, english.Plural(now.Changed+now.Left, "block", ""), now.Done, english.Plural(now.Regions, "region", ""), state)
		for _, m := range now.Missing {
			fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", m.Cell, m.Why)
		}
		select {
		case <-c.Context().Done():
			return c.Context().Err()
		case <-time.After(watchEvery):
		}
	}
}

func newRollbacks() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "rollbacks", Short: "List the rollbacks that were ordered", Args: cli.NoArgs, Example: "  voxeld rollbacks\n  voxeld rollbacks --json",
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		var all []Ordered
		if err := admin.Get(c.Context(), socket, "/rollbacks", &all); err != nil {
			return err
		}
		if asJSON {
			return cli.PrintJSON(c.OutOrStdout(), all)
		}
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "NUMBER\tTIME\tBY\tUNDOES\tSINCE\tFROM\tTO\tSTATE")
		for _, r := range all {
			what, since := r.Of, "-"
			if r.Undoes != 0 {
				what = fmt.Sprintf("rollback %d", r.Undoes)
			} else {
				since = r.Since.Format(time.RFC3339)
			}
			state := "-"
			switch {
			case r.Aborted:
				state = "aborted"
			case r.Paused:
				state = "paused"
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%v\t%v\t%s\n", r.ID, r.At.Format(time.RFC3339), r.By, what, since, r.From, r.To, state)
		}
		return w.Flush()
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
