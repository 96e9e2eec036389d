package web_test

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

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
	if _, err := fs.Stat(web.Client(), "notices.txt"); err != nil { // the menu refers to it
		t.Error(err)
	}
	references := pageReference.FindAllSubmatch(page, -1)
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

// Every file has its compressed copies.
func TestClientIsCompressed(t *testing.T) {
	if !web.Built() {
		t.Skip("the client is not built: run `make build`")
	}
	err := fs.WalkDir(web.Client(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !regexp.MustCompile(`\.(css|html|js|svg)$`).MatchString(name) {
			return err
		}
		for _, ending := range []string{".br", ".gz"} {
			if _, err := fs.Stat(web.Client(), name+ending); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What every player loads before they can play takes at most 105 kB as gzip, which is what browsers accept over plain
// http.
func TestFirstLoad(t *testing.T) {
	if !web.Built() {
		t.Skip("the client is not built: run `make build`")
	}
	names, err := firstLoad(web.Client())
	if err != nil {
		t.Fatal(err)
	}
	size, engine := 0, false
	for _, name := range names {
		data, err := fs.ReadFile(web.Client(), name)
		if err != nil {
			t.Fatal(err)
		}
		engine = engine || bytes.Contains(data, []byte("uniformMatrix4fv"))
		compressed, err := fs.ReadFile(web.Client(), name+".gz")
		if err != nil {
			t.Fatal(err)
		}
		size += len(compressed)
	}
	t.Logf("the first load is %d bytes as gzip: %v", size, names)
	if size > 105_000 {
		t.Errorf("the first load is %d bytes as gzip, want at most 105,000: load what is not needed at once with import()", size)
	}
	if !engine {
		t.Errorf("the first load %v does not include the script that draws: index.html must preload it", names)
	}
	if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "worker") }) {
		t.Errorf("the first load %v does not include the worker that makes meshes", names)
	}
}

// firstLoad returns the files of the client that a player loads before they can play: the page, what it refers to, and
// the scripts that these import or start as workers. What a script loads by import() is not included, unless the page
// preloads it; nor is the icon that a phone loads when its owner puts the page on the home screen.
func firstLoad(client fs.FS) ([]string, error) {
	var names []string
	queue := []string{"index.html"}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		data, err := fs.ReadFile(client, name)
		if err != nil {
			return nil, err
		}
		references := scriptReference
		if path.Ext(name) == ".html" {
			references = pageReference
		}
		for _, match := range references.FindAllSubmatch(homeScreenIcon.ReplaceAll(data, nil), -1) {
			queue = append(queue, path.Join(path.Dir(name), string(match[1])))
		}
	}
	return names, nil
}

var (
	homeScreenIcon = regexp.MustCompile(`<link rel="apple-touch-icon"[^>]*>`)
	pageReference  = regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	// A static import, or the address of a worker.
	scriptReference = regexp.MustCompile("(?:\\bfrom|\\bimport|\\bnew URL\\()\\s*[\"'`]([\\w./-]+\\.js)[\"'`]")
)

func TestFirstLoadFollowsImports(t *testing.T) {
	client := fstest.MapFS{
		"index.html":         {Data: []byte(`<script src="./assets/main.js"></script><link rel="modulepreload" href="./assets/game.js">`)},
		"assets/main.js":     {Data: []byte(`import{a}from"./shared.js";import("./game.js");import("./dialog.js")`)},
		"assets/shared.js":   {Data: []byte(`export const a=1`)},
		"assets/game.js":     {Data: []byte("import\"./effects.js\";new Worker(new URL(`worker.js`,import.meta.url))")},
		"assets/effects.js":  {},
		"assets/worker.js":   {},
		"assets/dialog.js":   {Data: []byte(`import{b}from"./dialogs.js"`)},
		"assets/dialogs.js":  {},
		"assets/style.css":   {},
		"assets/main.js.gz":  {},
		"assets/unused.html": {},
	}
	got, err := firstLoad(client)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{"assets/effects.js", "assets/game.js", "assets/main.js", "assets/shared.js", "assets/worker.js", "index.html"}
	if !slices.Equal(got, want) {
		t.Errorf("first load = %v, want %v", got, want)
	}
}
