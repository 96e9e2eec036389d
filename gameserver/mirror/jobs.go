package mirror

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/wake"
)

// job is a chunk for a builder to settle.
type job struct {
	chunk *Chunk
	order uint64 // of the chunk, when it was queued
}

// jobs is the queue of the builders: any goroutine puts, and each builder takes one job at a time. Chunks are served in
// the order in which players began to watch them, over all subscriptions: sessions watch near chunks before far ones.
// So a job waits briefly for earlier ones whose region has not answered yet.
type jobs struct {
	wake wake.Signal // set while the list may have a job

	mu struct {
		sync.Mutex
		list    queue
		awaited []awaited // by order
	}
}

func newJobs() *jobs { return &jobs{wake: wake.NewSignal()} }

func (q *jobs) put(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	heap.Push(&q.mu.list, j)
	q.wake.Set()
}

// jobPatience is how long a job waits for earlier ones: a few ticks of a region.
const jobPatience = 200 * time.Millisecond

// awaited is a chunk whose job will arrive as soon as its region sends it.
type awaited struct {
	order uint64
	until time.Time
}

func byOrder(a awaited, order uint64) int { return cmp.Compare(a.order, order) }

// await announces a job of that order.
func (q *jobs) await(order uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, _ := slices.BinarySearchFunc(q.mu.awaited, order, byOrder)
	q.mu.awaited = slices.Insert(q.mu.awaited, i, awaited{order, time.Now().Add(jobPatience)})
}

// arrived records that the job has been put, or will not come.
func (q *jobs) arrived(order uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i, found := slices.BinarySearchFunc(q.mu.awaited, order, byOrder); found {
		q.mu.awaited = slices.Delete(q.mu.awaited, i, i+1)
		q.wake.Set()
	}
}

// delay returns how long a job of that order must wait for earlier ones. The lock is held.
func (q *jobs) delay(order uint64) time.Duration {
	now := time.Now()
	for len(q.mu.awaited) > 0 && !now.Before(q.mu.awaited[0].until) {
		q.mu.awaited = q.mu.awaited[1:]
	}
	if len(q.mu.awaited) == 0 || q.mu.awaited[0].order > order {
		return 0
	}
	return q.mu.awaited[0].until.Sub(now)
}

// pop removes and returns the first job, if there is one.
func (q *jobs) pop() (j job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.list) == 0 {
		return job{}, false
	}
	return heap.Pop(&q.mu.list).(job), true
}

// next waits for a job; ok is false when ctx has ended.
func (q *jobs) next(ctx context.Context) (j job, ok bool) {
	for {
		var held <-chan time.Time
		q.mu.Lock()
		if len(q.mu.list) > 0 {
			if wait := q.delay(q.mu.list[0].order); wait > 0 {
				held = time.After(wait)
			}
		}
		if len(q.mu.list) > 0 && held == nil {
			j = heap.Pop(&q.mu.list).(job)
			if len(q.mu.list) > 0 {
				q.wake.Set() // for the next builder
			}
			q.mu.Unlock()
			return j, true
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return job{}, false
		case <-q.wake:
		case <-held:
		}
	}
}

// queue is a heap of jobs, the lowest order on top.
type queue []job

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].order < q[j].order }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(j any)        { *q = append(*q, j.(job)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	j := (*q)[last]
	(*q)[last] = job{}
	*q = (*q)[:last]
	return j
}
