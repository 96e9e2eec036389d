package mods

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/script"
)

// EventSteps is how many steps a script may take for an event: 4 to 12 ms. As many effects as it may have take half of
// that; those of a usual event 1 %.
const EventSteps = 1_000_000

// Check returns the mod of an archive, or what is wrong with it. It takes half a second.
func Check(packed []byte) (c mod.Content, err error) {
	if c, err = mod.Unpack(packed); err != nil {
		return c, err
	}
	engine, err := script.NewEngine()
	if err != nil {
		return c, err
	}
	_, err = Load(engine, c)
	return c, errors.Join(err, engine.Close())
}

// Load loads a mod's script. It fails unless the script handles just the events that the manifest asks for.
func Load(engine *script.Engine, c mod.Content) (*script.Program, error) {
	program, err := engine.Load(
		script.File{Text: mod.Library}, // without a name: exceptions name the place in the mod's script that led there
		script.File{Name: mod.ScriptFile, Text: string(c.Files[mod.ScriptFile])})
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", c.Name, err)
	}
	instance, err := program.Instance()
	if err != nil {
		return nil, err
	}
	defer instance.Close()
	text, _, err := instance.Call("", EventSteps)
	if err != nil {
		return nil, fmt.Errorf("ask %s what it handles: %w", c.Name, err)
	}
	var handled []mod.Kind
	if err := json.Unmarshal([]byte(text), &handled); err != nil {
		return nil, fmt.Errorf("ask %s what it handles: %w", c.Name, err)
	}
	for _, kind := range mod.Kinds {
		asked, handles := slices.Contains(c.Permissions.Events, kind), slices.Contains(handled, kind)
		switch {
		case asked && !handles:
			return nil, fmt.Errorf("%s lists the event %q, but %s has no on(%q, …)", mod.ManifestFile, kind, mod.ScriptFile, kind)
		case handles && !asked:
			return nil, fmt.Errorf("%s has on(%q, …), but %s does not list the event", mod.ScriptFile, kind, mod.ManifestFile)
		}
	}
	return program, nil
}
