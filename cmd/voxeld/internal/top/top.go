package top

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/wire"
)

// New returns the command voxeld top.
func New() *cobra.Command {
	var once bool
	var every time.Duration
	c := &cobra.Command{
		Use: "top", Short: "Watch this node live: players, regions, ticks, traffic and commits",
		Long: "Shows this node's players, peers, traffic, ticks, commits and busiest regions, and refreshes them until q is\n" +
			"pressed. With --once it prints one view, of the first interval, and ends.",
		Example: "  voxeld top\n  voxeld top --every 5s\n  voxeld top --once --data-dir /var/lib/voxeld",
		Args:    cli.NoArgs,
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		if every < minEvery {
			return cli.Usage(fmt.Errorf("--every: %v is too short: choose at least %v", every, minEvery))
		}
		first, err := takeSample(c.Context(), socket)
		if err != nil {
			return err
		}
		v := view{ctx: c.Context(), socket: socket, every: every, shown: interval{first, first}, width: 80, height: 24}
		if once {
			return printOnce(c, v)
		}
		_, err = tea.NewProgram(v, tea.WithContext(c.Context()), tea.WithInput(c.InOrStdin()), tea.WithOutput(c.OutOrStdout())).Run()
		if errors.Is(err, tea.ErrInterrupted) || c.Context().Err() != nil {
			return nil // Ctrl-C
		}
		return err
	})
	c.Flags().BoolVar(&once, "once", false, "print one view, and end")
	c.Flags().DurationVar(&every, "every", time.Second, "interval between two views")
	return c
}

// minEvery is the shortest interval: the node answers three questions for each view.
const minEvery = 100 * time.Millisecond

// printOnce prints the view of one interval.
func printOnce(c *cobra.Command, v view) error {
	select {
	case <-time.After(v.every):
	case <-c.Context().Done():
		return c.Context().Err()
	}
	after, err := takeSample(c.Context(), v.socket)
	if err != nil {
		return err
	}
	const wide, long = 120, 60 // for files and pipes
	_, err = fmt.Fprintln(c.OutOrStdout(), strings.Join(frame(since(v.shown.after, after), wide, long), "\n"))
	return err
}

// view is the state of the terminal: bubbletea calls its methods from one goroutine.
type view struct {
	ctx           context.Context //nolint:containedctx // bubbletea's commands have no context
	socket        string
	every         time.Duration
	shown         interval
	err           error // of the last sample; the old view stays
	width, height int
}

// sampled is a new sample, or why there is none.
type sampled struct {
	sample sample
	err    error
}

// Init starts the first interval.
func (v view) Init() tea.Cmd { return v.next() }

// next takes a sample after the interval.
func (v view) next() tea.Cmd {
	return tea.Tick(v.every, func(time.Time) tea.Msg {
		s, err := takeSample(v.ctx, v.socket)
		return sampled{s, err}
	})
}

// Update handles keys, new samples and new sizes of the terminal.
func (v view) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		switch m.String() {
		case "q", "esc", "ctrl+c":
			return v, tea.Quit
		}
	case tea.WindowSizeMsg:
		v.width, v.height = m.Width, m.Height
	case sampled:
		if v.err = m.err; m.err == nil {
			v.shown = since(v.shown.after, m.sample)
		}
		return v, v.next()
	}
	return v, nil
}

// View returns the screen: the view of the last interval, and a line of help.
func (v view) View() tea.View {
	lines := frame(v.shown, v.width, v.height-1)
	for len(lines) < v.height-1 {
		lines = append(lines, "")
	}
	foot := "q quits"
	if v.err != nil {
		foot = "NO ANSWER: " + wire.ErrorText(v.err)
	}
	screen := tea.NewView(strings.Join(append(lines, cut(foot, v.width)), "\n"))
	screen.AltScreen = true
	screen.WindowTitle = "voxeld top"
	return screen
}
