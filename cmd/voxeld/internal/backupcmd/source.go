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

	"github.com/dustin/go-humanize/english"

	"github.com/voxelpopuli/voxeld/backup"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/objectstore"
	"github.com/voxelpopuli/voxeld/config"
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

// find returns what the arguments name: the files themselves; or, of a directory or bucket, the chain begun last there;
// or, of an object, the chain up to it. Objects are fetched into a temporary directory.
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
	chain, err := choose(out, all, "")
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
		if chain, err = choose(out, all, last); err != nil {
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

// choose returns the chain of the last file among all, up to that; without one, the chain that was begun last.
func choose(out io.Writer, all []string, last string) ([]string, error) {
	chains := slices.DeleteFunc(backup.FileChains(all), func(c backup.FileChain) bool { return !c.Complete() })
	if last != "" {
		for _, c := range chains {
			if i := slices.Index(c.Files, last); i >= 0 {
				return c.Files[:i+1], nil
			}
		}
		if slices.Contains(all, last) {
			return []string{last}, nil // it is not good, or lacks what it is based on: the verification says so
		}
		return nil, fmt.Errorf("there is no %s", last)
	}
	if len(chains) == 0 {
		return nil, errors.New("there is no complete scheduled backup")
	}
	newest := chains[len(chains)-1]
	for _, c := range chains {
		if c.World != newest.World {
			return nil, fmt.Errorf("there are backups of %s and of %s: name one file, the last that you want", c.World, newest.World)
		}
	}
	fmt.Fprintf(out, "%s, of %s there\n", newest.Files[len(newest.Files)-1], english.Plural(len(chains), "chain", ""))
	return newest.Files, nil
}
