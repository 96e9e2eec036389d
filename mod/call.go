package mod

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// This file is how scripts are called: api.js is loaded before a mod's script, and its value is a function. Of an empty
// text it returns the kinds of events that the script handles, of EncodeCall's what DecodeAnswers reads.

// Library is api.js.
//
//go:embed api.js
var Library string

//go:embed api.d.ts
var types string

// Types returns the types of what scripts are given, in TypeScript, for editors.
func Types() string {
	var b strings.Builder
	b.WriteString(types)
	b.WriteString("\n/** The name of a block in a state. */\ntype Block =\n")
	for block := chunk.Air; block.Known(); block++ {
		fmt.Fprintf(&b, "  | %q\n", block.Name())
	}
	return strings.TrimSuffix(b.String(), "\n") + ";\n"
}

const (
	// ViewRadius is how many blocks a script sees around an event, in each direction.
	ViewRadius = 3
	// ViewSide is how many blocks a View has along each axis.
	ViewSide = 2*ViewRadius + 1
	// Unseen stands for the blocks of a View that a region does not have.
	Unseen chunk.Block = math.MaxUint16
)

// View is the blocks around an event, along y, then z, then x.
type View [ViewSide * ViewSide * ViewSide]chunk.Block

// ViewPos returns where the block is that a View of an event there has at a place.
func ViewPos(event grid.Pos, place int) grid.Pos {
	return grid.Pos{
		X: event.X + int32(place%ViewSide) - ViewRadius,
		Y: event.Y + int32(place/(ViewSide*ViewSide)) - ViewRadius,
		Z: event.Z + int32(place/ViewSide%ViewSide) - ViewRadius,
	}
}

// Input is what a script is passed for an event.
type Input struct {
	Event Event
	View  View
}

// scriptInput is an Input in JSON. Each character of Cells is a block: '0' plus its place in Names, in which null stands for
// Unseen.
type scriptInput struct {
	Event json.RawMessage `json:"event"`
	Names []*string       `json:"names"`
	Cells string          `json:"cells"`
}

// EncodeCall returns what a script is called with. The seed is of its random numbers.
func EncodeCall(seed uint32, inputs []Input) (string, error) {
	call := struct {
		Seed   uint32        `json:"seed"`
		Events []scriptInput `json:"events"`
	}{max(seed, 1), make([]scriptInput, len(inputs))} // xorshift never leaves 0
	for i := range inputs {
		event, err := inputs[i].Event.AppendJSON(nil)
		if err != nil {
			return "", fmt.Errorf("encode event: %w", err)
		}
		call.Events[i] = inputs[i].View.script()
		call.Events[i].Event = event
	}
	text, err := json.Marshal(call)
	return string(text), err
}

func (v *View) script() (s scriptInput) {
	places := make(map[chunk.Block]rune)
	var cells strings.Builder
	for _, block := range v {
		place, known := places[block]
		if !known {
			place = '0' + rune(len(s.Names))
			places[block] = place
			var name *string
			if block != Unseen {
				name = new(block.Name())
			}
			s.Names = append(s.Names, name)
		}
		cells.WriteRune(place)
	}
	s.Cells = cells.String()
	return s
}

// Answer is what a script has returned for an event.
type Answer struct {
	Effects []Effect
	Err     error // for the mod's author
}

// DecodeAnswers reads what a script has returned for so many events.
func DecodeAnswers(text string, n int) ([]Answer, error) {
	var list []struct {
		Effects json.RawMessage `json:"effects"`
		Error   string          `json:"error"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("what the script has returned: %w", err)
	}
	if len(list) != n {
		return nil, fmt.Errorf("the script has returned %d answers to %d events", len(list), n)
	}
	answers := make([]Answer, n)
	for i, a := range list {
		if a.Error != "" {
			answers[i].Err = errors.New(a.Error)
			continue
		}
		answers[i].Effects, answers[i].Err = DecodeEffects(a.Effects)
	}
	return answers, nil
}
