package backupcmd

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/trust"
)

// ErrIncomplete is returned for a backup that lacks a region, or may lack acknowledged edits.
var ErrIncomplete = errors.New("the backup is not complete")

func newVerify() *cobra.Command {
	var signed bool
	c := &cobra.Command{
		Use: "verify FILE...|DIRECTORY|s3://BUCKET/PREFIX", Short: "Check that backups can be restored",
		Long: "Reads the backup, checks every checksum and decodes every row. An incremental backup comes after the files that it is\n" +
			"based on, beginning with the full one. Of a directory with scheduled backups, or a bucket, it is the chain that ends last; of an object\n" +
			"in a bucket, the chain up to it. Objects are fetched into a temporary directory.\n\n" +
			"It also tells which regions a majority of their members have signed, so that whoever made the backup cannot have changed them.",
		Example: "  voxeld verify world.voxback\n  voxeld verify world.voxback monday.voxback tuesday.voxback\n" +
			"  voxeld verify 's3://backups/world?endpoint=https://s3.example.org'",
		Args: files,
		RunE: func(c *cobra.Command, args []string) (err error) {
			from, err := find(c.Context(), c.ErrOrStderr(), args)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, from.close()) }()
			chain, err := verify(c, from)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			for i := range chain {
				b := &chain[i]
				b.File = from.name(b.File) // no rows are read any more
				kind := "full"
				switch {
				case len(b.Header.Area) > 0:
					kind = "area of " + english.Plural(len(b.Header.Area), "region", "")
				case b.Header.Base != nil:
					kind = "incremental"
				}
				fmt.Fprintf(out, "%s: %s backup %v of %q (world %s), begun %s by voxeld %s: %s\n", b.File, kind, b.ID, b.Genesis.Name, b.Genesis.ID()[:12],
					b.Header.Time().UTC().Format(time.RFC3339), b.Header.Program, summary(*b))
			}
			return errors.Join(incompleteChain(out, chain), checkSigned(out, chain, signed))
		},
	}
	c.Flags().BoolVar(&signed, "signed", false, "fail unless a majority of the members of each region have signed it, and an issuer who the members of the catalog are")
	return c
}

func files(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return cli.Usage(fmt.Errorf("%s takes the names of backups; see --help", c.CommandPath()))
}

// verify verifies a chain and shows its progress.
func verify(c *cobra.Command, from source) (backup.Chain, error) {
	show := newProgress(c.ErrOrStderr())
	defer show.end()
	return backup.VerifyFiles(c.Context(), from.files, func(file string, groups int, rows uint64) {
		show.print("%s: %d regions, %d rows", from.name(file), groups-1, rows)
	})
}

// ErrNotSigned is returned for a backup of which something is not signed.
var ErrNotSigned = errors.New("the backup is not signed")

// checkSigned prints who has signed the regions of a chain, and what is not signed. With must, that is an error.
func checkSigned(out io.Writer, chain backup.Chain, must bool) error {
	groups, unsigned, forgeable := 0, 0, false
	nodes := make(map[trust.Key]string) // operators
	for _, b := range chain {
		proofs, err := b.Proofs(admission.KeyOfNode)
		if errors.Is(err, backup.ErrOpenWorld) && !must {
			fmt.Fprintf(out, "%s: not signed: %v\n", b.File, err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrNotSigned, b.File, err)
		}
		vouched, err := b.Vouched()
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrNotSigned, b.File, err)
		}
		if !vouched {
			forgeable = true
			fmt.Fprintf(out, "%s: no issuer has signed who the members of the catalog are: whoever made the backup may have forged all of it; make backups through a node that gives out tokens\n", b.File)
		}
		for _, p := range proofs {
			groups++
			for _, c := range p.Signed {
				nodes[c.Node] = c.Operator
			}
			for _, c := range p.Differ {
				fmt.Fprintf(out, "differs: %s: node %s of operator %s has signed other rows as of log entry %d\n", p.Group.Name(), nodeName(c), c.Operator, p.Group.Position.Index)
			}
			if !p.Majority() {
				unsigned++
				fmt.Fprintf(out, "not signed by a majority: %s: %d of its %s\n", p.Group.Name(), len(p.Signed), english.Plural(p.Voters, "member", ""))
			}
		}
	}
	fmt.Fprintf(out, "signed by a majority of their members: %d of %d regions, counting the catalog, by %s of %s\n", groups-unsigned, groups,
		english.Plural(len(nodes), "node", ""), operators(nodes))
	switch {
	case must && unsigned > 0:
		return fmt.Errorf("%w: %s", ErrNotSigned, english.Plural(unsigned, "region is not", "regions are not"))
	case must && forgeable:
		return fmt.Errorf("%w: who the members of the catalog are", ErrNotSigned)
	}
	return nil
}

// nodeName returns the name of a certificate's node, as voxeld peers prints it.
func nodeName(c trust.Certificate) string {
	id, err := admission.PeerOf(c.Node)
	if err != nil {
		return c.Node.String()
	}
	return id.String()
}

// operators names the operators of nodes.
func operators(nodes map[trust.Key]string) string {
	names := slices.Compact(slices.Sorted(maps.Values(nodes)))
	if len(names) == 0 {
		return "no operator"
	}
	return english.PluralWord(len(names), "operator ", "operators ") + english.WordSeries(names, "and")
}

// incompleteChain prints the problems of a chain's end.
func incompleteChain(out io.Writer, chain backup.Chain) error {
	problems := chain.Last().Problems()
	for _, p := range problems {
		fmt.Fprintf(out, "problem: %s\n", p)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%w: when it was made, %s found", ErrIncomplete, english.Plural(len(problems), "problem was", "problems were"))
	}
	return nil
}
