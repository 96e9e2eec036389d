package main

import (
	"bytes"
	"strings"
	"testing"
)

// The dissertation's world on its 2,000 nodes: 763 regions, and 30 players a node.
func TestSimCapacity(t *testing.T) {
	c := newSimCapacity()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs([]string{"--nodes", "2000"})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"60000 players, 763 regions | 2000 nodes |", "| players a node | 30.0 |", "| regions in the catalog | 763 |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	c = newSimCapacity()
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs([]string{"--players", "0"})
	if err := c.Execute(); err == nil {
		t.Error("a world without players is accepted")
	}
}
