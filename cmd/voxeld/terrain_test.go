package main

import (
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/world"
)

// A node generates the land of every terrain version up to its own. For a later one its error says what to do.
func TestTerrainVersions(t *testing.T) {
	for version := 1; version <= terrain.Version+1; version++ {
		n := &node{world: world.Genesis{Name: "old", Seed: 3, Sections: 4, Terrain: version}}
		g, err := n.generator()
		switch {
		case version > terrain.Version:
			if err == nil || !strings.Contains(err.Error(), "upgrade") {
				t.Errorf("a world of version %d: %v, want an error that says to upgrade", version, err)
			}
		case err != nil:
			t.Errorf("a world of version %d: %v", version, err)
		case g.Params().Version != version:
			t.Errorf("a world of version %d gets the land of version %d", version, g.Params().Version)
		}
	}
}
