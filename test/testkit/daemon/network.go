package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Network starts n daemons of one world, each on its own loopback address: the first creates it from a seed, the others
// join it. Their data directories and logs are in the options' Dir. started, if not nil, is called with the number of
// serving daemons after each start.
func Network(ctx context.Context, o Options, n int, seed int64, started func(n int)) (all []*Daemon, err error) {
	defer func() {
		if err != nil {
			KillAll(all)
			all = nil
		}
	}()
	invitation := ""
	for i := range n {
		one := o
		one.IP = fmt.Sprintf("127.%d.%d.1", 101+i%150, i/150)
		one.Dir = filepath.Join(o.Dir, "node-"+strconv.Itoa(i))
		one.Log = one.Dir + ".log"
		d := New(one)
		if i == 0 {
			if err := d.Init(ctx, append([]string{"--seed", strconv.FormatInt(seed, 10)}, o.Init...)...); err != nil {
				return all, err
			}
		}
		if o.Prepare != nil {
			if err := prepare(one); err != nil {
				return all, err
			}
		}
		if err := d.Start(ctx, invitation); err != nil {
			return all, fmt.Errorf("start daemon %d of %d: %w", i+1, n, err)
		}
		all = append(all, d)
		if started != nil {
			started(len(all))
		}
		if i == 0 {
			if invitation, err = d.Invite(ctx, false); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

func prepare(o Options) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return o.Prepare(o.Dir)
}

// Build compiles this source's voxeld into a directory, and returns its path.
func Build(ctx context.Context, dir string) (path string, err error) {
	path = filepath.Join(dir, "voxeld")
	c := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/voxelpopuli/voxeld/cmd/voxeld")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build voxeld: %w\n%s", err, out)
	}
	return path, nil
}

// KillAll kills daemons whose worlds are no longer needed.
func KillAll(all []*Daemon) {
	for _, d := range all {
		d.Kill()
	}
}

var taken struct {
	sync.Mutex
	locks []*os.File // held until this program ends
}

// TakeAddress returns a loopback address that no other test on this machine uses, for as long as this program runs.
func TakeAddress() (ip string, err error) {
	dir := filepath.Join(os.TempDir(), "voxeld-addresses")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("take address: %w", err)
	}
	taken.Lock()
	defer taken.Unlock()
	for i := range 90 * 250 {
		ip := fmt.Sprintf("127.%d.%d.1", 10+i/250, 1+i%250)
		lock, err := os.OpenFile(filepath.Join(dir, ip), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return "", fmt.Errorf("take address: %w", err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			taken.locks = append(taken.locks, lock)
			return ip, nil
		}
		lock.Close() //nolint:errcheck // another program, or an earlier call, has it
	}
	return "", errors.New("take address: all are in use")
}
