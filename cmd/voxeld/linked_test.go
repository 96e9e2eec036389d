package main

import (
	"debug/elf"
	"runtime"
	"testing"
)

// Executing a text/template finds methods by names that the linker does not know. It then keeps every exported method
// of every type that is linked: the binary grows by a fifth.
func TestNoTemplatesLinked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the test reads ELF")
	}
	path, err := daemonBinary()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	symbols, err := binary.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == "text/template.(*Template).Execute" {
			t.Errorf("%s is linked: go build -ldflags=-dumpdep ./cmd/voxeld shows by whom", s.Name)
		}
	}
}
