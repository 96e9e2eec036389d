package balance

import (
	"maps"
	"time"
)

const (
	// movePause is the pause between two moves of a series, and a series has at most seriesMoves. Then a node waits until its load shows
	// what they have brought.
	movePause   = 5 * time.Second
	seriesMoves = 4
	// Settled is how long after a move the load of both nodes is known again.
	Settled = 15 * time.Second
	// maxPause bounds the pause after a series that did not help. It doubles with each.
	maxPause = 10 * time.Minute
	// regionPause is how long a region that was shed is not shed again if it comes back. It doubles each time, up to maxRegionPause, and is
	// forgotten after forgetAfter.
	regionPause, maxRegionPause = time.Minute, 30 * time.Minute
	forgetAfter                 = time.Hour
)

// Pace limits how often a node sheds regions. The zero value is ready for use.
type Pace struct {
	next   time.Time // no move before
	pause  time.Duration
	moves  int       // of the series
	last   time.Time // move of the series
	before float64   // cores that were used before the series
	moved  float64   // cores that the regions of the series used
	shed   map[uint64]shed
}

// shed is what is remembered of a region that was shed.
type shed struct {
	at    time.Time
	pause time.Duration
}

// Ready reports whether the node may make a move now. Busy is how many cores it uses.
func (p *Pace) Ready(busy float64, now time.Time) bool {
	if now.Before(p.next) {
		return false
	}
	if p.moves == 0 || p.moves < seriesMoves && now.Sub(p.last) < Settled {
		return true
	}
	if now.Sub(p.last) < Settled {
		return false
	}
	if busy > p.before-p.moved/2 && now.Sub(p.last) < 4*Settled { // later it is another load
		p.pause = min(max(2*p.pause, Settled), maxPause)
		p.next = now.Add(p.pause)
	} else {
		p.pause = 0
	}
	p.moves, p.moved = 0, 0
	return !now.Before(p.next)
}

// MayShed reports whether the region may be shed again.
func (p *Pace) MayShed(id uint64, now time.Time) bool {
	s, was := p.shed[id]
	return !was || now.Sub(s.at) >= s.pause
}

// Moved records a move.
func (p *Pace) Moved(m Move, busy float64, now time.Time) {
	maps.DeleteFunc(p.shed, func(_ uint64, s shed) bool { return now.Sub(s.at) > forgetAfter })
	if p.shed == nil {
		p.shed = make(map[uint64]shed)
	}
	p.shed[m.Region] = shed{now, min(max(2*p.shed[m.Region].pause, regionPause), maxRegionPause)}
	if p.moves == 0 {
		p.before = busy
	}
	p.moves++
	p.last, p.next = now, now.Add(movePause)
	p.moved += m.Load
}
