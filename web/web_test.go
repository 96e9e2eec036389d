package web_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/web"
)

// The bundle must contain every file that the page refers to, and the page must not refer to other origins.
func TestPageRefersOnlyToItsOwnFiles(t *testing.T) {
	if !web.Built() {
		t.Skip("the client is not built: run `make build`")
	}
	page, err := fs.ReadFile(web.Client(), "index.html")
	if err != nil {
		t.Fatalf("read index.html: %v", err)
	}
	references := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllSubmatch(page, -1)
	if len(references) < 2 {
		t.Fatalf("page refers to %d files, want at least a script and an icon", len(references))
	}
	for _, reference := range references {
		name := string(reference[1])
		if len(name) > 2 && name[:2] == "./" {
			name = name[2:]
		}
		if _, err := fs.Stat(web.Client(), name); err != nil {
			t.Errorf("page refers to %q: %v", reference[1], err)
		}
	}
}

// Every file has its compressed copies, and the page with its scripts and styles takes less than 203 kB as gzip, which is what
// browsers accept over plain http.
func TestClientIsCompressed(t *testing.T) {
	if !web.Built() {
		t.Skip("the client is not built: run `make build`")
	}
	size := 0 // of what every player loads
	err := fs.WalkDir(web.Client(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !regexp.MustCompile(`\.(css|html|js|svg)$`).MatchString(name) {
			return err
		}
		for _, ending := range []string{".br", ".gz"} {
			data, err := fs.ReadFile(web.Client(), name+ending)
			if err != nil {
				t.Error(err)
			}
			if ending == ".gz" && !strings.Contains(name, "-dialog-") && !strings.Contains(name, "horizon-") { // what is loaded later
				size += len(data)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if size == 0 || size >= 203_000 {
		t.Errorf("the client has %d bytes as gzip", size)
	}
}
