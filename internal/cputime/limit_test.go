package cputime

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/voxelpopuli/voxeld/test/testkit/cgroup"
)

// tree writes files, as in a txtar of paths and contents, and returns the directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const (
	mountV2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	mountV1 = "31 24 0:27 %s /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
)

func TestLimit(t *testing.T) {
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	all := float64(runtime.GOMAXPROCS(0))
	v1 := func(root string) string { return fmt.Sprintf(mountV1, root) }
	for name, c := range map[string]struct {
		files     map[string]string
		cores     float64
		throttled time.Duration
	}{
		"no control groups": {map[string]string{}, all, 0},
		"version 2, no quota": {map[string]string{
			"proc/7/cgroup": "0::/a\n", "proc/7/mountinfo": mountV2,
			"sys/fs/cgroup/a/cpu.max": "max 100000\n", "sys/fs/cgroup/a/cpu.stat": "throttled_usec 5\n", // it had one
		}, all, 5 * time.Microsecond},
		"version 2, half a core": {map[string]string{
			"proc/7/cgroup": "0::/a\n", "proc/7/mountinfo": mountV2,
			"sys/fs/cgroup/a/cpu.max":  "50000 100000\n",
			"sys/fs/cgroup/a/cpu.stat": "usage_usec 9\nnr_throttled 3\nthrottled_usec 1500000\n",
		}, 0.5, 1500 * time.Millisecond},
		"version 2, a container's own namespace": {map[string]string{
			"proc/7/cgroup": "0::/\n", "proc/7/mountinfo": mountV2,
			"sys/fs/cgroup/cpu.max": "150000 100000\n", "sys/fs/cgroup/cpu.stat": "throttled_usec 20\n",
		}, 1.5, 20 * time.Microsecond},
		"version 2, the unit above has less": {map[string]string{
			"proc/7/cgroup": "0::/a.slice/b.service\n", "proc/7/mountinfo": mountV2,
			"sys/fs/cgroup/a.slice/cpu.max": "25000 100000\n", "sys/fs/cgroup/a.slice/cpu.stat": "throttled_usec 7\n",
			"sys/fs/cgroup/a.slice/b.service/cpu.max": "100000 100000\n", "sys/fs/cgroup/a.slice/b.service/cpu.stat": "throttled_usec 1\n",
		}, 0.25, 8 * time.Microsecond},
		"more than there is": {map[string]string{
			"proc/7/cgroup": "0::/a\n", "proc/7/mountinfo": mountV2,
			"sys/fs/cgroup/a/cpu.max": "99900000 100000\n", "sys/fs/cgroup/a/cpu.stat": "throttled_usec 0\n",
		}, all, 0},
		"version 1": {map[string]string{
			"proc/7/cgroup": "4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n0::/docker/x\n", "proc/7/mountinfo": mountV2 + v1("/"),
			"sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us": "75000\n", "sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us": "50000\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.stat": "nr_periods 4\nnr_throttled 2\nthrottled_time 3000000\n",
		}, 1.5, 3 * time.Millisecond},
		"version 1, the container's group is mounted": {map[string]string{
			"proc/7/cgroup": "4:cpu,cpuacct:/docker/x\n", "proc/7/mountinfo": v1("/docker/x"),
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "100000\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
		}, 1, 0},
		"version 1, no quota": {map[string]string{
			"proc/7/cgroup": "4:cpu,cpuacct:/\n", "proc/7/mountinfo": v1("/"),
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
		}, all, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.files["proc/7/stat"] = ""
			root := tree(t, c.files)
			fs, err := procfs.NewFS(filepath.Join(root, "proc"))
			if err != nil {
				t.Fatal(err)
			}
			p, err := fs.Proc(7)
			if err != nil {
				t.Fatal(err)
			}
			l := limitOf(p, root)
			if got := l.Cores(); got != c.cores {
				t.Errorf("%v cores, want %v", got, c.cores)
			}
			if got := l.Throttled(); got != c.throttled {
				t.Errorf("throttled for %v, want %v", got, c.throttled)
			}
		})
	}
}

// A process in a real control group with a quota sees it, and how long it was held back.
func TestLimitOfRealGroup(t *testing.T) {
	const inside = "VOXELD_TEST_CGROUP"
	if os.Getenv(inside) != "" {
		l := FindLimit()
		for began := time.Now(); l.Cores() < 1 && l.Throttled() == 0 && time.Since(began) < 20*time.Second; { // spend more than the quota
		}
		fmt.Printf("limit %v throttled %v\n", l.Cores(), l.Throttled() > 0)
		return
	}
	g := cgroup.New(t)
	for _, quota := range []int{20, 150} {
		g.Limit(quota)
		command := append(g.Command(), os.Args[0], "-test.run", "^TestLimitOfRealGroup$", "-test.v")
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(os.Environ(), inside+"=1", "GOMAXPROCS=2")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		want := fmt.Sprintf("limit %v throttled true", float64(quota)/100) // earlier, with 150
		if !strings.Contains(string(out), want) {
			t.Errorf("with a quota of %d %%: %s, want %s", quota, out, want)
		}
	}
}
