package bot

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/histogram"
)

// Report is what a run measured. All rates are per second of Elapsed unless their name says otherwise.
type Report struct {
	Target   string        `json:"target"`
	Mode     Mode          `json:"mode"`
	Protocol Protocol      `json:"protocol"`
	Players  int           `json:"players"` // requested
	Seed     uint64        `json:"seed"`
	Elapsed  time.Duration `json:"elapsed_ns"`

	Joined   int            `json:"joined"`
	Failed   int            `json:"failed"`   // never joined
	Lost     int            `json:"lost"`     // joined, then lost the connection and found no other gateway
	Moved    int            `json:"moved"`    // completed redirects to another gateway
	Failures map[string]int `json:"failures"` // why players failed or were lost: code → players

	Causes map[string]string `json:"causes"` // detail of the first of Failures: code → text

	Volume

	Edits       int            `json:"edits"`       // sent
	Acked       int            `json:"acked"`       // answered as committed
	EditsLost   int            `json:"edits_lost"`  // never answered by any gateway
	Refused     map[string]int `json:"refused"`     // answered as refused: code → edits
	Corrections map[string]int `json:"corrections"` // moves that the server corrected: reason → moves

	Chunks Chunks `json:"chunks"` // original protocol only

	Join Latency `json:"join"` // dial to the first chunk of land
	Move Latency `json:"move"` // redirect to the first chunk of land from the new gateway
	Ack  Latency `json:"ack"`  // edit sent to edit acknowledged as safe (original: to the changed chunk)
	Seen Latency `json:"seen"` // move sent to move seen by another player of this run

	Series []Second `json:"series"`
}

// Chunks is what the players of the original protocol observed on their connections to chunks.
type Chunks struct {
	Borders int    `json:"borders"`      // crossings of chunk borders
	Resets  int    `json:"resets"`       // connections that the server reset, and that were opened again
	Pause   Millis `json:"pause_max_ms"` // longest time from a reset of the chunk under the player until they continued
}

// Volume is how much was sent and received. It is part of the JSON object of the report.
type Volume struct {
	Sent         []Traffic `json:"sent"`     // by type, busiest first
	Received     []Traffic `json:"received"` // by type, busiest first
	BytesOut     uint64    `json:"bytes_out"`
	BytesIn      uint64    `json:"bytes_in"`
	PlayerTime   Seconds   `json:"player_seconds"`           // sum of the times that players were in the world
	OutPerPlayer float64   `json:"bytes_out_per_player_sec"` // bytes written per player and second in the world
	InPerPlayer  float64   `json:"bytes_in_per_player_sec"`  // bytes read per player and second in the world
}

// Traffic is what was sent or received of one type of packet.
type Traffic struct {
	Type      string  `json:"type"`
	Count     uint64  `json:"count"`
	PerSecond float64 `json:"per_second"`
	Bytes     uint64  `json:"bytes"`
}

// Millis is a duration in milliseconds.
type Millis float64

// Seconds is a duration in seconds.
type Seconds float64

func millis(d time.Duration) Millis { return Millis(float64(d) / float64(time.Millisecond)) }

// Latency is a distribution of durations, exact to about 1 %.
type Latency struct {
	Count uint64 `json:"count"`
	Mean  Millis `json:"mean_ms"`
	P50   Millis `json:"p50_ms"`
	P90   Millis `json:"p90_ms"`
	P99   Millis `json:"p99_ms"`
	Max   Millis `json:"max_ms"`
}

func latencyOf(h histogram.Histogram) Latency {
	if h.Count() == 0 {
		return Latency{}
	}
	ms := func(seconds float64) Millis { return Millis(1000 * seconds) }
	return Latency{
		Count: h.Count(), Mean: ms(h.Mean()),
		P50: ms(h.Quantile(.5)), P90: ms(h.Quantile(.9)), P99: ms(h.Quantile(.99)), Max: ms(h.Max()),
	}
}

// Second is one second of a run: what happened since the one before it.
type Second struct {
	At       Seconds `json:"at"`      // since the start
	Players  int     `json:"players"` // in the world now
	Sent     uint64  `json:"sent"`    // packets
	Received uint64  `json:"received"`
	BytesOut uint64  `json:"bytes_out"`
	BytesIn  uint64  `json:"bytes_in"`
	Ack      Latency `json:"ack"`
	Seen     Latency `json:"seen"`
}

// WriteTable writes the report as a table.
func (r Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s protocol, %s, %s, seed %d\n\n",
		r.Mode, r.Protocol, r.Target, r.Elapsed.Round(100*time.Millisecond), r.Seed)
	fmt.Fprintf(&b, "players    %d wanted, %d joined, %d failed, %d lost\n", r.Players, r.Joined, r.Failed, r.Lost)
	for _, code := range byCount(r.Failures) {
		fmt.Fprintf(&b, "  because  %d × %s\n", r.Failures[code], r.cause(code))
	}
	if r.Moved > 0 {
		fmt.Fprintf(&b, "moved      %d times to a new home\n", r.Moved)
	}
	fmt.Fprintf(&b, "bytes      %s/s out and %s/s in for each player\n", size(r.OutPerPlayer), size(r.InPerPlayer))
	if r.Edits > 0 {
		fmt.Fprintf(&b, "edits      %d sent, %d acknowledged, %d lost\n", r.Edits, r.Acked, r.EditsLost)
		writeCodes(&b, "  refused  ", r.Refused)
	}
	writeCodes(&b, "corrected  ", r.Corrections)
	if c := r.Chunks; r.Protocol == Original {
		fmt.Fprintf(&b, "chunks     %d borders crossed, %d resets survived, the longest in %.1f ms\n", c.Borders, c.Resets, c.Pause)
	}

	rows := [][]string{{"latency", "count", "p50", "p90", "p99", "max"}}
	for _, row := range []struct {
		name string
		l    Latency
	}{{"join", r.Join}, {"new home", r.Move}, {"edit→ack", r.Ack}, {"move→seen", r.Seen}} {
		cells := []string{row.name, strconv.FormatUint(row.l.Count, 10)}
		for _, ms := range []Millis{row.l.P50, row.l.P90, row.l.P99, row.l.Max} {
			if row.l.Count == 0 {
				cells = append(cells, "-")
			} else {
				cells = append(cells, fmt.Sprintf("%.1f ms", ms))
			}
		}
		rows = append(rows, cells)
	}
	writeRows(&b, rows)

	rows = [][]string{{"packets", "type", "count", "/s", "bytes"}}
	for _, dir := range []struct {
		name string
		list []Traffic
	}{{"sent", r.Sent}, {"received", r.Received}} {
		for _, p := range dir.list {
			rows = append(rows, []string{
				dir.name, p.Type,
				strconv.FormatUint(p.Count, 10), fmt.Sprintf("%.1f", p.PerSecond), size(float64(p.Bytes)),
			})
		}
	}
	writeRows(&b, rows)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeRows writes an empty line and the rows, their columns aligned to the right.
func writeRows(b *strings.Builder, rows [][]string) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	b.WriteByte('\n')
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t") //nolint:errcheck // a Builder takes it
	}
	t.Flush() //nolint:errcheck // a Builder takes it
}

// cause returns a code of Failures with its cause.
func (r Report) cause(code string) string {
	if text := r.Causes[code]; text != "" {
		return code + ": " + text
	}
	return code
}

// failureSummary returns Failures in one line.
func (r Report) failureSummary() string {
	var all []string
	for _, code := range byCount(r.Failures) {
		all = append(all, r.cause(code))
	}
	return strings.Join(all, "; ")
}

// byCount returns the codes, the most frequent first.
func byCount(codes map[string]int) []string {
	return slices.SortedFunc(maps.Keys(codes), func(a, c string) int {
		return cmp.Or(cmp.Compare(codes[c], codes[a]), cmp.Compare(a, c))
	})
}

func writeCodes(b *strings.Builder, label string, codes map[string]int) {
	for _, code := range byCount(codes) {
		fmt.Fprintf(b, "%s%d × %s\n", label, codes[code], code)
	}
}

func size(bytes float64) string {
	switch {
	case bytes >= 10<<20:
		return fmt.Sprintf("%.1f MiB", bytes/(1<<20))
	case bytes >= 10<<10:
		return fmt.Sprintf("%.1f KiB", bytes/(1<<10))
	default:
		return fmt.Sprintf("%.0f B", bytes)
	}
}
