package backups

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/region"
	kit "github.com/voxelpopuli/voxeld/test/testkit/objectstore"
)

// shelf is a target in memory. Every file that it is given must be the next one of a chain that it has.
type shelf struct {
	t  *testing.T
	mu struct {
		sync.Mutex
		files []string
		fails error // why Send fails
	}
}

// fail makes Send fail from now on, or not if the reason is nil.
func (s *shelf) fail(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.fails = reason
}

// files returns what it has.
func (s *shelf) files() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.files)
}

func (s *shelf) String() string { return "the shelf" }

func (s *shelf) Send(_ context.Context, files []string) (sent int64, err error) {
	s.mu.Lock()
	if s.mu.fails != nil {
		defer s.mu.Unlock()
		return 0, s.mu.fails
	}
	for _, file := range files {
		if !slices.Contains(s.mu.files, filepath.Base(file)) {
			s.mu.files, sent = append(s.mu.files, filepath.Base(file)), sent+1
		}
	}
	s.mu.Unlock()
	if _, err := backup.VerifyFiles(context.Background(), files, nil); err != nil {
		s.t.Errorf("%v were sent, which cannot be restored: %v", files, err)
	}
	return sent, nil
}

func (s *shelf) Prune(_ context.Context, newest backup.Name, keep int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	surplus := backup.Surplus(s.mu.files, newest, keep)
	s.mu.files = slices.DeleteFunc(s.mu.files, func(file string) bool { return slices.Contains(surplus, file) })
	return nil
}

// drill is a node that makes a backup each hour, two incremental ones after each full one, and keeps two chains.
func drill(t *testing.T) (o Options, target *shelf, run func(d time.Duration) *Backups) {
	target = &shelf{t: t}
	o = options(genesis("Commons", 1), filepath.Join(t.TempDir(), "backups"))
	o.Keep, o.Incremental, o.Target = 2, 2, target
	o.Backup = func(_ context.Context, w io.Writer, o region.BackupOptions) (bool, error) {
		time.Sleep(time.Second) // so that no two are begun at the same time
		return true, write(w, o.Header, "")
	}
	return o, target, func(d time.Duration) *Backups {
		t.Helper()
		o.Registerer = prometheus.NewRegistry()
		b := New(o)
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		if err := b.Run(ctx); err != nil {
			t.Error(err)
		}
		return b
	}
}

// numbers returns of each chain how many files there are.
func numbers(files []string) (all []int) {
	for _, c := range backup.FileChains(files) {
		all = append(all, len(c.Files))
		if len(c.Loose) > 0 {
			all = append(all, -len(c.Loose))
		}
	}
	return all
}

// Incremental backups follow a full one, here and at the target; chains are kept and deleted as a whole; a restart goes
// on with the chain.
func TestChains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, target, run := drill(t)
		for i, want := range [][]int{{1}, {2}, {3}, {3, 1}, {3, 2}, {3, 3}, {3, 1}, {3, 2}} {
			b := run(time.Hour) // a node that is restarted each hour
			here, err := b.files(backup.Good, time.Now())
			if !slices.Equal(numbers(here), want) || err != nil {
				t.Fatalf("after %d hours there are %v: %v", i+1, here, err)
			}
			if !slices.Equal(numbers(target.files()), want) {
				t.Fatalf("after %d hours the target has %v", i+1, target.files())
			}
			if s := b.Status(); s.Error != "" || s.Last.IsZero() || s.Target != "the shelf" {
				t.Errorf("status: %+v", s)
			}
		}
		files, _ := filepath.Glob(filepath.Join(o.Dir, "*"+backup.Extension))
		chains := backup.FileChains(files)
		damaged := chains[len(chains)-1].Files[0]
		if err := os.Truncate(damaged, 10); err != nil {
			t.Fatal(err)
		}
		target.mu.files = nil
		run(time.Hour)
		if !slices.Equal(numbers(target.files()), []int{3, 1}) {
			t.Errorf("after damage to %s the target has %v, want the chain before it, and a full backup", damaged, target.files())
		}
	})
}

// No backup takes the place of one that is gone from the middle of a chain: those after it do not follow it.
func TestGapInChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _, _ := drill(t)
		o.Incremental = 9
		b := New(o)
		make := func() backup.Name {
			t.Helper()
			if made, err := b.scheduled(t.Context()); made == "" || err != nil {
				t.Fatal(made, err)
			}
			files, err := b.files(backup.Good, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			last, _ := backup.ParseName(files[len(files)-1])
			return last
		}
		var names []backup.Name
		for range 3 {
			names = append(names, make())
		}
		if err := os.Remove(filepath.Join(o.Dir, names[1].String())); err != nil {
			t.Fatal(err)
		}
		if last := make(); last.Begun == names[0].Begun || last.Number != 0 {
			t.Errorf("after the loss of %v, %v is made, want a full backup", names[1], last)
		}
	})
}

// A backup that does not reach the target has not succeeded; it is sent again, soon and then less often, without being
// made again.
func TestTargetFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, target, _ := drill(t)
		b := New(o)
		begun := time.Now()
		go b.Run(t.Context()) //nolint:errcheck // it returns none
		target.fail(errors.New("no route to host"))
		time.Sleep(59 * time.Minute)
		m := metricsOf(t, o)
		if s := b.Status(); !strings.Contains(s.Error, "not copied to the target: no route to host") || !s.Last.IsZero() {
			t.Errorf("status while the target fails: %+v", s)
		}
		if v := m.Value("voxeld_backup_last_success_timestamp_seconds"); v != 0 {
			t.Errorf("a backup that is not at the target counts as the last success, at %v", v)
		}
		if n := m.Value("voxeld_backup_target_failures_total"); n < 12 || n > 20 {
			t.Errorf("%v attempts in an hour", n)
		}
		if files, err := b.files(backup.Good, time.Now()); len(files) != 1 || err != nil {
			t.Errorf("while the target failed %v was made: %v", files, err)
		}
		target.fail(nil)
		time.Sleep(retryEvery)
		m = metricsOf(t, o)
		if s := b.Status(); s.Error != "" || s.Last.Sub(begun) > 2*time.Hour {
			t.Errorf("status when the target works again: %+v", s)
		}
		if v := m.Value("voxeld_backup_last_success_timestamp_seconds"); v < float64(begun.Unix()) {
			t.Errorf("the last success is that of %v", v)
		}
		if !slices.Equal(numbers(target.files()), []int{2}) {
			t.Errorf("the target has %v", target.files())
		}
	})
}

// A clock that is set forward and back lets no backup that is needed be deleted at the target, and never the newest.
func TestTargetAndWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, target, _ := drill(t)
		var ahead atomic.Int64
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		o.Header = func() backup.Header {
			g := genesis("Commons", 1)
			return backup.Header{Genesis: g.Encode(), Begun: o.Now().UnixMilli()}
		}
		o.Registerer = prometheus.NewRegistry()
		b := New(o)
		go b.Run(t.Context()) //nolint:errcheck // it returns none
		const year = 365 * 24 * time.Hour
		for i, by := range []time.Duration{0, 0, year, 0, -year, 0, 2 * year, 0, 0} {
			ahead.Store(int64(by))
			known := target.files()
			time.Sleep(4 * time.Hour)
			newest, err := b.newestChain(b.Now())
			if !newest.Complete() || err != nil {
				t.Fatalf("no chain: %v", err)
			}
			for _, file := range newest.Files {
				if !slices.Contains(target.files(), filepath.Base(file)) {
					t.Errorf("step %d: the newest backup %s is not at the target, which has %v", i, file, target.files())
				}
			}
			if len(numbers(target.files())) < min(2, len(numbers(known))) {
				t.Errorf("step %d: of %v only %v is left", i, known, target.files())
			}
		}
		if n := len(numbers(target.files())); n > 2+3 {
			t.Errorf("the target has %d chains", n)
		}
	})
}

// What the disk has damaged since it was sent does not replace what is good at the target, and is no success; nor is a
// backup that is gone before it was sent.
func TestDamagedIsNotSent(t *testing.T) {
	for _, variable := range append(kit.Env(), "AWS_SHARED_CREDENTIALS_FILE=/none") {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	parsed, err := config.ParseTarget(kit.Start(t).URL("all"))
	if err != nil {
		t.Fatal(err)
	}
	o := options(genesis("Commons", 1), filepath.Join(t.TempDir(), "backups"))
	restart := func() *Backups {
		t.Helper()
		if o.Target, err = NewTarget(parsed, "node"); err != nil {
			t.Fatal(err)
		}
		o.Registerer = prometheus.NewRegistry()
		return New(o)
	}
	b := restart()
	made, err := b.scheduled(t.Context())
	if err != nil || !b.send(t.Context(), made) {
		t.Fatalf("made %s: %v, %v", made, err, b.failure())
	}
	good, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	there := func() {
		t.Helper()
		var is bytes.Buffer
		if err := o.Target.(*bucket).Read(t.Context(), "node/"+filepath.Base(made), &is); err != nil || !bytes.Equal(is.Bytes(), good) {
			t.Errorf("the copy at the target is not what it was: %v", err)
		}
	}
	there()
	bad := bytes.Clone(good)
	bad[len(bad)-10] ^= 1
	if err := os.WriteFile(made, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	b = restart()
	if b.send(t.Context(), "") || b.Status().Error == "" {
		t.Errorf("a damaged backup was sent: %+v", b.Status())
	}
	there()
	for i, lose := range []func() error{
		func() error { return os.Truncate(made, 10) }, // the header is damaged
		func() error { return errors.Join(os.RemoveAll(o.Dir), os.WriteFile(o.Dir, nil, 0o600)) },
	} {
		b = restart()
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		if b.send(t.Context(), made) || b.failure() == nil {
			t.Errorf("loss %d: the new backup counts as sent", i)
		}
	}
	there()
}

// The next scheduled backup can be ordered, also where there is no schedule, and the answer comes when it is at the
// target.
func TestOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, target, _ := drill(t)
		o.Every = 0
		b := New(o)
		go b.Run(t.Context()) //nolint:errcheck // it returns none
		order := func() admin.ScheduledBackup {
			ended := make(chan admin.ScheduledBackup)
			b.orders <- ended
			return <-ended
		}
		if a := order(); a.Error != "" || len(target.files()) != 1 || filepath.Base(a.File) != target.files()[0] || a.Target != "the shelf" {
			t.Errorf("the target has %v: %+v", target.files(), a)
		}
		target.fail(errors.New("quota"))
		if a := order(); !strings.Contains(a.Error, "quota") {
			t.Errorf("a backup that does not reach the target: %+v", a)
		}
	})
}

// The operator's program gets each file once. What it says, and that it takes too long, is the reason that a backup is
// not at the target.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	log, script := filepath.Join(dir, "log"), filepath.Join(dir, "copy")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	first, second := filepath.Join(dir, "a.voxback"), filepath.Join(dir, "b.voxback")
	write(first, "one")
	write(second, "second")
	p := &program{path: script, most: time.Minute, done: make(map[string]stamp)}

	write(script, "#!/bin/sh\necho \"$@\" >>"+log+"\n")
	if sent, err := p.Send(t.Context(), []string{first}); sent != 3 || err != nil {
		t.Errorf("sent %d: %v", sent, err)
	}
	if sent, err := p.Send(t.Context(), []string{first, second}); sent != 6 || err != nil {
		t.Errorf("sent %d: %v", sent, err)
	}
	if text, err := os.ReadFile(log); string(text) != first+"\n"+second+"\n" || err != nil {
		t.Errorf("the program was run with %q: %v", text, err)
	}

	write(first, "changed")
	write(script, "#!/bin/sh\nhead -c 100000 /dev/zero | tr '\\0' x\necho ' no space' >&2\nexit 3\n")
	if _, err := p.Send(t.Context(), []string{first}); err == nil || !strings.HasSuffix(err.Error(), "x no space") || !strings.Contains(err.Error(), "exit status 3") || len(err.Error()) > 600 {
		t.Errorf("a program that fails: %v", err)
	}

	write(script, "#!/bin/sh\nsleep 1000 & echo $! >"+log+"\nwait\n")
	p.most = 500 * time.Millisecond
	if _, err := p.Send(t.Context(), []string{first}); err == nil || !strings.Contains(err.Error(), "longer than 500ms") {
		t.Errorf("a program that hangs: %v", err)
	}
	p.path = filepath.Join(dir, "none")
	if _, err := p.Send(t.Context(), []string{first}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}
