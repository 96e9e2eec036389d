package sim

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Delivery is an update that reached a player's game and was usable in Round. Players are numbered as in the movement.
type Delivery struct {
	Round, OriginRound int32
	Receiver, Origin   int32
}

// Score measures deliveries of another program in the same way as Run measures its own.
type Score struct {
	crowd
	moves Movement
	next  int // round
}

// NewScore returns a Score at round 0.
func NewScore(m Movement, ranges Ranges, age AgeRule) *Score {
	n := m.Players()
	s := &Score{moves: m, crowd: crowd{
		n: n, ranges: ranges, age: age, bodies: make([]Body, n), here: make([]bool, n), since: make([]int, n), known: newKnowledge(n),
	}}
	return s
}

// Round adds the next round's deliveries and measures it; for round 0 the result is empty. An impossible update is an
// error: one of an unknown player, or of a future round.
func (s *Score) Round(deliveries []Delivery) (Round, error) {
	round := s.next
	s.next++
	s.moves.Move(round, s.bodies)
	for i, b := range s.bodies {
		switch {
		case b.Here && !s.here[i]:
			s.since[i] = round
		case !b.Here && s.here[i]:
			s.known.remove(i)
		}
		s.here[i] = b.Here
	}
	for _, d := range deliveries {
		if d.Receiver < 0 || int(d.Receiver) >= s.n || d.Origin < 0 || int(d.Origin) >= s.n || d.OriginRound < 0 || d.OriginRound >= d.Round || int(d.Round) != round {
			return Round{}, fmt.Errorf("score: impossible update %+v in round %d", d, round)
		}
		if d.Receiver != d.Origin && s.here[d.Receiver] {
			s.known.record(int(d.Receiver), int(d.Origin), int(d.OriginRound))
		}
	}
	return s.measure(round), nil
}

// ScoreDeliveries measures a file of deliveries (see CSVLog) with the movement that it belongs to. Its rows must be in
// the order of their rounds.
func ScoreDeliveries(moves *Recorded, from io.Reader, ranges Ranges, age AgeRule) (*Result, error) {
	index := make(map[int64]int32, len(moves.Names))
	for i, name := range moves.Names {
		index[name] = int32(i)
	}
	s, result := NewScore(moves, ranges, age), &Result{}
	var waiting []Delivery
	upTo := func(round int) error {
		for s.next < round {
			m, err := s.Round(waiting)
			if err != nil {
				return err
			}
			waiting = waiting[:0]
			if s.next > 1 {
				result.Rounds = append(result.Rounds, m)
			}
		}
		return nil
	}
	err := eachRow(from, 4, func(cells []string) error {
		d, err := readDelivery(cells, index, moves.First)
		if err != nil {
			return err
		}
		if int(d.Round) < s.next {
			return errors.New("rounds are not in order")
		}
		if err := upTo(min(int(d.Round), moves.Rounds()+1)); err != nil {
			return err
		}
		if int(d.Round) <= moves.Rounds() { // the last updates arrive after the end of the game
			waiting = append(waiting, d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	return result, upTo(moves.Rounds() + 1)
}

func readDelivery(cells []string, index map[int64]int32, first int) (d Delivery, err error) {
	var v [4]int64
	for i := range v {
		if v[i], err = strconv.ParseInt(cells[i], 10, 32); err != nil {
			return d, fmt.Errorf("read number: %w", err)
		}
	}
	receiver, ok := index[v[1]]
	origin, okToo := index[v[2]]
	if !ok || !okToo {
		return d, errors.New("the player is not in the movement")
	}
	d = Delivery{Round: int32(v[0]) - int32(first), Receiver: receiver, Origin: origin, OriginRound: int32(v[3]) - int32(first)}
	if d.Round < 0 {
		return d, errors.New("before the first round")
	}
	return d, nil
}

// Record stores the rounds 0 to rounds of a movement.
func Record(m Movement, rounds int) *Recorded {
	g := &Recorded{}
	bodies := make([]Body, m.Players())
	for i := range bodies {
		g.Names = append(g.Names, int64(i))
	}
	for round := range rounds + 1 {
		m.Move(round, bodies)
		g.rounds = append(g.rounds, append([]Body(nil), bodies...))
	}
	return g
}

// At returns the position of a player in a round, in which they are in the game.
func (g *Recorded) At(round, player int) overlay.Point { return g.rounds[round][player].At }
