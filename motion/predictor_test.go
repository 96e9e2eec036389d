package motion

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
)

// predictedWalker is a player whose moves arrive late by up to jitter, with a record of the updates of their region.
type predictedWalker struct {
	t         *testing.T
	rng       *rand.Rand
	jitter    time.Duration
	every     time.Duration
	pose      Pose
	now       time.Duration // by the player's own clock
	arrivedAt time.Duration
	predictor Predictor
	updates   []time.Duration // by the player's own clock
}

func newPredictedWalker(t *testing.T, jitter time.Duration) *predictedWalker {
	pose := Pose{X: 1, Y: 30, Z: 1}
	return &predictedWalker{t: t, rng: rand.New(rand.NewPCG(1, 1)), jitter: jitter, every: TickEvery, pose: pose, predictor: NewPredictor(pose, 0)}
}

// move moves the player and sends that, the given number of seconds after the last move by the player's clock.
func (s *predictedWalker) move(x, y, z float64) (sent bool) {
	s.pose.X, s.pose.Y, s.pose.Z = s.pose.X+x, s.pose.Y+y, s.pose.Z+z
	return s.update(false)
}

func (s *predictedWalker) update(alone bool) (sent bool) {
	s.now += s.every
	s.arrivedAt = max(s.arrivedAt, s.now)
	if s.jitter > 0 {
		s.arrivedAt = max(s.arrivedAt, s.now+time.Duration(s.rng.Int64N(int64(s.jitter))))
	}
	if sent = s.predictor.Observe(s.pose, s.arrivedAt, alone); sent {
		s.predictor.CommitMove(true)
		s.updates = append(s.updates, s.now)
	}
	s.check()
	return sent
}

// check compares the region's prediction with the actual moves. The player may be early or late by maxSlip.
func (s *predictedWalker) check() {
	s.t.Helper()
	x, y, z := s.predictor.sentVelocity.Displacement(float64(s.arrivedAt-s.predictor.sentAt) / float64(TickEvery))
	p := s.predictor.lastSent
	wx, wy, wz := s.predictor.sentVelocity.Displacement(float64(maxSlip) / float64(TickEvery))
	if off := length(p.X+x-s.pose.X, p.Y+y-s.pose.Y, p.Z+z-s.pose.Z); off > maxError+length(wx, wy, wz) {
		s.t.Errorf("after %v the player is %.3f blocks from the region's prediction", s.now, off)
	}
}

// since returns how often the region was updated after a time.
func (s *predictedWalker) since(at time.Duration) (n int) {
	for _, sent := range s.updates {
		if sent > at {
			n++
		}
	}
	return n
}

// A straight walk costs one update a second, however uneven the moves arrive.
func TestStraightWalkCostsOneUpdateASecond(t *testing.T) {
	for _, jitter := range []time.Duration{0, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond} {
		for _, velocity := range [][3]float64{{.2, 0, 0}, {-.15, 0, .15}, {.02, 0, 0}, {0, .2, 0}, {.7, 0, .7}} {
			s := newPredictedWalker(t, jitter)
			s.pose = Pose{X: 1e6 + .5, Y: 30, Z: .5}
			s.predictor = NewPredictor(s.pose, 0)
			for range 200 {
				s.move(velocity[0], velocity[1], velocity[2])
			}
			crossed := int(math.Abs(velocity[0]+velocity[2]) * 200 / grid.ChunkSize * 2)
			if n := s.since(0); n < 9 || n > 20+crossed {
				t.Errorf("jitter %v, way %v: %d updates in 10 s", jitter, velocity, n)
			}
			if n := s.since(time.Second); n > 12+crossed {
				t.Errorf("jitter %v, way %v: %d updates in 9 s", jitter, velocity, n)
			}
		}
	}
}

func TestWhatIsSentAtOnce(t *testing.T) {
	walk := func(t *testing.T, jitter time.Duration) *predictedWalker {
		s := newPredictedWalker(t, jitter)
		for range 23 {
			s.move(.2, 0, 0)
		}
		if !s.predictor.sentVelocity.Moving() {
			t.Fatal("the player is not predicted")
		}
		return s
	}
	for name, change := range map[string]func(s *predictedWalker) (sent bool){
		"a stop":             func(s *predictedWalker) bool { return s.move(0, 0, 0) },
		"a turn":             func(s *predictedWalker) bool { return s.move(0, 0, .2) },
		"a turn about":       func(s *predictedWalker) bool { return s.move(-.2, 0, 0) },
		"a jump":             func(s *predictedWalker) bool { return s.move(.2, .4, 0) },
		"a leap":             func(s *predictedWalker) bool { return s.move(3, 0, 0) },
		"a look aside":       func(s *predictedWalker) bool { s.pose.Yaw += .05; return s.move(.2, 0, 0) },
		"a look down":        func(s *predictedWalker) bool { s.pose.Pitch -= .05; return s.move(.2, 0, 0) },
		"the next chunk":     func(s *predictedWalker) bool { s.predictor.lastSent.X -= grid.ChunkSize; return s.move(.2, 0, 0) },
		"a stop a bit ahead": func(s *predictedWalker) bool { s.move(.1, 0, 0); return s.move(0, 0, 0) },
	} {
		for _, jitter := range []time.Duration{0, 25 * time.Millisecond} {
			if s := walk(t, jitter); !change(s) {
				t.Errorf("jitter %v: the region is not sent %s", jitter, name)
			}
		}
	}
	for name, change := range map[string]func(s *predictedWalker) (sent bool){
		"who goes on":       func(s *predictedWalker) bool { return s.move(.2, 0, 0) },
		"a look a bit over": func(s *predictedWalker) bool { s.pose.Yaw += .02; return s.move(.2, 0, 0) },
		"a full turn":       func(s *predictedWalker) bool { s.pose.Yaw += 2 * math.Pi; return s.move(.2, 0, 0) },
		"a bit aside":       func(s *predictedWalker) bool { return s.move(.2, 0, .1) },
	} {
		if change(walk(t, 0)) {
			t.Errorf("the region is sent %s", name)
		}
	}
	s := walk(t, 0)
	if s.move(0, 0, .2); s.predictor.sentVelocity != VelocityOf(0, 0, .2) {
		t.Errorf("after a turn the player goes %v", s.predictor.sentVelocity)
	}
	if s.move(0, 0, 0); s.predictor.sentVelocity.Moving() {
		t.Errorf("after a stop the player goes %v", s.predictor.sentVelocity)
	}
}

// A player who has stopped or is held up sends nothing: they count as standing, exactly where they are.
func TestSilentPlayerStands(t *testing.T) {
	s := newPredictedWalker(t, 0)
	for range 23 {
		s.move(.2, 0, 0)
	}
	if s.predictor.HasStopped(s.arrivedAt + silentAfter) {
		t.Error("the player stands when moves are a bit late")
	}
	late := s.arrivedAt + silentAfter + 1
	if !s.predictor.HasStopped(late) {
		t.Fatal("the player does not stand after silence")
	}
	if s.predictor.CommitRest(late); s.predictor.lastSent != s.pose || s.predictor.sentVelocity.Moving() || s.predictor.HasStopped(late+time.Hour) {
		t.Errorf("the player stands, and the region is sent %+v", s.predictor)
	}
	s.now = late + time.Second
	if s.move(.1, 0, 0) || s.predictor.HasStopped(s.arrivedAt) {
		t.Error("the region is sent a small step before it is known to be all")
	}
	if !s.predictor.HasStopped(s.arrivedAt + silentAfter + 1) {
		t.Error("the region is not sent where the player is exactly")
	}
}

// For a player who sends moves less often than once a tick, the places in between are not known.
func TestSeldomMovesAreNotPredicted(t *testing.T) {
	for _, every := range []time.Duration{80 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond} {
		s := newPredictedWalker(t, 5*time.Millisecond)
		s.every = every
		for range 50 {
			if s.move(.3, 0, 0); s.predictor.sentVelocity.Moving() {
				t.Fatalf("every %v: the player is predicted", every)
			}
		}
	}
	s := newPredictedWalker(t, 5*time.Millisecond) // frames are drawn at 60 a second, and moves sent with every fourth
	for range 60 {
		s.every = 66 * time.Millisecond
		s.move(.27, 0, 0)
	}
	if n := s.since(s.now - 2*time.Second); n > 4 {
		t.Errorf("every 66 ms: %d updates in 2 s", n)
	}
}

// However a player walks, the error of the region's prediction stays within what check allows.
func TestRandomWalkStaysWithinBounds(t *testing.T) {
	for seed := range uint64(50) {
		s := newPredictedWalker(t, time.Duration(seed%3)*12*time.Millisecond)
		s.rng = rand.New(rand.NewPCG(seed, 9))
		var velocity [3]float64
		for range 1000 {
			switch s.rng.IntN(40) {
			case 0:
				velocity = [3]float64{}
			case 1, 2, 3:
				velocity = [3]float64{s.rng.Float64() - .5, 0, s.rng.Float64() - .5}
			case 4:
				velocity[1] = s.rng.Float64() - .5
			case 5:
				s.pose.Yaw = s.rng.Float32() * 6
			}
			s.move(velocity[0], velocity[1], velocity[2])
		}
		if n := s.since(0); n > 500 {
			t.Errorf("seed %d: %d updates of 1000 moves", seed, n)
		}
	}
}
