package mirror

import (
	"testing"
	"testing/synctest"
	"time"
)

// Jobs are served by their order, wait for earlier ones that are announced, and not for ever.
func TestJobsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newJobs()
		next := func(want uint64, after time.Duration) {
			t.Helper()
			began := time.Now()
			j, ok := q.next(t.Context())
			if took := time.Since(began); !ok || j.order != want || took != after {
				t.Errorf("job %d (%v) after %v, want %d after %v", j.order, ok, took, want, after)
			}
		}
		for order := range uint64(5) {
			q.await(order)
		}
		q.put(job{order: 3})
		q.put(job{order: 1})
		q.arrived(3)
		q.arrived(1)
		time.AfterFunc(jobPatience/4, func() {
			q.put(job{order: 0})
			q.arrived(0)
		})
		next(0, jobPatience/4)
		next(1, 0)
		time.AfterFunc(jobPatience/4, func() { q.arrived(2) }) // it does not come
		next(3, jobPatience/4)
		q.put(job{order: 6})
		next(6, jobPatience/2) // number 4 is late
		q.put(job{order: 4})
		next(4, 0)
	})
}
