package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The Python examples of docs/protocol.md run and print what the page says.
func TestProtocolExamples(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	doc, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := strings.Split(string(doc), "```python\n")[1:]
	wants := []string{"'type': 'ack'"}
	if len(examples) != len(wants) {
		t.Fatalf("the document has %d examples in Python, want %d", len(examples), len(wants))
	}
	d := startDaemon(t)
	for i, want := range wants {
		code, _, _ := strings.Cut(examples[i], "```")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		out, err := exec.CommandContext(ctx, python, "-c", strings.ReplaceAll(code, "127.0.0.1", d.ip)).CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "error") {
			t.Errorf("example %d: %v, want %q in\n%s", i, err, want, out)
		}
	}
}
