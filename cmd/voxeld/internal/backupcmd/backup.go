package backupcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/backup"
)

func newBackup() *cobra.Command {
	var area string
	var since []string
	var force bool
	c := &cobra.Command{
		Use: "backup [FILE|-]", Short: "Back up the world while it runs, through any one node",
		Long: "Writes the catalog, all regions and the players of the world to FILE, or to the standard output. Everything that was\n" +
			"acknowledged before the command started is in it. Regions that cannot be read are named, and the exit code is 4.\n" +
			"The backup is verified while it is written, and appears under its name when it is complete and on disk.\n\n" +
			"Without FILE the node makes its next scheduled backup at once, in backup_dir, and the command ends when that is at backup_target.",
		Example: "  voxeld backup world.voxback\n" +
			"  voxeld backup - | ssh nas 'cat > world.voxback'\n" +
			"  voxeld backup --since world.voxback monday.voxback\n" +
			"  voxeld backup --area -64,-64:64,64 town.voxback\n" +
			"  voxeld backup",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) <= 1 {
				return nil
			}
			return cli.Usage(fmt.Errorf("%s takes the name of one file, or -; see --help", c.CommandPath()))
		},
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		if len(args) == 0 {
			if area != "" || len(since) > 0 || force {
				return cli.Usage(errors.New("name a file: a scheduled backup has no area, and chooses its base itself"))
			}
			return scheduledBackup(c, socket)
		}
		var q admin.BackupRequest
		if area != "" {
			var err error
			if q.Area, err = parseArea(area); err != nil {
				return cli.Usage(err)
			}
		}
		if slices.ContainsFunc(since, func(base string) bool { return sameFile(base, args[0]) }) {
			return cli.Usage(fmt.Errorf("%s is the backup that this one is based on: choose another name for the new one", args[0]))
		}
		if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() && info.Size() > 0 && !force && args[0] != "-" {
			return cli.Usage(fmt.Errorf("%s exists already: choose another name, or replace it with --force", args[0]))
		}
		if len(since) > 0 {
			if err := addBase(c.Context(), &q, since); err != nil {
				return err
			}
		}
		return makeBackup(c, socket, args[0], q)
	})
	c.Flags().StringArrayVar(&since, "since", nil, "earlier backup, a `file`: regions that have not changed since are only referred to; restoring needs that backup, too")
	c.Flags().BoolVar(&force, "force", false, "replace a backup of that name")
	c.Flags().StringVar(&area, "area", "", "`X1,Z1:X2,Z2` in blocks: back up only the regions there, without players")
	return c
}

// scheduledBackup has the node make its next scheduled backup.
func scheduledBackup(c *cobra.Command, socket string) error {
	var done admin.ScheduledBackup
	if err := admin.PostWithin(c.Context(), 0, socket, admin.ScheduledBackupPath, &done); err != nil {
		return err
	}
	if done.Error != "" {
		return errors.New(done.Error)
	}
	text := "backup made: " + done.File
	if done.Target != "" {
		text += ", and copied to " + done.Target
	}
	fmt.Fprintln(c.OutOrStdout(), text)
	return nil
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// makeBackup asks the node for a backup and writes it.
func makeBackup(c *cobra.Command, socket, path string, q admin.BackupRequest) error {
	begun := time.Now()
	out := c.ErrOrStderr()
	show := newProgress(out)
	size := &counter{}
	produce := func(w io.Writer) error {
		size.w = w
		return admin.Backup(c.Context(), socket, q, size)
	}
	report := func(groups int, rows uint64) {
		show.print("%d regions, %d rows, %s", groups-1, rows, bytesText(size.n))
	}
	var made backup.Contents
	var err error
	if path == "-" {
		made, err = backup.CheckedCopy(c.OutOrStdout(), produce, report)
	} else {
		made, err = backup.Create(path, path, produce, report)
	}
	show.end()
	if err != nil {
		return err
	}
	took := time.Since(begun)
	fmt.Fprintf(out, "backup %v: %s in %v (%s/s)\n", made.ID, summary(made), took.Round(time.Millisecond), bytesText(int64(float64(size.n)/took.Seconds())))
	return incomplete(out, made.Problems())
}

// counter counts bytes.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// incomplete prints the problems and returns ErrIncomplete if there are any.
func incomplete(out io.Writer, problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	for _, p := range problems {
		fmt.Fprintf(out, "problem: %s\n", p)
	}
	return fmt.Errorf("%w: it was written, with %s named above; see voxeld doctor, and make another one", ErrIncomplete, english.Plural(len(problems), "problem", ""))
}

// addBase makes the request one for an incremental backup. Of several files, the last is the base.
func addBase(ctx context.Context, q *admin.BackupRequest, files []string) error {
	base, err := backup.VerifyFile(ctx, files[len(files)-1], nil)
	if err != nil {
		return err
	}
	if len(base.Header.Area) > 0 || len(q.Area) > 0 {
		return cli.Usage(errors.New("a backup of an area cannot be incremental, nor the base of one"))
	}
	q.Since(base)
	return nil
}

// maxAreaCells bounds an area.
const maxAreaCells = 4096

// parseArea returns the cells that an area in blocks touches.
func parseArea(text string) ([]grid.Cell, error) {
	area, err := grid.ParseArea(text)
	if err != nil {
		return nil, err
	}
	var cells []grid.Cell
	for cell := range area.Cells(grid.FoundingLabel) {
		if cells = append(cells, cell); len(cells) > maxAreaCells {
			return nil, fmt.Errorf("area %q: it has more than %d regions; back up the whole world", text, maxAreaCells)
		}
	}
	return cells, nil
}
