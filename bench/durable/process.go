package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one that this program started. Its output goes to a file beside its data.
type process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

func startProcess(dir, name, path string, args ...string) (*process, error) {
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(path, args...), log: log.Name(), ended: make(chan struct{})}
	p.cmd.Stderr = log
	if p.cmd.Stdout == nil {
		p.cmd.Stdout = log
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait() //nolint:errcheck // whoever misses it looks into the log
		close(p.ended)
	}()
	return p, nil
}

// stop ends the process, and waits for that.
func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-p.ended
	}
}

// cpu is the processor time that the process used, in user and kernel.
func (p *process) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // from the third on
	ticks := 0
	for _, at := range []int{11, 12} {
		n, err := strconv.Atoi(fields[at])
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100), nil // USER_HZ is 100 on all Linux
}

// scrape reads one metric without labels.
func scrape(ctx context.Context, url, name string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close() //nolint:errcheck // read
	for s := bufio.NewScanner(a.Body); s.Scan(); {
		if value, found := strings.CutPrefix(s.Text(), name+" "); found {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s at %s", name, url)
}

// until asks again and again until the answer is yes.
func until(ctx context.Context, what string, limit time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %s", limit, what)
		case <-poll.C:
		}
	}
	return nil
}
