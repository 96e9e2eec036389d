package bot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
)

// sample returns a report with a value in every field.
func sample() Report {
	latency := Latency{Count: 40, Mean: 12.5, P50: 10, P90: 20, P99: 45.5, Max: 61.25}
	return Report{
		Target: "127.0.0.1:4002", Mode: OneChunk, Protocol: Session, Players: 10, Seed: 7, Elapsed: 30 * time.Second,
		Joined: 9, Failed: 1, Lost: 2, Moved: 5, Failures: map[string]int{"full": 1, "closed by server": 2}, Causes: map[string]string{"full": "no session is free"},
		Volume: Volume{
			Sent:     []Traffic{{"move", 5400, 180, 540_000}, {"edit", 42, 1.4, 3_000}},
			Received: []Traffic{{"frame", 5300, 176.7, 80_000_000}},
			BytesOut: 543_000, BytesIn: 80_000_000, PlayerTime: 260, OutPerPlayer: 2088, InPerPlayer: 307_692,
		},
		Edits: 45, Acked: 40, EditsLost: 3, Move: latency, Refused: map[string]int{"out_of_reach": 2}, Corrections: map[string]int{"too_fast": 3},
		Join: Latency{Count: 9, Mean: 100, P50: 99, P90: 120, P99: 130, Max: 131}, Ack: latency,
		Series: []Second{
			{At: 1, Players: 5, Sent: 100, Received: 90, BytesOut: 10_000, BytesIn: 900_000, Ack: latency},
			{At: 2, Players: 9, Sent: 180, Received: 170, BytesOut: 18_000, BytesIn: 2_900_000, Ack: latency},
		},
	}
}

func TestWriteTable(t *testing.T) {
	var b strings.Builder
	if err := sample().WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/report.txt", b.String())
}

// An empty run can be printed too.
func TestEmptyReport(t *testing.T) {
	var b strings.Builder
	if err := (Report{}).WriteTable(&b); err != nil || strings.Contains(b.String(), "NaN") {
		t.Errorf("%s: %v", b.String(), err)
	}
}

func TestReportJSONRoundTrip(t *testing.T) {
	want := sample()
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMeterAddsUp(t *testing.T) {
	m := newMeter()
	m.wrote("move", 100)
	m.wrote("move", 50)
	m.read("frame", 1000)
	m.entered(20 * time.Millisecond)
	m.edited()
	m.edited()
	m.acknowledged(8*time.Millisecond, "")
	first := m.second()
	m.acknowledged(0, "rate")
	m.seen(3 * time.Millisecond)
	m.wrote("edit", 10)
	m.corrected("too_fast")
	m.failure(&failure{"full", "no session is free"}, false)
	m.failure(fmt.Errorf("send move: %w", os.ErrDeadlineExceeded), true)
	m.left(2 * time.Second)
	second := m.second()

	if first.Sent != 2 || first.BytesOut != 150 || first.Received != 1 || first.Players != 1 || first.Ack.Count != 1 || first.Ack.P50 != 8 {
		t.Errorf("first second: %+v", first)
	}
	if second.Sent != 1 || second.BytesOut != 10 || second.Received != 0 || second.Players != 0 || second.Ack.Count != 0 || second.Seen.P50 != 3 {
		t.Errorf("second second: %+v", second)
	}
	r := m.report(Options{Players: 3}, nil)
	if r.Joined != 1 || r.Failed != 1 || r.Lost != 1 || r.Edits != 2 || r.Acked != 1 || r.Refused["rate"] != 1 {
		t.Errorf("report: %+v", r)
	}
	if r.OutPerPlayer != 80 || r.InPerPlayer != 500 { // 160 and 1000 bytes in 2 player seconds
		t.Errorf("bytes per player and second: %g out, %g in; want 80, 500", r.OutPerPlayer, r.InPerPlayer)
	}
	if len(r.Sent) != 2 || r.Sent[0].Type != "move" || r.Sent[0].Count != 2 || r.Sent[0].Bytes != 150 {
		t.Errorf("sent: %+v", r.Sent)
	}
}

// Each receiver measures a move once, and only if it is the probe.
func TestProbesMeasureTheMarkedMove(t *testing.T) {
	o := Options{}.withDefaults()
	c := &runState{Options: o, meter: newMeter(), allProbes: &latencyProbes{}}
	p := newProbeSender(c.allProbes, "ada", c.newBasePlayer(0).rng)
	w := newProbeReader(c.allProbes, c.meter)
	sent := time.Now()
	p.write(motion.Pose{X: 1.5, Y: 9, Z: -2.25}, sent)
	p.write(motion.Pose{X: 4, Y: 9, Z: 4}, sent.Add(time.Millisecond)) // too soon: no probe
	w.observe("ada", 4, 4, sent.Add(5*time.Millisecond))
	w.observe("bob", 1.5, -2.25, sent.Add(5*time.Millisecond))
	w.observe("ada", 1.5, -2.25, sent.Add(7*time.Millisecond))
	w.observe("ada", 1.5, -2.25, sent.Add(9*time.Millisecond))
	if s := c.meter.second().Seen; s.Count != 1 || s.P50 != 7 {
		t.Errorf("seen: %+v, want one of 7 ms", s)
	}
	p.write(motion.Pose{X: 1.5, Y: 9, Z: -2.25}, sent.Add(2*time.Second))
	w.observe("ada", 1.5, -2.25, sent.Add(2*time.Second+time.Millisecond))
	if s := c.meter.second().Seen; s.Count != 1 || s.P50 < 1 || s.P50 > 1.05 {
		t.Errorf("seen again: %+v, want one of 1 ms", s)
	}
}

func TestOptions(t *testing.T) {
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for name, o := range map[string]Options{
		"mode":     {Mode: "everywhere"},
		"protocol": {Protocol: "http"},
		"players":  {Players: -1},
		"rate":     {Rate: 1e6},
		"edits":    {Edits: -2},
		"speed":    {Speed: -1},
		"duration": {Duration: -time.Second},
		"ramp":     {Ramp: -1},
		"view":     {View: wire.MaxView + 1},
		"chunk":    {Chunk: grid.ChunkPos{X: grid.Limit}},
		"chunks":   {Chunks: -1},
		"timeout":  {Timeout: -1},
	} {
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("bad %s: error %v", name, err)
		}
	}
}

// Every option has a default, except those that have none.
func TestEveryOptionHasADefault(t *testing.T) {
	none := map[string]bool{"Edits": true, "Chunk": true, "Progress": true, "Keep": true, "Acked": true, "Timed": true}
	o := reflect.ValueOf(Options{}.withDefaults())
	for i := range o.NumField() {
		if name := o.Type().Field(i).Name; o.Field(i).IsZero() != none[name] {
			t.Errorf("%s: zero is %v", name, o.Field(i).IsZero())
		}
	}
}

// Players of many-chunks are spread evenly over different chunks around the middle.
func TestHomesAreEven(t *testing.T) {
	o := Options{Mode: ManyChunks, Players: 70, Chunks: 7, Chunk: grid.ChunkPos{X: 10, Z: -10}}.withDefaults()
	per := make(map[grid.ChunkPos]int)
	for i := range o.Players {
		per[o.homeOf(i)]++
	}
	if len(per) != 7 {
		t.Errorf("%d chunks, want 7: %v", len(per), per)
	}
	for c, n := range per {
		if n != 10 || abs(c.X-10) > 2 || abs(c.Z+10) > 2 {
			t.Errorf("%d players in %v", n, c)
		}
	}
}

func TestCodes(t *testing.T) {
	for want, err := range map[string]error{
		"full":                 &failure{"full", "no session is free"},
		"closed by server":     fmt.Errorf("read line: %w", io.EOF),
		"dial failed":          fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}),
		"timeout":              fmt.Errorf("send move: %w", os.ErrDeadlineExceeded),
		"server sent bad_json": &wire.Error{Code: wire.FailBadJSON},
		"other":                errors.New("what?"),
	} {
		if got := codeOf(err); got != want {
			t.Errorf("code of %v is %q, want %q", err, got, want)
		}
	}
}

func TestCauses(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for want, err := range map[string]error{
		"dial failed: connection refused": fmt.Errorf("dial: %w", refused),
		"full: no session is free":        &failure{"full", "no session is free"},
		"closed by server":                fmt.Errorf("read line: %w", io.EOF),
		"other: what?":                    errors.New("what?"),
	} {
		m := newMeter()
		m.failure(err, false)
		m.failure(err, false)
		if got := m.report(Options{}, nil).failureSummary(); got != want {
			t.Errorf("cause of %v is %q, want %q", err, got, want)
		}
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}
