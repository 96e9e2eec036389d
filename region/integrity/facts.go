package integrity

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// maxFacts is how many copies are remembered of which nothing is known but that the other members agree with them.
const maxFacts = 65536

// Refusal is the error of a copy that is not opened.
type Refusal struct {
	copies.Decision
	Cause error // what is wrong; nil if that is only what others say
}

func (r Refusal) Error() string {
	text := fmt.Sprintf("this node's copy of the region is not used (%v)", r.Reason)
	if r.Cause != nil {
		text += ": " + r.Cause.Error()
	}
	return text
}

func (r Refusal) Unwrap() error { return r.Cause }

// Is reports whether a gateway is to be told that an operator must release the region.
func (r Refusal) Is(target error) bool {
	return target == transport.ErrQuarantined && r.Reason == copies.Quarantined
}

// Refused reports whether an error is that a copy is not opened, for a reason.
func Refused(err error, reason copies.Reason) bool {
	var r Refusal
	return errors.As(err, &r) && r.Reason == reason
}

// Facts are what is known of the copies on this node. Any goroutine may use them.
type Facts struct {
	self  string
	gauge prometheus.Gauge

	mu struct {
		sync.Mutex
		of map[uint64]*copyFacts // by region id
	}
}

// copyFacts are the facts of one copy, and what people are shown of them.
type copyFacts struct {
	copies.Facts // Failed and Limit are filled in by at
	info         nodemsg.Region
	cause        error // why Stored is not copies.Sound
	since        time.Time
	busy         bool // the copy is being deleted, or used after all
	failures     copies.Failures
	failure      error       // the last one
	openError    error       // why the last attempt to open it failed; nil if it succeeded
	replaced     []time.Time // at most copies.MostReplaced of them
	fileDamaged  bool
	loggedClosed time.Time // when it was last logged that it cannot be opened
	logged       string    // the last reason for which it was logged that it is not replaced yet
}

// at returns the facts at a time.
func (c *copyFacts) at(now time.Time) copies.Facts {
	f := c.Facts
	f.Failed = c.failures.State(now)
	c.replaced = slices.DeleteFunc(c.replaced, func(at time.Time) bool { return now.Sub(at) >= copies.ReplacedWithin })
	switch {
	case c.fileDamaged:
		f.Limit = copies.Broken
	case len(c.replaced) >= copies.MostReplaced:
		f.Limit = copies.TooOften
	}
	return f
}

// causeOf returns what people are shown of a decision.
func (c *copyFacts) causeOf(d copies.Decision) error {
	if d.Reason == copies.Quarantined || d.Reason == copies.Failure {
		return c.failure
	}
	return c.cause
}

// trivial reports whether nothing would be lost if these facts were forgotten, but a question to the members.
func (c *copyFacts) trivial(now time.Time) bool {
	return c.Stored == copies.Sound && c.openError == nil && c.at(now).Failed == copies.Works && !c.failures.Lately(now) && len(c.replaced) == 0
}

// NewFacts returns the facts of the node self, of which there are none yet.
func NewFacts(self string, m *Metrics) *Facts {
	f := &Facts{self: self, gauge: m.damagedNow}
	f.mu.of = make(map[uint64]*copyFacts)
	return f
}

// with calls do with the facts of a copy, which are created if necessary.
func (f *Facts) with(id uint64, do func(*copyFacts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.mu.of[id]
	if c == nil {
		now := time.Now()
		if len(f.mu.of) >= maxFacts {
			for id, c := range f.mu.of {
				if c.trivial(now) {
					delete(f.mu.of, id)
				}
			}
		}
		c = &copyFacts{}
		f.mu.of[id] = c
	}
	before := c.Stored
	do(c)
	switch {
	case before == copies.Sound && c.Stored != copies.Sound:
		f.gauge.Inc()
	case before != copies.Sound && c.Stored == copies.Sound:
		f.gauge.Dec()
	}
}

// look returns a copy of the facts; the zero value if there are none.
func (f *Facts) look(id uint64) copyFacts {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.mu.of[id]; c != nil {
		now := *c
		now.Facts = c.at(time.Now())
		return now
	}
	return copyFacts{}
}

// Decide returns what is to be done with the copy of a region, as far as that does not depend on who leads its group.
func (f *Facts) Decide(id uint64) copies.Decision { return copies.Decide(f.look(id).Facts) }

// Err returns why a region must not be opened here, or nil. It is a Refusal.
func (f *Facts) Err(id uint64) error {
	c := f.look(id)
	if d := copies.Decide(c.Facts); !d.Opens() {
		return Refusal{Decision: d, Cause: c.causeOf(d)}
	}
	return nil
}

// Closed reports whether a region stays closed here: it needs an operator, or its copy is replaced.
func (f *Facts) Closed(id uint64) bool {
	d := f.Decide(id)
	return !d.Opens() && d.Reason != copies.Failure
}

// Stored returns what is stored of a region here, as far as it is known.
func (f *Facts) Stored(id uint64) copies.Stored { return f.look(id).Stored }

// Quarantined reports whether a region is closed here because it failed repeatedly.
func (f *Facts) Quarantined(id uint64) bool { return f.look(id).Failed == copies.Repeatedly }

// FailedLately reports whether a region failed here within the last minutes.
func (f *Facts) FailedLately(id uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.mu.of[id]
	return c != nil && (c.failures.Lately(time.Now()) || c.failures.State(time.Now()) == copies.Repeatedly)
}

// Failed lists the regions that failed here lately, and those of them that are quarantined, by ascending id.
func (f *Facts) Failed() (lately, quarantined []uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for id, c := range f.mu.of {
		if c.failures.State(now) == copies.Repeatedly {
			quarantined = append(quarantined, id)
			lately = append(lately, id)
		} else if c.failures.Lately(now) {
			lately = append(lately, id)
		}
	}
	slices.Sort(lately)
	slices.Sort(quarantined)
	return lately, quarantined
}

// Until returns when a region that has failed may be opened again.
func (f *Facts) Until(id uint64) time.Time { c := f.look(id); return c.failures.Until() }

// Postpone records that a region is not opened here during the pause.
func (f *Facts) Postpone(id uint64, pause time.Duration) {
	f.with(id, func(c *copyFacts) { c.failures.Postpone(time.Now().Add(pause)) })
}

// Opened records that a region could be opened.
func (f *Facts) Opened(id uint64) {
	if f.look(id).openError != nil {
		f.with(id, func(c *copyFacts) { c.openError = nil })
	}
}

// fail records a failure, and returns what is to be done.
func (f *Facts) fail(id uint64, why *actor.Fault) (d copies.Decision) {
	f.with(id, func(c *copyFacts) {
		now := time.Now()
		c.failures.Add(now, why.Kind == actor.Refused)
		c.failure = why
		d = copies.Decide(c.at(now))
	})
	return d
}

// note records what is wrong with what is stored of a region. It reports false if something else is known to be wrong.
func (f *Facts) note(info nodemsg.Region, stored copies.Stored, cause error) (noted bool) {
	f.with(info.ID, func(c *copyFacts) {
		if noted = c.Stored == copies.Sound; noted {
			c.Stored, c.cause, c.info, c.since = stored, cause, info, time.Now()
			c.Members = membersOf(info, f.self)
		}
	})
	return noted
}

// membersOf returns the fact that follows from the members that are stored here: there may be others by now.
func membersOf(info nodemsg.Region, self string) copies.Members {
	if slices.ContainsFunc(info.Members, func(m nodemsg.Member) bool { return m.Peer != self }) {
		return copies.Others
	}
	return copies.Unknown
}

// Clear records that this node's copy of a region is another one now, or is used after all.
func (f *Facts) Clear(id uint64) {
	f.with(id, func(c *copyFacts) {
		c.Facts, c.cause, c.fileDamaged, c.logged = copies.Facts{}, nil, false, ""
	})
}

// forget forgets the failures of a region whose copy here was dropped, or is released. It reports whether it was
// quarantined.
func (f *Facts) forget(id uint64) (quarantined bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.mu.of[id]; c != nil {
		quarantined = c.failures.State(time.Now()) == copies.Repeatedly
		c.failures, c.failure, c.openError = copies.Failures{}, nil, nil
	}
	return quarantined
}

// claim lets one caller delete a copy that is not used, or use it after all. It reports false if the copy is
// claimed already, or nothing is wrong with it any more.
func (f *Facts) claim(id uint64) (release func(), claimed bool) {
	f.with(id, func(c *copyFacts) {
		if claimed = c.Stored != copies.Sound && !c.busy; claimed {
			c.busy = true
		}
	})
	return func() { f.with(id, func(c *copyFacts) { c.busy = false }) }, claimed
}

// unsound lists the copies that must not be used, by ascending id: the catalog, which has the members of the others,
// comes first.
func (f *Facts) unsound() []copyFacts {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []copyFacts
	for _, c := range f.mu.of {
		if c.Stored != copies.Sound {
			now := *c
			now.Facts = c.at(time.Now())
			all = append(all, now)
		}
	}
	slices.SortFunc(all, func(a, b copyFacts) int { return cmp.Compare(a.info.ID, b.info.ID) })
	return all
}

// Damage is a copy that must not be used, or of which a part is damaged.
type Damage struct {
	Region uint64
	Cell   grid.Cell
	Peer   string // the node that has it; "" if it is unknown which copy is wrong
	What   string // for people
	Since  time.Time
	Reason string // a copies.Reason of this node's copy, or PartDiffers
	Do     string // for people
}

// Unsound lists this node's copies that must not be used.
func (f *Facts) Unsound() []Damage {
	var all []Damage
	for _, c := range f.unsound() {
		d := copies.Decide(c.Facts)
		all = append(all, Damage{
			Region: c.info.ID, Cell: c.info.Cell, Peer: f.self, What: wire.ErrorText(c.cause), Since: c.since, Reason: d.Reason.String(), Do: toDo(d.Reason, c.info),
		})
	}
	return all
}

// Status returns what an operator is shown of a copy that is closed: why it cannot be opened. It is the zero value if
// it can.
func (f *Facts) Status(id uint64) (d copies.Decision, why string) {
	c := f.look(id)
	d = copies.Decide(c.Facts)
	switch {
	case !d.Opens():
		return d, wire.ErrorText(cmp.Or(c.causeOf(d), error(Refusal{Decision: d})))
	case c.openError != nil:
		return copies.Decision{Action: copies.Wait, Reason: copies.Failure}, wire.ErrorText(c.openError)
	}
	return d, ""
}
