package backups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/objectstore"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/config"
)

// sendTime bounds one attempt to copy a chain, if backups are made more often. A silent object store, or a program,
// fails earlier.
const sendTime = 6 * time.Hour

// send copies the newest chain of this node to the target, and reports whether it is there. Made is the backup that
// must be in it; empty: what there is.
func (b *Backups) send(ctx context.Context, made string) bool {
	chain, err := b.newestChain(b.Now())
	if err == nil && made != "" && !slices.Contains(chain.Files, made) {
		err = fmt.Errorf("%s cannot be read any more", made)
	}
	if err == nil && !chain.Complete() {
		return true
	}
	started := time.Now()
	var header backup.Header
	var sent int64
	last := made
	if err == nil {
		last = chain.Files[len(chain.Files)-1]
		header, sent, err = b.copy(ctx, chain.Files)
	}
	if err != nil {
		if ctx.Err() == nil {
			b.metrics.unsent.Inc()
			err = fmt.Errorf("not copied to the target: %w", err)
			b.Logger.Error("backup not copied to the target", "file", last, "target", b.Target.String(), "error", err)
			b.delivered(time.Time{}, err)
		}
		return false
	}
	if info, err := os.Stat(last); err == nil {
		b.metrics.size.Set(float64(info.Size()))
	}
	b.metrics.succeeded(header.Time())
	b.metrics.sending.Set(time.Since(started).Seconds())
	b.delivered(header.Time(), nil)
	b.Logger.Info("backup copied to the target", "file", last, "target", b.Target.String(), "bytes", sent)
	if err := b.Target.Prune(ctx, chain.Name, b.Keep); err != nil {
		b.Logger.Error("old backups not deleted at the target", "target", b.Target.String(), "error", err)
	}
	return true
}

// copy copies the files of a chain to the target, and returns the header of the last one. What the disk has damaged
// must not replace what is good there.
func (b *Backups) copy(ctx context.Context, files []string) (h backup.Header, sent int64, err error) {
	verified, err := backup.VerifyFiles(ctx, files, nil)
	if err != nil {
		return h, 0, err
	}
	sending, cancel := context.WithTimeout(ctx, max(b.Every, sendTime))
	defer cancel()
	sent, err = b.Target.Send(sending, files)
	return verified.Last().Header, sent, err
}

// NewTarget returns the target of a node's backups; nil if there is none.
func NewTarget(t config.Target, peer string) (Target, error) {
	switch {
	case t.Command != "":
		return &program{path: t.Command, most: programTime, done: make(map[string]stamp)}, nil
	case t.Bucket == "":
		return nil, nil //nolint:nilnil // none is wanted
	}
	b, err := objectstore.Open(t)
	if err != nil {
		return nil, err
	}
	return &bucket{Bucket: b, dir: peer, verified: make(map[string]stamp)}, nil
}

// stamp is what a file was like when it was sent.
type stamp struct {
	size    int64
	changed time.Time
}

func stampOf(file string) (stamp, error) {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.Size(), info.ModTime()}, nil
}

// bucket is a target in an object store. Each node has a directory there, because chains of two nodes must not mix.
type bucket struct {
	*objectstore.Bucket

	dir      string
	verified map[string]stamp // by file: what this run has read back from the store
}

// Send stores the files and reads them back. Of those that this run has read back it only asks whether they are still
// there.
func (b *bucket) Send(ctx context.Context, files []string) (sent int64, err error) {
	for _, file := range files {
		is, err := stampOf(file)
		if err != nil {
			return sent, err
		}
		object := path.Join(b.dir, filepath.Base(file))
		if b.verified[file] == is && b.Has(ctx, object, is.size) == nil {
			continue
		}
		stored, err := b.Store(ctx, file, object)
		if sent += stored; err != nil {
			return sent, err
		}
		b.verified[file] = is
	}
	return sent, nil
}

func (b *bucket) Prune(ctx context.Context, newest backup.Name, keep int) error {
	objects, err := b.List(ctx, b.dir)
	if err != nil {
		return err
	}
	for _, object := range backup.Surplus(objects, newest, keep) {
		if err := b.Delete(ctx, object); err != nil {
			return err
		}
	}
	for file := range b.verified {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			delete(b.verified, file)
		}
	}
	return nil
}

// programTime bounds a run of the operator's program.
const programTime = time.Hour

// program is a target that a program of the operator copies to. It is run once for each file, with its path as only
// argument, and again for the files of the newest chain after a restart. What is too old there is its own business.
type program struct {
	path string
	most time.Duration
	done map[string]stamp
}

func (p *program) String() string { return p.path }

func (p *program) Send(ctx context.Context, files []string) (sent int64, err error) {
	for _, file := range files {
		is, err := stampOf(file)
		if err != nil {
			return sent, err
		}
		if p.done[file] == is {
			continue
		}
		if err := p.run(ctx, file); err != nil {
			return sent, fmt.Errorf("run %s %s: %w", p.path, filepath.Base(file), err)
		}
		p.done[file] = is
		sent += is.size
	}
	return sent, nil
}

// run runs the program. When it takes too long it is killed, with all processes that it has started.
func (p *program) run(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, p.most)
	defer cancel()
	absolute, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	out := &tail{}
	c := exec.CommandContext(ctx, p.path, absolute) //nolint:gosec // the operator chose it
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 5 * time.Second
	err = c.Run()
	switch said := strings.TrimSpace(string(out.text)); {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the program took longer than %v, and was killed", p.most)
	case said != "":
		return fmt.Errorf("%w: %s", err, said)
	}
	return err
}

func (p *program) Prune(context.Context, backup.Name, int) error {
	for file := range p.done {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			delete(p.done, file)
		}
	}
	return nil
}

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

// maxTail is how many bytes a tail keeps.
const maxTail = 512

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = append([]byte(nil), t.text[max(0, len(t.text)-maxTail):]...)
	return len(p), nil
}
