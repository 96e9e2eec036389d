package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/gameserver"
)

// drainAnswer is what became of a node that was drained, for scripts.
type drainAnswer struct {
	Sessions int               `json:"sessions"` // when it began
	Rooms    []gameserver.Room `json:"rooms"`    // nodes that took players
	Handed   int               `json:"regions_handed_over"`
	Kept     int               `json:"regions_kept"`
	Followed int               `json:"followed"`
	Cut      int               `json:"cut"`
	Homeless int               `json:"homeless"`
	Took     time.Duration     `json:"took_ns"` // until the process had ended
}

// newDrain makes the command that stops a node without its players' noticing much.
func newDrain() *cobra.Command {
	var file string
	var asJSON bool
	c := &cobra.Command{
		Use: "drain", Short: "Send the node's players and regions to other nodes, and stop it", Args: noArgs,
		Long: "Stops the node as SIGTERM does, and waits for its end: other nodes take over the regions that it leads,\n" +
			"its players are saved and go on at other nodes without a reload, and the process exits.\n" +
			"While that lasts /readyz says no, and newcomers are sent elsewhere.",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := loadConfig(c, file)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			tell := func(step farewellStep) { tellStep(out, step) }
			if asJSON {
				tell = func(farewellStep) {}
			}
			answer, err := drainNode(c.Context(), cfg.AdminSocket(), tell)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(out)
				e.SetIndent("", "  ")
				return e.Encode(answer)
			}
			fmt.Fprintf(out, "stopped after %v\n", answer.Took.Round(time.Millisecond))
			return nil
		},
	}
	addOptions(c.Flags(), &file, "data-dir", "admin")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, when it is over")
	return c
}

var errCutShort = errors.New("the node has ended without saying that it stopped in order; see its log")

// drainNode tells a node to stop, tells of each step, and returns when its process has ended.
func drainNode(ctx context.Context, socket string, tell func(farewellStep)) (drainAnswer, error) {
	start := time.Now()
	response, err := requestNode(ctx, socket, http.MethodPost, "/drain")
	if err != nil {
		return drainAnswer{}, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end below
	answer := drainAnswer{Rooms: []gameserver.Room{}}
	var last farewellStep
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			return answer, fmt.Errorf("hear the node: %w", err)
		}
		answer.take(last.DrainStep)
		tell(last)
		if last.Step == stepStopped {
			continue // the end of the stream is the end of the process
		}
		last = farewellStep{}
	}
	answer.Took = time.Since(start)
	switch {
	case ctx.Err() != nil:
		return answer, fmt.Errorf("the node goes on stopping; nobody waits for it: %w", ctx.Err())
	case last.Step != stepStopped:
		return answer, errors.Join(errCutShort, lines.Err())
	case last.Error != "":
		return answer, fmt.Errorf("the node has not stopped in order: %s", last.Error)
	}
	return answer, nil
}

func (a *drainAnswer) take(step gameserver.DrainStep) {
	switch step.Step {
	case gameserver.StepBegun:
		a.Sessions = step.Sessions
	case gameserver.StepRooms:
		a.Rooms = append(a.Rooms, step.Rooms...)
	case gameserver.StepRegions:
		a.Handed, a.Kept = step.Handed, step.Kept
	case gameserver.StepSessions:
		a.Followed, a.Cut, a.Homeless = step.Followed, step.Cut, step.Homeless
	}
}

// tellStep prints a step for people.
func tellStep(w io.Writer, step farewellStep) {
	switch step.Step {
	case gameserver.StepBegun:
		fmt.Fprintf(w, "draining a node with %d players\n", step.Sessions)
	case gameserver.StepRooms:
		if len(step.Rooms) == 0 {
			fmt.Fprintln(w, "no other node takes players: they will come back to this one")
		}
		for _, room := range step.Rooms {
			fmt.Fprintf(w, "%s takes players; it has %d\n", room.URL, room.Sessions)
		}
	case gameserver.StepRegions:
		fmt.Fprintf(w, "%d regions handed over, %d stay here, for no other node could lead them\n", step.Handed, step.Kept)
	case gameserver.StepSessions:
		fmt.Fprintf(w, "%d players went on at another node, %d did not leave in time, %d had nowhere to go\n", step.Followed, step.Cut, step.Homeless)
	}
}
