package main

import (
	"context"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// moment is the usage in a part of a measurement.
type moment struct {
	at  float64   // seconds from the start to the end of the moment
	cpu []float64 // of each daemon, as a share of one core
}

// total returns the CPU of all daemons together.
func (m moment) total() (cpu float64) {
	for _, each := range m.cpu {
		cpu += each
	}
	return cpu
}

// record reads the usage at equal intervals, until stop is called, which returns the moments.
func record(ctx context.Context, targets []target, every time.Duration) (stop func() []moment) {
	ctx, end := context.WithCancel(ctx)
	done := make(chan []moment, 1)
	go func() { // awaited by stop
		var all []moment
		began := time.Now()
		last, lastAt := usages(targets), began
		for process.Pause(ctx, every) == nil {
			now, at := usages(targets), time.Now()
			m := moment{at: at.Sub(began).Seconds()}
			for i := range now {
				m.cpu = append(m.cpu, (now[i].CPU-last[i].CPU).Seconds()/at.Sub(lastAt).Seconds())
			}
			all = append(all, m)
			last, lastAt = now, at
		}
		done <- all
	}()
	return func() []moment {
		end()
		return <-done
	}
}

// usages reads the usage of all targets. It is zero for one that has ended.
func usages(targets []target) []process.Usage {
	all := make([]process.Usage, len(targets))
	for i, t := range targets {
		if u, err := t.Usage(); err == nil {
			all[i] = u
		}
	}
	return all
}
