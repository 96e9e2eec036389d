package operate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/gameserver"
	"github.com/voxelpopuli/voxeld/gameserver/handoff"
)

// DrainAnswer is the result of a drain, for scripts.
type DrainAnswer struct {
	Sessions int              `json:"sessions"` // at the start
	Targets  []handoff.Target `json:"rooms"`    // nodes that accept players
	Handed   int              `json:"regions_handed_over"`
	Kept     int              `json:"regions_kept"`
	Followed int              `json:"followed"`
	Cut      int              `json:"cut"`
	NoTarget int              `json:"homeless"`
	Took     time.Duration    `json:"took_ns"` // until the process ended
}

// newDrain returns the command that stops a node without disconnecting its players.
func newDrain() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "drain", Short: "Move this node's players and regions to other nodes, and stop it", Args: cli.NoArgs,
		Long: "Stops the node as SIGTERM does, and waits until the process has ended. Other nodes take over the regions\n" +
			"that this node leads. Its players are saved and continue at other nodes without a reload. Meanwhile\n" +
			"/readyz fails, and new players are sent to other nodes.",
		Example: "  voxeld drain --data-dir /var/lib/voxeld",
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		out := c.OutOrStdout()
		report := func(step admin.ShutdownStep) { printStep(out, step) }
		if asJSON {
			report = func(admin.ShutdownStep) {}
		}
		answer, err := drainNode(c.Context(), socket, report)
		if err != nil {
			return err
		}
		if asJSON {
			return cli.PrintJSON(out, answer)
		}
		fmt.Fprintf(out, "stopped after %v\n", answer.Took.Round(time.Millisecond))
		return nil
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, at the end")
	return c
}

var errCutShort = errors.New("the node ended without reporting a clean stop; see its log")

// drainNode stops a node, reports each step, and returns when its process has ended.
func drainNode(ctx context.Context, socket string, report func(admin.ShutdownStep)) (DrainAnswer, error) {
	start := time.Now()
	response, err := admin.Request(ctx, socket, http.MethodPost, "/drain")
	if err != nil {
		return DrainAnswer{}, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end below
	answer := DrainAnswer{Targets: []handoff.Target{}}
	var last admin.ShutdownStep
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			return answer, fmt.Errorf("read the progress of the node: %w", err)
		}
		answer.apply(last.DrainStep)
		report(last)
		if last.Step == admin.StepStopped {
			continue // the end of the stream is the end of the process
		}
		last = admin.ShutdownStep{}
	}
	answer.Took = time.Since(start)
	switch {
	case ctx.Err() != nil:
		return answer, fmt.Errorf("stopped waiting; the node continues to drain: %w", ctx.Err())
	case last.Step != admin.StepStopped:
		return answer, errors.Join(errCutShort, lines.Err())
	case last.Error != "":
		return answer, fmt.Errorf("the node did not stop cleanly: %s", last.Error)
	}
	return answer, nil
}

func (a *DrainAnswer) apply(step gameserver.DrainStep) {
	switch step.Step {
	case gameserver.StepBegun:
		a.Sessions = step.Sessions
	case gameserver.StepTargets:
		a.Targets = append(a.Targets, step.Targets...)
	case gameserver.StepRegions:
		a.Handed, a.Kept = step.Handed, step.Kept
	case gameserver.StepSessions:
		a.Followed, a.Cut, a.NoTarget = step.Followed, step.Cut, step.NoTarget
	}
}

// printStep prints a step as text.
func printStep(w io.Writer, step admin.ShutdownStep) {
	switch step.Step {
	case gameserver.StepBegun:
		if step.Sessions == 0 {
			fmt.Fprintln(w, "draining a node without players")
			break
		}
		fmt.Fprintf(w, "draining a node with %s\n", english.Plural(step.Sessions, "player", ""))
	case gameserver.StepTargets:
		if len(step.Targets) == 0 && step.Sessions > 0 {
			fmt.Fprintln(w, "no other node accepts players: they will reconnect to this node when it is back")
		}
		for _, target := range step.Targets {
			fmt.Fprintf(w, "%s accepts players; it has %d\n", target.URL, target.Sessions)
		}
	case gameserver.StepRegions:
		fmt.Fprintln(w, sentence("it leads no regions", []part{
			{step.Handed, "%d region is led by another node now", "%d regions are led by other nodes now"},
			{step.Kept, "%d region has no other member that can lead it: it pauses until this node is back", "%d regions have no other members that can lead them: they pause until this node is back"},
		}))
	case gameserver.StepSessions:
		fmt.Fprintln(w, sentence("no players had to move", []part{
			{step.Followed, "%d player moved to another node", "%d players moved to other nodes"},
			{step.Cut, "%d player was disconnected", "%d players were disconnected"},
			{step.NoTarget, "%d player had no node to move to", "%d players had no node to move to"},
		}))
	}
}

// part is a number, and what to say about it if it is one or more.
type part struct {
	n         int
	one, many string
}

// sentence joins the parts that are not zero. It returns none if all are.
func sentence(none string, parts []part) string {
	var all []string
	for _, p := range parts {
		if p.n > 0 {
			all = append(all, fmt.Sprintf(english.PluralWord(p.n, p.one, p.many), p.n))
		}
	}
	if len(all) == 0 {
		return none
	}
	return strings.Join(all, "; ")
}
