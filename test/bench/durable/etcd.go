package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// etcd is a cluster of three members with default settings.
type etcd struct {
	members   []*process.Process
	endpoints []string
	loader    string
	client    time.Duration // processor time that the loader has used
}

func startEtcd(ctx context.Context, o options, net int) (system, error) {
	program, err := exec.LookPath("etcd")
	if err != nil {
		return nil, fmt.Errorf("%w: apt-get install etcd-server", err)
	}
	e := &etcd{loader: filepath.Join(o.dir, "etcdload")}
	// A module of its own, so that etcd's client does not choose the versions of our libraries.
	c := exec.CommandContext(ctx, "go", "build", "-C", "test/bench/durable/etcdload", "-o", e.loader, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build etcdload in the root of the sources: %w\n%s", err, out)
	}
	var cluster []string
	for i := range 3 {
		cluster = append(cluster, fmt.Sprintf("m%d=http://127.%d.0.1:2380", i, net+i))
		e.endpoints = append(e.endpoints, fmt.Sprintf("http://127.%d.0.1:2379", net+i))
	}
	for i := range 3 {
		name, peer := fmt.Sprintf("m%d", i), fmt.Sprintf("http://127.%d.0.1:2380", net+i)
		log := process.Options{Log: filepath.Join(o.dir, "etcd-"+name+".log")}
		p, err := process.Start(log, program, "--name", name, "--data-dir", filepath.Join(o.dir, "etcd", name),
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--listen-client-urls", e.endpoints[i], "--advertise-client-urls", e.endpoints[i],
			"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-state", "new")
		if err != nil {
			e.stop()
			return nil, err
		}
		e.members = append(e.members, p)
	}
	err = process.Until(ctx, "etcd takes writes", 50*time.Millisecond, 30*time.Second, func() bool {
		_, err := e.load(ctx, 1, 0, 100*time.Millisecond)
		return err == nil
	})
	if err != nil {
		e.stop()
		return nil, err
	}
	return e, nil
}

func (e *etcd) load(ctx context.Context, writers int, warm, duration time.Duration) (r result, err error) {
	c := exec.CommandContext(ctx, e.loader, "-endpoints", strings.Join(e.endpoints, ","),
		"-writers", fmt.Sprint(writers), "-warm", warm.String(), "-duration", duration.String())
	c.Stderr = os.Stderr
	if warm == 0 {
		c.Stderr = nil // failures are expected while it is starting
	}
	out, err := c.Output()
	if err != nil {
		return r, err
	}
	e.client += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	return r, json.Unmarshal(out, &r)
}

func (e *etcd) usage() (u usage, err error) {
	u.client = e.client
	for i, p := range e.members {
		if err := u.add(p, strings.TrimPrefix(e.endpoints[i], "http://"), "etcd_disk_wal_fsync_duration_seconds"); err != nil {
			return u, err
		}
	}
	return u, nil
}

func (e *etcd) stop() {
	for _, p := range e.members {
		p.Stop()
	}
}
