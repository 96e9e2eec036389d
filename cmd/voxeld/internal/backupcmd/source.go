package backupcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/objectstore"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/config"
)

// This file finds the backups that a command names: files, a directory, or a bucket.

// source is the files that a command is to read, in order.
type source struct {
	files []string
	names map[string]string // of those that were fetched: what to call them
	dir   string            // where the fetched ones are until close; empty: nowhere
}

func (s source) close() error {
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// name returns how people know a file.
func (s source) name(file string) string {
	if known, ok := s.names[file]; ok {
		return known
	}
	return file
}

// find returns what the arguments name: the files themselves; or, of a directory or bucket, the chain that ends last
// there; or, of an object, the chain up to it. Objects are fetched into a temporary directory.
func find(ctx context.Context, out io.Writer, args []string) (source, error) {
	where := slices.IndexFunc(args, func(arg string) bool { return config.IsBucket(arg) || isDirectory(arg) })
	switch {
	case where < 0:
		return source{files: args}, nil
	case len(args) > 1:
		return source{}, cli.Usage(fmt.Errorf("%s already names all backups of a chain: name nothing else", args[where]))
	case config.IsBucket(args[0]):
		return fetch(ctx, out, args[0])
	}
	entries, err := os.ReadDir(args[0])
	if err != nil {
		return source{}, err
	}
	var all []string
	for _, e := range entries {
		all = append(all, filepath.Join(args[0], e.Name()))
	}
	chain, err := choose(out, chainsUntil(out, time.Now(), all), backup.HeaderOf)
	if err != nil {
		return source{}, fmt.Errorf("%s: %w", args[0], err)
	}
	return source{files: chain}, nil
}

func isDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// fetch fetches from a bucket what its URL names.
func fetch(ctx context.Context, out io.Writer, address string) (s source, err error) {
	t, err := config.ParseTarget(address)
	if err != nil {
		return source{}, cli.Usage(err)
	}
	last := ""
	if strings.HasSuffix(t.Prefix, backup.Extension) {
		t.Prefix, last = path.Split(t.Prefix)
		t.Prefix = strings.TrimSuffix(t.Prefix, "/")
	}
	b, err := objectstore.Open(t)
	if err != nil {
		return source{}, err
	}
	chain := []string{last}
	if _, scheduled := backup.ParseName(last); scheduled || last == "" {
		all, err := b.List(ctx, "")
		if err != nil {
			return source{}, err
		}
		if last != "" {
			chain, err = chainUpTo(all, last)
		} else {
			chain, err = choose(out, newestOfDirectories(chainsUntil(out, time.Now(), all)), func(object string) (backup.Header, error) {
				return headerOfObject(ctx, b, object)
			})
		}
		if err != nil {
			return source{}, fmt.Errorf("%v: %w", t, err)
		}
	}
	s = source{names: make(map[string]string)}
	if s.dir, err = os.MkdirTemp("", "voxeld-backup-"); err != nil {
		return source{}, fmt.Errorf("fetch backups: %w", err)
	}
	for _, object := range chain {
		file := filepath.Join(s.dir, path.Base(object))
		if err := fetchOne(ctx, b, object, file); err != nil {
			return source{}, errors.Join(err, s.close())
		}
		s.files, s.names[file] = append(s.files, file), "s3://"+path.Join(t.Bucket, t.Prefix, object)
	}
	return s, nil
}

func fetchOne(ctx context.Context, b *objectstore.Bucket, object, file string) (err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("fetch backups: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return b.Read(ctx, object, f)
}

// chainUpTo returns the chain of a file among all, up to that.
func chainUpTo(all []string, last string) ([]string, error) {
	for _, c := range backup.FileChains(all) {
		if i := slices.Index(c.Files, last); i >= 0 {
			return c.Files[:i+1], nil
		}
	}
	if slices.Contains(all, last) {
		return []string{last}, nil // it is not good, or lacks what it is based on: the verification says so
	}
	return nil, fmt.Errorf("there is no %s", last)
}

// chainsUntil returns the complete chains among the files that were begun until now. It prints which ones say that they
// were begun later: then the clock of the node that made them was wrong, or this machine's is.
func chainsUntil(out io.Writer, now time.Time, all []string) []backup.FileChain {
	until := now.UTC().Format(backup.TimeLayout)
	return slices.DeleteFunc(backup.FileChains(all), func(c backup.FileChain) bool {
		later := c.Complete() && c.Begun > until
		if later {
			fmt.Fprintf(out, "%s and what follows it are left out: by their names they were begun after now, which is %s here; correct the clock, or name the files\n", c.Files[0], until)
		}
		return later || !c.Complete()
	})
}

// newestOfDirectories returns of each directory the chain that was begun last. In a bucket each node has its own.
func newestOfDirectories(chains []backup.FileChain) (newest []backup.FileChain) {
	known := make(map[string]bool)
	for _, c := range slices.Backward(chains) {
		if dir := path.Dir(c.Files[0]); !known[dir] {
			known[dir] = true
			newest = append(newest, c)
		}
	}
	return newest
}

func headerOfObject(ctx context.Context, b *objectstore.Bucket, object string) (backup.Header, error) {
	r, err := b.Open(ctx, object)
	if err != nil {
		return backup.Header{}, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	return backup.ReadHeader(r)
}

// choose returns the chain whose last backup was begun last: one that was begun earlier than another may go on for
// longer. It prints all of them.
func choose(out io.Writer, chains []backup.FileChain, header func(file string) (backup.Header, error)) ([]string, error) {
	var chosen []string
	var newest time.Time
	lines := make([]string, 0, len(chains))
	for _, c := range chains {
		if c.World != chains[0].World {
			return nil, fmt.Errorf("there are backups of %s and of %s: name one file, the last that you want", chains[0].World, c.World)
		}
		last := c.Files[len(c.Files)-1]
		h, err := header(last)
		if err != nil {
			lines = append(lines, fmt.Sprintf("  %s: %v", last, err))
			continue
		}
		lines = append(lines, fmt.Sprintf("  %s of %s", last, h.Time().UTC().Format(time.RFC3339)))
		if chosen == nil || h.Time().After(newest) {
			chosen, newest = c.Files, h.Time()
		}
	}
	if len(lines) > 1 {
		slices.Sort(lines)
		fmt.Fprintf(out, "there are %d chains, which end with\n%s\n", len(lines), strings.Join(lines, "\n"))
	}
	if chosen == nil {
		return nil, errors.New("there is no complete scheduled backup that was begun before now and can be read")
	}
	fmt.Fprintf(out, "%s, of %s, is taken\n", chosen[len(chosen)-1], newest.UTC().Format(time.RFC3339))
	return chosen, nil
}
