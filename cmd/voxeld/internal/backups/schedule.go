package backups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/internal/backup"
)

const (
	// firstDelay is how long a node runs before its first backup: it must have found the others.
	firstDelay = 30 * time.Second
	// retryEvery is the pause after a scheduled backup that failed.
	retryEvery = 5 * time.Minute
	// resendAfter is the first pause after a backup that did not reach the target. It doubles, up to retryEvery.
	resendAfter = 10 * time.Second
)

// Run makes the scheduled backups until ctx ends, and copies them to the target. A node that starts first makes one
// when the newest in the directory is too old, and copies what an earlier run has not.
func (b *Backups) Run(ctx context.Context) error {
	var due, resend <-chan time.Time
	if b.Every > 0 {
		due = time.After(b.untilDue(b.Now()))
		if b.Target != nil {
			resend = time.After(0)
		}
	}
	pause := resendAfter
	unsent := "" // the newest good backup of this run, until it is at the target
	for {
		var ordered chan<- admin.ScheduledBackup
		fresh, send := true, false
		var made string
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-resend:
			fresh, send = false, true
		case <-due:
		case ordered = <-b.orders:
		}
		if fresh {
			if made, err = b.attempt(ctx); made != "" {
				send, unsent = true, made
			}
			if b.Every > 0 {
				due = time.After(b.pauseAfter(err))
			}
		}
		if send && b.Target != nil {
			if b.send(ctx, unsent) {
				resend, pause, unsent = nil, resendAfter, ""
			} else {
				resend, pause = time.After(pause), min(2*pause, retryEvery)
			}
		}
		if ordered != nil {
			ordered <- b.answer(made, cmp.Or(err, b.failure()))
		}
	}
}

// answer returns that to an order, of which a backup was made, or none.
func (b *Backups) answer(made string, err error) admin.ScheduledBackup {
	a := admin.ScheduledBackup{File: made}
	if b.Target != nil {
		a.Target = b.Target.String()
	}
	if err != nil {
		a.Error = oneLine(err)
	}
	return a
}

// pauseAfter returns when the next backup is due after one that was made, or failed.
func (b *Backups) pauseAfter(err error) time.Duration {
	if err != nil {
		return min(b.Every, retryEvery)
	}
	return b.Every
}

// attempt makes a scheduled backup, and returns its file if it is good. An error means that there is none.
func (b *Backups) attempt(ctx context.Context) (made string, err error) {
	made, err = b.scheduled(ctx)
	if err != nil && ctx.Err() == nil {
		if !errors.Is(err, errBusy) {
			b.metrics.failures.Inc()
			b.ended(time.Time{}, err)
		}
		b.Logger.Error("scheduled backup failed", "dir", b.Dir, "error", err)
	}
	return made, err
}

// untilDue returns when the next backup is due, by the newest complete one in the directory, signed or not.
func (b *Backups) untilDue(now time.Time) time.Duration {
	soon := min(firstDelay, b.Every)
	var newest time.Time
	for _, kind := range []backup.Kind{backup.Good, backup.Unsigned} {
		files, err := b.files(kind, now)
		if err != nil || len(files) == 0 {
			continue
		}
		last := files[len(files)-1]
		header, err := backup.HeaderOf(last)
		if err != nil || header.Time().After(now) {
			continue // it was made while the clock was wrong
		}
		if header.Time().After(newest) {
			newest = header.Time()
		}
		if info, err := os.Stat(last); err == nil && kind == backup.Good && b.Target == nil {
			b.metrics.found(header.Time(), info.Size())
			b.ended(header.Time(), nil)
		}
	}
	return max(newest.Add(b.Every).Sub(now), soon)
}

// scheduled makes a backup in the directory, and deletes the oldest ones there. It returns the file if the backup is
// good.
func (b *Backups) scheduled(ctx context.Context) (made string, err error) {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return "", fmt.Errorf("create directory of backups: %w", err)
	}
	begun, started := b.Now(), time.Now()
	if err := b.removeUnfinished(begun); err != nil {
		return "", err
	}
	name, request := b.next(ctx, begun)
	path := func(kind backup.Kind) string {
		name.Kind = kind
		return filepath.Join(b.Dir, name.String())
	}
	c, err := backup.Create(path(backup.Unsigned), path(backup.Incomplete), func(w io.Writer) error { return b.make(ctx, w, request) }, nil)
	if err != nil {
		return "", err
	}
	switch {
	case len(c.Problems()) > 0:
		b.metrics.failures.Inc()
		b.ended(begun, fmt.Errorf("%s is not complete: %s", c.File, c.Problems()[0]))
	case !signed(c):
		b.ended(begun, fmt.Errorf("%s is not signed by most members of each region: see voxeld verify", c.File))
		b.Logger.Warn("scheduled backup is not signed by most members of each region: see voxeld verify", "file", c.File)
	default:
		if err := os.Rename(c.File, path(backup.Good)); err != nil {
			return "", fmt.Errorf("rename backup: %w", err)
		}
		c.File = path(backup.Good)
		info, err := os.Stat(c.File)
		if err != nil {
			return "", fmt.Errorf("find backup: %w", err)
		}
		made = c.File
		b.metrics.made(time.Since(started), info.Size())
		if b.ended(begun, nil); b.Target == nil {
			b.metrics.succeeded(begun)
		}
	}
	for _, problem := range c.Problems() {
		b.Logger.Error("scheduled backup is not complete", "file", c.File, "problem", problem)
	}
	b.Logger.Info("backup made", "file", c.File, "regions", len(c.Groups)-1, "edits", c.Edits)
	if err := b.prune(name); err != nil {
		b.Logger.Error("old backups not deleted", "dir", b.Dir, "error", err)
	}
	return made, nil
}

// next returns the name of the backup that begins now, and what it is to have: that of an incremental one if the newest
// chain of this node is short enough, and whole.
func (b *Backups) next(ctx context.Context, now time.Time) (backup.Name, admin.BackupRequest) {
	var q admin.BackupRequest
	full := backup.Name{World: b.name(), Begun: now.UTC().Format(backup.TimeLayout)}
	chain, err := b.newestChain(now)
	if err != nil || !chain.Complete() || len(chain.Files) > b.Incremental || len(chain.Loose) > 0 {
		return full, q
	}
	verified, err := backup.VerifyFiles(ctx, chain.Files, nil)
	if err != nil && ctx.Err() == nil {
		b.Logger.Error("the last backups cannot be restored: a full one is made", "error", err)
	}
	if err != nil {
		return full, q
	}
	q.Since(verified.Last())
	chain.Number = len(chain.Files)
	return chain.Name, q
}

// newestChain returns the newest chain in the directory that this node has made; one without files if there is none.
// Other nodes may share the directory.
func (b *Backups) newestChain(now time.Time) (backup.FileChain, error) {
	files, err := b.files(backup.Good, now)
	if err != nil {
		return backup.FileChain{}, err
	}
	for _, chain := range slices.Backward(backup.FileChains(files)) {
		if !chain.Complete() {
			continue
		}
		if h, err := backup.HeaderOf(chain.Files[0]); err == nil && maker(h) == maker(b.Header()) {
			return chain, nil
		}
	}
	return backup.FileChain{}, nil
}

// maker returns the node that has made a backup.
func maker(h backup.Header) string {
	if len(h.Nodes) == 0 {
		return ""
	}
	return h.Nodes[0].Peer
}

// signed reports whether a majority of the members of each region have signed the backup. In an open world nobody
// signs.
func signed(c backup.Contents) bool {
	proofs, err := c.Proofs(admission.KeyOfNode)
	if errors.Is(err, backup.ErrOpenWorld) {
		return true
	}
	return err == nil && !slices.ContainsFunc(proofs, func(p backup.Proof) bool { return !p.Majority() })
}

// prune deletes the oldest backups of each kind, and none of a chain that was begun after the newest: one that is not
// complete, or not signed, replaces none that is.
func (b *Backups) prune(newest backup.Name) error {
	var surplus []string
	for _, kind := range []backup.Kind{backup.Good, backup.Unsigned, backup.Incomplete} {
		files, err := b.list(kind)
		if err != nil {
			return err
		}
		if kind == backup.Good {
			surplus = append(surplus, backup.Surplus(files, newest, b.Keep)...)
			continue
		}
		files = slices.DeleteFunc(files, func(file string) bool { return begunText(file) > newest.Begun })
		surplus = append(surplus, files[:max(0, len(files)-max(b.Keep, 1))]...)
	}
	for _, file := range surplus {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("delete old backup: %w", err)
		}
	}
	return nil
}

// name returns what the names of the world's backups begin with. Another world may have the same name, and the same
// directory.
func (b *Backups) name() string { return fileName(b.World.Name) + "-" + b.World.ID()[:12] }

// list returns the scheduled backups of the world of that kind, chain by chain, oldest first.
func (b *Backups) list(kind backup.Kind) (files []string, err error) {
	entries, err := os.ReadDir(b.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if n, ok := backup.ParseName(e.Name()); ok && n.World == b.name() && n.Kind == kind {
			files = append(files, filepath.Join(b.Dir, e.Name()))
		}
	}
	slices.SortFunc(files, func(x, y string) int {
		a, _ := backup.ParseName(x)
		b, _ := backup.ParseName(y)
		return cmp.Or(strings.Compare(a.Begun, b.Begun), cmp.Compare(a.Number, b.Number))
	})
	return files, nil
}

// files is list without the chains that were begun after now: the clock was wrong then, or is wrong now.
func (b *Backups) files(kind backup.Kind, now time.Time) ([]string, error) {
	files, err := b.list(kind)
	latest := now.UTC().Format(backup.TimeLayout)
	return slices.DeleteFunc(files, func(file string) bool { return begunText(file) > latest }), err
}

// begunText returns the part of a backup's name that says when its chain was begun.
func begunText(file string) string {
	n, _ := backup.ParseName(file)
	return n.Begun
}

// unfinishedAge is how long nobody has written to a file that is taken for one that a killed node has left. Other nodes
// may share the directory.
const unfinishedAge = time.Hour

// removeUnfinished deletes what is left of backups that were interrupted by a kill or a power cut.
func (b *Backups) removeUnfinished(now time.Time) error {
	entries, err := os.ReadDir(b.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, hidden := strings.CutPrefix(e.Name(), ".")
		n, ok := backup.ParseName(strings.TrimSuffix(name, filepath.Ext(name))) // as backup.Create names them
		if !hidden || !ok || n.World != b.name() {
			continue
		}
		info, failed := e.Info()
		if failed == nil && now.Sub(info.ModTime()) > unfinishedAge {
			failed = os.Remove(filepath.Join(b.Dir, e.Name()))
		}
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("delete unfinished backup: %w", failed))
		}
	}
	return err
}

// fileName returns the world's name as part of a file's name.
func fileName(world string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, world)
}
