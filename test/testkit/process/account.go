package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// hertz is the unit of times in /proc (USER_HZ), which is 100 on every Linux that Go runs on.
const hertz = 100

// Usage is the resources that a process has used, from /proc.
type Usage struct {
	CPU time.Duration // user and system time of all its threads, including those that have ended
	RSS int64         // resident bytes
}

// Usage reads the usage of the process.
func (p *Process) Usage() (Usage, error) { return UsageOf(p.PID()) }

// UsageOf reads the usage of any process.
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read usage: %w", err)
	}
	// The name, in brackets, may contain anything. After it, from field 3 on: utime is field 14, stime 15, rss 24.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 22 {
		return Usage{}, fmt.Errorf("read usage: only %d fields", len(fields))
	}
	var n [3]int64
	for i, field := range []int{14, 15, 24} {
		if n[i], err = strconv.ParseInt(fields[field-3], 10, 64); err != nil {
			return Usage{}, fmt.Errorf("read usage: %w", err)
		}
	}
	return Usage{CPU: time.Duration(n[0]+n[1]) * time.Second / hertz, RSS: n[2] * int64(os.Getpagesize())}, nil
}

// Busy returns how long each core has been busy since it started, with any process.
func Busy() ([]time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("read cores: %w", err)
	}
	var busy []time.Duration
	for line := range strings.Lines(string(stat)) {
		fields := strings.Fields(line)
		if len(fields) < 9 || fields[0] == "cpu" || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		sum := int64(0)
		for i, field := range fields[1:9] { // user nice system idle iowait irq softirq steal
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read cores: %w", err)
			}
			if i != 3 && i != 4 {
				sum += n
			}
		}
		busy = append(busy, time.Duration(sum)*time.Second/hertz)
	}
	return busy, nil
}

// Machine describes the machine on which figures were measured.
func Machine() string {
	model := "unknown CPU"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	kernel := "unknown kernel"
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel, _, _ = strings.Cut(strings.TrimSpace(string(release)), "-")
	}
	cores := 0
	if busy, err := Busy(); err == nil {
		cores = len(busy)
	}
	return fmt.Sprintf("%s, %d cores, Linux %s", model, cores, kernel)
}
