package mods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/script"
)

const (
	// MaxEvents is how many events a task may have.
	MaxEvents = 16
	// stepsPerSecond is how many steps a mod may take in a region: about a quarter of a core.
	stepsPerSecond = 50_000_000
	// A mod that fails maxFailures times within failuresWithin in a region is suspended there.
	maxFailures    = 3
	failuresWithin = time.Minute
	// maxPrograms and maxGrounds bound what is kept: scripts that are loaded, and chunks as they were generated.
	maxPrograms = 32
	maxGrounds  = 32
)

// Untouched stands for the blocks of a View that were never edited: they are what was generated.
const Untouched = mod.Unseen - 1

// Options are what a Runner needs. All fields are required.
type Options struct {
	// Content returns the archive of a mod, or an error if this node does not have it now.
	Content func(mod.Hash) ([]byte, error)
	// Ground returns a chunk as it was generated, with the hash, or with any if the hash is nil.
	Ground     func(ctx context.Context, pos grid.ChunkPos, hash *[32]byte) (*chunk.Chunk, error)
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Task is what a region submits: events of one mod.
type Task struct {
	Region  uint64
	Name    string // of the mod
	Content mod.Hash
	Inputs  []mod.Input                // 1 to MaxEvents; blocks may be Untouched
	Pinned  map[grid.ChunkPos][32]byte // hashes of the chunks in which blocks are Untouched, as far as they are pinned
	// Done is called in the runner's goroutine, and must not block.
	Done func(Result)
}

// Result is what became of a task.
type Result struct {
	// Err is why nothing was run; the task can be submitted again later.
	Err error
	// Answers are to the events, in order.
	Answers []mod.Answer
	// Suspend is why the mod is to be suspended in the region; "" if it is not.
	Suspend string
	// Pause is for how long the mod has used up its share of time in the region.
	Pause time.Duration
}

// Runner runs scripts.
type Runner struct {
	Options
	metrics *metrics

	mu struct {
		sync.Mutex
		tasks []Task
	}
	wake chan struct{}

	// Only Run uses these.
	engine    *script.Engine
	instances *lru.Cache[mod.Hash, *script.Instance]
	grounds   *lru.Cache[groundKey, *chunk.Chunk]
	failures  map[modIn][]time.Time // of the last failuresWithin
}

// modIn is a mod in a region.
type modIn struct {
	region uint64
	name   string
}

type groundKey struct {
	pos  grid.ChunkPos
	hash [32]byte
}

// NewRunner returns a runner.
func NewRunner(o Options) *Runner {
	r := &Runner{Options: o, metrics: newMetrics(o.Registerer), wake: make(chan struct{}, 1), failures: make(map[modIn][]time.Time)}
	var err error
	r.instances, err = lru.NewWithEvict(maxPrograms, func(_ mod.Hash, i *script.Instance) { i.Close() })
	if err == nil {
		r.grounds, err = lru.New[groundKey, *chunk.Chunk](maxGrounds)
	}
	if err != nil {
		panic(err) // of sizes below 1
	}
	return r
}

// Submit has a task run. It does not block. A region submits the next task of a mod after it has the last one's result.
func (r *Runner) Submit(t Task) {
	r.mu.Lock()
	r.mu.tasks = append(r.mu.tasks, t)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run runs tasks until ctx ends.
func (r *Runner) Run(ctx context.Context) {
	defer r.close()
	for {
		r.mu.Lock()
		tasks := r.mu.tasks
		r.mu.tasks = nil
		r.mu.Unlock()
		for _, t := range tasks {
			if ctx.Err() != nil {
				return
			}
			t.Done(r.run(ctx, t))
		}
		if len(tasks) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
	}
}

func (r *Runner) close() {
	r.instances.Purge()
	if r.engine != nil {
		if err := r.engine.Close(); err != nil {
			r.Logger.Error("the engine for scripts did not end", "error", err)
		}
	}
}

// run runs a task.
func (r *Runner) run(ctx context.Context, t Task) Result {
	instance, err := r.instance(t.Content)
	if broken, is := errors.AsType[brokenError](err); is { // no node can run it
		return Result{Answers: failed(len(t.Inputs), broken), Suspend: broken.Error()}
	}
	if err == nil {
		err = r.fill(ctx, &t)
	}
	if err != nil {
		return Result{Err: err}
	}
	start := time.Now()
	answers, used := r.call(instance, t.Inputs)
	r.metrics.seconds.Observe(time.Since(start).Seconds())
	r.metrics.steps.Add(float64(used))
	return Result{Answers: answers, Suspend: r.judge(t, answers), Pause: time.Duration(used) * time.Second / stepsPerSecond}
}

// brokenError is of a mod that cannot be loaded.
type brokenError struct{ error }

// instance returns the instance of a mod, and loads it first if it must.
func (r *Runner) instance(content mod.Hash) (*script.Instance, error) {
	if i, loaded := r.instances.Get(content); loaded {
		return i, nil
	}
	packed, err := r.Content(content)
	if err != nil {
		return nil, err
	}
	if r.engine == nil {
		if r.engine, err = script.NewEngine(); err != nil {
			return nil, err
		}
	}
	c, err := mod.Unpack(packed)
	if err != nil {
		return nil, brokenError{err}
	}
	program, err := Load(r.engine, c)
	if err != nil {
		return nil, brokenError{err}
	}
	i, err := program.Instance()
	if err == nil {
		r.instances.Add(content, i)
	}
	return i, err
}

// fill replaces the blocks that are Untouched by what was generated there.
func (r *Runner) fill(ctx context.Context, t *Task) error {
	for i := range t.Inputs {
		in := &t.Inputs[i]
		for place, block := range in.View {
			if block != Untouched {
				continue
			}
			at := mod.ViewPos(in.Event.Pos, place)
			ground, err := r.ground(ctx, at.Chunk(), t.Pinned)
			if err != nil {
				return err
			}
			in.View[place] = ground.Get(chunk.At(at))
		}
	}
	return nil
}

func (r *Runner) ground(ctx context.Context, pos grid.ChunkPos, pinned map[grid.ChunkPos][32]byte) (*chunk.Chunk, error) {
	hash, is := pinned[pos]
	key := groundKey{pos, hash}
	if c, kept := r.grounds.Get(key); kept {
		return c, nil
	}
	var want *[32]byte
	if is {
		want = &hash
	}
	c, err := r.Ground(ctx, pos, want)
	if err != nil {
		return nil, fmt.Errorf("generate chunk %v for a mod: %w", pos, err)
	}
	r.grounds.Add(key, c)
	return c, nil
}

// call returns the script's answers, and the steps that it has taken.
func (r *Runner) call(i *script.Instance, inputs []mod.Input) (answers []mod.Answer, used int64) {
	var out string
	in, err := mod.EncodeCall(rand.Uint32(), inputs)
	if err == nil {
		out, used, err = i.Call(in, EventSteps*int64(len(inputs)))
	}
	if err == nil {
		answers, err = mod.DecodeAnswers(out, len(inputs))
	}
	switch {
	case err == nil:
		return answers, used
	case len(inputs) == 1:
		return failed(1, err), used
	}
	for _, input := range inputs { // so that only the event that is at fault fails
		one, steps := r.call(i, []mod.Input{input})
		answers, used = append(answers, one...), used+steps
	}
	return answers, used
}

func failed(n int, err error) []mod.Answer {
	return slices.Repeat([]mod.Answer{{Err: err}}, n)
}

// judge counts what has failed, and returns why the mod is to be suspended in the region, or "".
func (r *Runner) judge(t Task, answers []mod.Answer) (suspend string) {
	key, now := modIn{t.Region, t.Name}, time.Now()
	maps.DeleteFunc(r.failures, func(_ modIn, all []time.Time) bool { return now.Sub(all[len(all)-1]) >= failuresWithin })
	recent := slices.DeleteFunc(r.failures[key], func(at time.Time) bool { return now.Sub(at) >= failuresWithin })
	for _, a := range answers {
		r.metrics.count(a.Err)
		if a.Err == nil {
			continue
		}
		r.Logger.Warn("a mod has failed", "region", t.Region, "mod", t.Name, "error", a.Err)
		recent = append(recent, now)
		if exceeds(a.Err) {
			suspend = cmp.Or(suspend, a.Err.Error())
		} else if len(recent) >= maxFailures {
			suspend = cmp.Or(suspend, fmt.Sprintf("its script has failed %d times in a minute: %v", maxFailures, a.Err))
		}
	}
	if r.failures[key] = recent; suspend != "" || len(recent) == 0 {
		delete(r.failures, key)
	}
	return suspend
}

// exceeds reports whether an error is that of a script which exceeds its budget.
func exceeds(err error) bool {
	return errors.Is(err, script.ErrSteps) || errors.Is(err, script.ErrMemory) || errors.Is(err, script.ErrOutput)
}
