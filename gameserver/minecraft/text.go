package minecraft

import (
	"encoding/json"
	"regexp"
)

// component is a text of the game.
type component struct {
	Text  string      `json:"text"`
	Color string      `json:"color,omitempty"`
	Extra []component `json:"extra,omitempty"`
}

// colourNotice is the colour of what is not said by a player.
const colourNotice = "yellow"

// colourCode is a colour, or a style, within a text.
var colourCode = regexp.MustCompile("§[0-9a-fk-or]?")

// textOf returns a text in one colour, or in the usual one. Codes of colours in it are removed.
func textOf(text, color string) component {
	return component{Text: colourCode.ReplaceAllString(text, ""), Color: color}
}

// json returns the text as the client reads it.
func (c component) json() string {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings only
	}
	return string(data)
}
