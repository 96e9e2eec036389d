// Command etcdload writes to an etcd cluster as fast as it acknowledges, and prints one line of JSON. Command durable
// compares voxeld with it. It is a module of its own, so that etcd's client does not choose the versions of our
// libraries.
//
// It is fair to etcd: connections are opened before the measurement and kept, they are shared by many writers as in
// etcd's own benchmark, and they go straight to the leader, which saves a hop.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/v3"
)

// result is what is printed: latencies in microseconds.
type result struct {
	Ops     int     `json:"ops"`
	Seconds float64 `json:"seconds"`
	P50     int64   `json:"p50_us"`
	P99     int64   `json:"p99_us"`
}

func main() {
	endpoints := flag.String("endpoints", "http://127.0.0.1:2379", "comma-separated")
	writers := flag.Int("writers", 512, "closed-loop writers")
	warm := flag.Duration("warm", time.Second, "time before the measuring")
	duration := flag.Duration("duration", 10*time.Second, "time of the measuring")
	flag.Parse()
	r, err := run(strings.Split(*endpoints, ","), *writers, *warm, *duration)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(endpoints []string, writers int, warm, duration time.Duration) (result, error) {
	const size = 40 // bytes of a value
	conns := min(16, writers)
	leader, err := leaderOf(endpoints)
	if err != nil {
		return result{}, fmt.Errorf("find etcd's leader: %w", err)
	}
	clients := make([]*clientv3.Client, conns)
	for i := range clients {
		if clients[i], err = clientv3.New(clientv3.Config{Endpoints: []string{leader}, DialTimeout: 5 * time.Second}); err != nil {
			return result{}, fmt.Errorf("connect to etcd: %w", err)
		}
		defer clients[i].Close() //nolint:errcheck // the process ends
	}
	begin := time.Now().Add(warm)
	end := begin.Add(duration)
	value := string(make([]byte, size))
	took := make([][]time.Duration, writers)
	failed := make(chan error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			key := string(binary.BigEndian.AppendUint32([]byte("writer/"), uint32(w)))
			for {
				start := time.Now()
				if start.After(end) {
					return
				}
				if _, err := clients[w%conns].Put(context.Background(), key, value); err != nil {
					failed <- err
					return
				}
				if done := time.Now(); start.After(begin) && done.Before(end) {
					took[w] = append(took[w], done.Sub(start))
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return result{}, fmt.Errorf("write to etcd: %w", err)
	default:
	}
	flat := slices.Concat(took...)
	if len(flat) == 0 {
		return result{}, fmt.Errorf("etcd acknowledged nothing in %v", duration)
	}
	slices.Sort(flat)
	return result{
		Ops: len(flat), Seconds: duration.Seconds(),
		P50: flat[len(flat)/2].Microseconds(), P99: flat[len(flat)*99/100].Microseconds(),
	}, nil
}

// leaderOf returns the endpoint of the member that leads.
func leaderOf(endpoints []string) (string, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second})
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // the answer has been read
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, e := range endpoints {
		s, err := c.Status(ctx, e)
		if err != nil {
			return "", err
		}
		if s.Leader == s.Header.MemberId {
			return e, nil
		}
	}
	return "", fmt.Errorf("none of %v leads", endpoints)
}
