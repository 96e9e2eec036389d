package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"

	"github.com/voxelpopuli/voxeld/research/walkad"
)

// walkadOptions are the flags of `sim walkad`.
type walkadOptions struct {
	report
	network           walkad.Config
	seeds             int
	avatars, seconds  int
	mostNodes, mostRs int
	keys              string
}

// newSimWalkad returns the command `sim walkad`.
func newSimWalkad() *cobra.Command {
	o := walkadOptions{network: walkad.Paper()}
	c := &cobra.Command{
		Use: "walkad", Short: "Simulate Walkad: finding land by walking from neighbour to neighbour",
		Long: "Simulates the evaluation of \"A Walkable Kademlia Network for Virtual Worlds\" (Varvello, Diot, Biersack 2009) on\n" +
			"a wide-area network (research/README.md). With --figure it prints each figure's numbers beside the paper's. Without\n" +
			"it, it compares walking, the paper's simple approach and a plain Kademlia lookup in one network.",
		Example: "  sim walkad --nodes 10000\n  sim walkad --figure all --seeds 3 --out out",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.network.Keys = walkad.Keys(o.keys)
			if err := o.network.Validate(); err != nil {
				return err
			}
			if o.seeds < 1 || o.avatars < 1 || o.seconds < 1 || o.mostNodes < 16 || o.mostRs < 1 {
				return errors.New("--seeds, --avatars, --seconds and --max-regions must be 1 or more, --max-nodes 16 or more")
			}
			if o.figures == "" {
				return o.compare(c.Context(), c.OutOrStdout())
			}
			return o.printFigures(c.Context(), c.OutOrStdout())
		},
	}
	f := c.Flags()
	o.flags(f, walkadNames(), "")
	f.IntVar(&o.network.Nodes, "nodes", o.network.Nodes, "number of peers")
	f.IntVar(&o.network.Regions, "regions", o.network.Regions, "number of regions of 256 × 256 m")
	f.IntVar(&o.network.MaxObjects, "objects", o.network.MaxObjects, "the paper's D_max: a cell with more objects is halved")
	f.IntVar(&o.network.K, "k", o.network.K, "entries of a k-bucket")
	f.IntVar(&o.network.R, "coordinators", o.network.R, "the paper's R: coordinators of a cell")
	f.IntVar(&o.network.Links, "links", o.network.Links, "contacts kept for a neighbour cell; the paper keeps all coordinators")
	f.StringVar(&o.keys, "keys", string(o.network.Keys), "keys of cells: daemon or paper")
	f.Uint64Var(&o.network.Seed, "seed", 1, "seed of the network, the world and the movement")
	f.IntVar(&o.seeds, "seeds", 1, "number of seeds, counted from --seed; their queries are counted together")
	f.IntVar(&o.avatars, "avatars", 20, "number of avatars that move")
	f.IntVar(&o.seconds, "seconds", 3600, "seconds for which they move")
	f.IntVar(&o.mostNodes, "max-nodes", 10_000, "the largest network of the figures 3b, 6 and growth")
	f.IntVar(&o.mostRs, "max-regions", 100, "the most regions of figure 7")
	return c
}

// compare prints a table of the approaches and gaits in one network.
func (o *walkadOptions) compare(ctx context.Context, w io.Writer) error {
	outcomes, err := o.run(ctx, o.everyMove(o.network))
	if err != nil {
		return err
	}
	t := figure.Table{Head: append([]string{"approach"}, outcomeHead...)}
	for _, out := range outcomes {
		t.Add(append([]any{out.name}, out.cells()...)...)
	}
	_, err = fmt.Fprintf(w, "%d peers, %d regions with %.0f cells on average\n\n%s", o.network.Nodes, o.network.Regions, outcomes[0].perRegion, t.Markdown())
	return err
}

// printFigures prints the chosen figures.
func (o *walkadOptions) printFigures(ctx context.Context, w io.Writer) error {
	names, err := o.chosen(walkadNames())
	if err != nil {
		return err
	}
	for _, f := range walkadFigures {
		if !slices.Contains(names, f.name) {
			continue
		}
		data, err := f.data(o, ctx)
		if err != nil {
			return fmt.Errorf("run figure %s: %w", f.name, err)
		}
		text := "The paper: " + f.paper + "\n\n" + data.tables[0].Markdown()
		if err := o.write(w, "walkad-"+f.name, f.title, text, data); err != nil {
			return err
		}
	}
	return nil
}
