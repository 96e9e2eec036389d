package mod

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// This file is what scripts read and write: events and effects in JSON, with the names of blocks.

// named is a block in JSON.
type named chunk.Block

func (n named) MarshalText() ([]byte, error) { return []byte(chunk.Block(n).Name()), nil }

func (n *named) UnmarshalText(text []byte) error {
	block, known := blocktable.Named(string(text))
	if !known {
		return fmt.Errorf("there is no block %.40q", text)
	}
	*n = named(block)
	return nil
}

type scriptEvent struct {
	Kind   Kind       `json:"kind"`
	Time   int64      `json:"time"`
	Pos    grid.Pos   `json:"pos"`
	Block  *named     `json:"block,omitempty"`
	Player *player.ID `json:"player,omitempty"`
	Data   string     `json:"data,omitempty"`
}

type scriptEffect struct {
	Set     *scriptSet     `json:"set"`
	Timer   *scriptTimer   `json:"timer"`
	Message *scriptMessage `json:"message"`
}

type scriptSet struct {
	Pos  *grid.Pos `json:"pos"`
	From *named    `json:"from"`
	To   *named    `json:"to"`
}

type scriptTimer struct {
	Pos   *grid.Pos `json:"pos"`
	After *int64    `json:"after"`
	Data  string    `json:"data"`
}

type scriptMessage struct {
	Player *player.ID `json:"player"`
	Text   string     `json:"text"`
}

// AppendJSON appends the event as scripts read it.
func (e Event) AppendJSON(b []byte) ([]byte, error) {
	s := scriptEvent{Kind: e.Kind, Time: e.Time, Pos: e.Pos, Data: e.Data}
	if e.Block != chunk.Air {
		s.Block = (*named)(&e.Block)
	}
	if e.Player != (player.ID{}) {
		s.Player = &e.Player
	}
	text, err := json.Marshal(s)
	return append(b, text...), err
}

// DecodeEffects reads what a script has returned for one event: null, or a list of effects. The errors are for the
// mod's author.
func DecodeEffects(data []byte) ([]Effect, error) {
	if len(data) > MaxAnswer {
		return nil, fmt.Errorf("the script has returned %d bytes, and at most %d are allowed", len(data), MaxAnswer)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var list []scriptEffect
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("what the script has returned: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("what the script has returned goes on after its list of effects")
	}
	if len(list) > MaxEffects {
		return nil, fmt.Errorf("%d effects of one event, and at most %d are allowed", len(list), MaxEffects)
	}
	effects := make([]Effect, 0, len(list))
	for i, s := range list {
		e, err := s.effect()
		if err != nil {
			return nil, fmt.Errorf("effect %d: %w", i, err)
		}
		effects = append(effects, e)
	}
	return effects, nil
}

func (s scriptEffect) effect() (e Effect, err error) {
	if s.Set != nil {
		if s.Set.Pos == nil || s.Set.From == nil || s.Set.To == nil {
			return e, errors.New("set: want pos, from and to")
		}
		e.Set = &Set{Pos: *s.Set.Pos, From: chunk.Block(*s.Set.From), To: chunk.Block(*s.Set.To)}
	}
	if s.Timer != nil {
		if s.Timer.Pos == nil || s.Timer.After == nil {
			return e, errors.New("timer: want pos and after")
		}
		e.Timer = &SetTimer{Pos: *s.Timer.Pos, After: *s.Timer.After, Data: s.Timer.Data}
	}
	if s.Message != nil {
		if s.Message.Player == nil {
			return e, errors.New("message: want player and text")
		}
		e.Message = &Message{Player: *s.Message.Player, Text: s.Message.Text}
	}
	if e.count() != 1 {
		return e, errors.New("want one of set, timer and message")
	}
	return e, nil
}
