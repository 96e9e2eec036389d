package operate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire"
)

// replaceRegion founds a region again of which no replica is left: from the backup's files, or without any as it was
// generated.
func replaceRegion(c *cobra.Command, socket, cell string, files []string, yes bool) error {
	ctx, out := c.Context(), c.OutOrStdout()
	var plan admin.ReplacePlan
	if err := admin.Get(ctx, socket, admin.ReplacePath+"?region="+url.QueryEscape(cell), &plan); err != nil {
		return err
	}
	if plan.Error != "" {
		return errors.New(plan.Error)
	}
	fmt.Fprintf(out, "\n%s, %s\n", cell, english.Plural(len(plan.Members), "member", ""))
	for _, m := range plan.Members {
		fmt.Fprintf(out, "  %s\n", m)
	}
	if plan.Refused != "" {
		return fmt.Errorf("%s cannot be founded again here: %s", cell, plan.Refused)
	}
	var records bytes.Buffer
	worldID := ""
	if len(files) == 0 {
		fmt.Fprintf(out, "\nThe region will be as it was generated. What was built there is lost.\n")
	} else {
		begun, id, err := regionOf(ctx, &records, files, cell)
		if err != nil {
			return err
		}
		worldID = id
		fmt.Fprintf(out, "\nThe region will be as of %s. What was built there since is lost.\n", begun.Local().Format("2006-01-02 15:04:05"))
	}
	fmt.Fprintln(out, "If a missing member comes back, its replica is deleted and replaced.")
	if !yes {
		if err := confirm(c.InOrStdin(), bufio.NewReader(c.InOrStdin()), out, "Continue?", "yes", "--yes"); err != nil {
			return err
		}
	}
	if err := admin.Replace(ctx, socket, cell, worldID, records.Bytes()); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: founded again; other nodes become members automatically\n", cell)
	return nil
}

// regionOf writes the records of a region in a chain of backups, and returns when its land is of, and the id of its
// world.
func regionOf(ctx context.Context, out *bytes.Buffer, files []string, cell string) (begun time.Time, worldID string, err error) {
	chain, err := backup.VerifyFiles(ctx, files, nil)
	if err != nil {
		return begun, "", err
	}
	for _, g := range chain.Latest() {
		if g.Name() != cell {
			continue
		}
		if g.File < 0 {
			return begun, "", fmt.Errorf("the backup does not have the land of %s: take an earlier one, or use --anew", cell)
		}
		found := g.Group
		found.Same, found.Missing = nil, false
		if err := wire.WriteFrame(out, backup.Record{Group: &found}); err != nil {
			return begun, "", err
		}
		rows := backup.NewRowsWriter(func(r backup.Record) error { return wire.WriteFrame(out, r) })
		want := func(there backup.Group) bool { return there.ID == g.ID }
		err := chain[g.File].Rows(want, func(of *backup.Group, _ string, some []kv.Write) error {
			for _, row := range some {
				if of == nil {
					continue
				}
				if err := rows.Add(row.Key, row.Value); err != nil {
					return err
				}
			}
			return nil
		})
		at := chain[g.File]
		if !g.Older {
			at = chain.Last()
		}
		return at.Header.Time(), at.Genesis.ID(), errors.Join(err, rows.Close())
	}
	return begun, "", fmt.Errorf("the backup has no region %s", cell)
}
