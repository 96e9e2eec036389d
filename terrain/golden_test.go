package terrain

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
)

var update = flag.Bool("update", false, "write the newest version's file in testdata anew (only before it is released)")

// The land of a version never changes: hashes of chunks over several seeds and heights, and the spawns.
func TestGolden(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		var got bytes.Buffer
		for _, sections := range []int{1, 2, 4, 32} {
			for _, seed := range []int64{0, 1, -42, 1 << 62} {
				g := newGenerator(t, version, seed, sections)
				fmt.Fprintf(&got, "sections %d seed %d spawn %v\n", sections, seed, g.Spawn())
				for _, p := range []grid.ChunkPos{
					{X: 0, Z: 0}, {X: -1, Z: 0}, {X: 12, Z: -23}, {X: -40, Z: 31}, {X: 5000, Z: -70000}, {X: grid.Limit - 1, Z: -grid.Limit},
				} {
					fmt.Fprintf(&got, "  %d,%d %x\n", p.X, p.Z, g.Chunk(p).Hash())
				}
			}
		}
		file := filepath.Join("testdata", fmt.Sprintf("golden-%d.txt", version))
		if *update && version == Version {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			a, b := bytes.Split(got.Bytes(), []byte("\n")), bytes.Split(want, []byte("\n"))
			for i := range min(len(a), len(b)) {
				if !bytes.Equal(a[i], b[i]) {
					t.Fatalf("%s:%d: land has changed:\n got %s\nwant %s", file, i+1, a[i], b[i])
				}
			}
			t.Fatalf("%s: got %d lines, want %d", file, len(a), len(b))
		}
	})
}

// The package comment promises that this package's products are never fused with sums. On arm64 the compiler would fuse
// them.
func TestNoFusedProducts(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for another architecture")
	}
	compile := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-S", ".")
	compile.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	listing, err := compile.CombinedOutput()
	if err != nil {
		t.Fatalf("compile for arm64: %v\n%.2000s", err, listing)
	}
	if !bytes.Contains(listing, []byte("FMULD")) {
		t.Fatal("the listing shows no products at all")
	}
	for _, line := range regexp.MustCompile(`(?m)^.*\sFN?M(ADD|SUB)D\s.*$`).FindAll(listing, -1) {
		t.Errorf("fused: %s", bytes.TrimSpace(line))
	}
}
