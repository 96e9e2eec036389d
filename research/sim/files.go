package sim

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Recorded is movement from a file.
type Recorded struct {
	First  int     // the file's first round; it is round 0 of the simulation
	Names  []int64 // the file's number of each player
	rounds [][]Body
}

// maxRecorded bounds the rows of a file: 2000 players for 5000 rounds.
const maxRecorded = 10_000_000

// ReadMoves reads CSV with the columns round,player,x,y,vx,vy: one row per player and round, the rounds in order, in
// blocks and blocks a round. The papers' y is Z. A player without a row is not in the game in that round.
func ReadMoves(from io.Reader) (*Recorded, error) {
	g := &Recorded{}
	index := map[int64]int{}
	taken := 0
	err := eachRow(from, 6, func(cells []string) error {
		if taken++; taken > maxRecorded {
			return fmt.Errorf("more than %d rows", maxRecorded)
		}
		return g.add(cells, index)
	})
	if err != nil {
		return nil, fmt.Errorf("read moves: %w", err)
	}
	if len(g.rounds) == 0 {
		return nil, errors.New("read moves: the file has no rows")
	}
	return g, nil
}

// eachRow calls visit with each row of a CSV file that has so many columns; the first row may be a heading, "round,…".
// An error of a row names its line.
func eachRow(from io.Reader, cells int, visit func(cells []string) error) error {
	in := csv.NewReader(from)
	in.FieldsPerRecord = cells
	in.ReuseRecord = true
	in.TrimLeadingSpace = true
	for first := true; ; first = false {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if first && row[0] == "round" {
			continue
		}
		if err := visit(row); err != nil {
			line, _ := in.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func (g *Recorded) add(cells []string, index map[int64]int) error {
	round, err := strconv.Atoi(cells[0])
	if err != nil {
		return fmt.Errorf("read round: %w", err)
	}
	name, err := strconv.ParseInt(cells[1], 10, 64)
	if err != nil {
		return fmt.Errorf("read player: %w", err)
	}
	var v [4]float64
	for i := range v {
		if v[i], err = strconv.ParseFloat(cells[2+i], 64); err != nil {
			return fmt.Errorf("read number: %w", err)
		}
	}
	b := Body{At: overlay.Point{X: v[0], Z: v[1]}, Velocity: overlay.Point{X: v[2], Z: v[3]}, Here: true}
	if !b.At.Valid() || !b.Velocity.Valid() {
		return errors.New("out of the world")
	}
	if len(g.rounds) == 0 {
		g.First = round
		g.rounds = append(g.rounds, nil)
	}
	switch at := round - g.First; at {
	case len(g.rounds):
		g.rounds = append(g.rounds, nil)
	case len(g.rounds) - 1:
	default:
		return fmt.Errorf("round %d comes after round %d", round, g.First+len(g.rounds)-1)
	}
	i, ok := index[name]
	if !ok {
		i = len(g.Names)
		index[name] = i
		g.Names = append(g.Names, name)
	}
	bodies := &g.rounds[len(g.rounds)-1]
	for len(*bodies) <= i {
		*bodies = append(*bodies, Body{})
	}
	(*bodies)[i] = b
	return nil
}

// Rounds returns the last round of the simulation, for Config.Rounds.
func (g *Recorded) Rounds() int { return len(g.rounds) - 1 }

// Players implements Movement.
func (g *Recorded) Players() int { return len(g.Names) }

// Move implements Movement.
func (g *Recorded) Move(round int, bodies []Body) {
	clear(bodies)
	if round < len(g.rounds) {
		copy(bodies, g.rounds[round])
	}
}

// WriteMoves writes a movement's rounds 0 to rounds in the format of ReadMoves.
func WriteMoves(to io.Writer, m Movement, rounds int) error {
	w := bufio.NewWriter(to)
	var line []byte
	line = append(line, "round,player,x,y,vx,vy\n"...)
	bodies := make([]Body, m.Players())
	for round := range rounds + 1 {
		m.Move(round, bodies)
		for i, b := range bodies {
			if b.Here {
				line = fmt.Appendf(line, "%d,%d,%.4f,%.4f,%.4f,%.4f\n", round, i, b.At.X, b.At.Z, b.Velocity.X, b.Velocity.Z)
			}
		}
		if _, err := w.Write(line); err != nil {
			return fmt.Errorf("write moves: %w", err)
		}
		line = line[:0]
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write moves: %w", err)
	}
	return nil
}

// CSVLog writes the events of a run: deliveries (round,receiver,origin,origin_round) and traffic (round,player,out,in).
// An update that was sent in r and is usable in r+1 reads r+1,…,…,r. Servers have negative numbers in traffic, from -1.
type CSVLog struct {
	deliveries, traffic *bufio.Writer
	first               int
	names               []int64
	line                []byte
}

// NewCSVLog writes the headings. of, which may be nil, is the recording whose rounds and numbers are used.
func NewCSVLog(deliveries, traffic io.Writer, of *Recorded) *CSVLog {
	l := &CSVLog{deliveries: bufio.NewWriterSize(deliveries, 1<<16), traffic: bufio.NewWriterSize(traffic, 1<<16)}
	if of != nil {
		l.first, l.names = of.First, of.Names
	}
	// An error here recurs in Flush.
	_, _ = l.deliveries.WriteString("round,receiver,origin,origin_round\n")
	_, _ = l.traffic.WriteString("round,player,out,in\n")
	return l
}

func (l *CSVLog) name(id overlay.ID) int64 {
	switch {
	case id.Server():
		return -1 - int64(id-overlay.FirstServer)
	case int(id) < len(l.names):
		return l.names[id]
	}
	return int64(id)
}

func (l *CSVLog) write(w *bufio.Writer, cells ...int64) {
	l.line = l.line[:0]
	for i, c := range cells {
		if i > 0 {
			l.line = append(l.line, ',')
		}
		l.line = strconv.AppendInt(l.line, c, 10)
	}
	l.line = append(l.line, '\n')
	_, _ = w.Write(l.line) // a bufio.Writer keeps its error for Flush
}

// Delivered implements Log.
func (l *CSVLog) Delivered(round int, receiver, origin overlay.ID, originRound int) {
	l.write(l.deliveries, int64(round+l.first), l.name(receiver), l.name(origin), int64(originRound+l.first))
}

// Traffic implements Log.
func (l *CSVLog) Traffic(round int, player overlay.ID, out, in int) {
	l.write(l.traffic, int64(round+l.first), l.name(player), int64(out), int64(in))
}

// Flush writes buffered data, and returns an error if anything could not be written.
func (l *CSVLog) Flush() error { return errors.Join(l.deliveries.Flush(), l.traffic.Flush()) }
