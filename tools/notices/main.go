// Command notices writes the licenses of what voxeld's binary and page are made of beside its own sources: Go's
// standard library, the Go modules that are linked on any platform of a release, and the npm packages that the page is
// bundled from.
//
//	notices [-check]
//
// It runs in the root of the repository, after npm ci, and writes web/public/notices.txt, which the page serves and
// packages contain.
// -check compares instead.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const file = "web/public/notices.txt"

// platforms are those of .goreleaser.yaml.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

func main() {
	check := flag.Bool("check", false, "compare with the file, and write nothing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	text, err := notices(".")
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(file, text, 0o644) //nolint:gosec // it is published
	}
	if old, err := os.ReadFile(file); err != nil || !bytes.Equal(old, text) {
		return errors.Join(fmt.Errorf("%s is out of date: run go run ./tools/notices", file), err)
	}
	return nil
}

// part is a package with its license.
type part struct{ name, dir string }

// notices returns the contents of the file.
func notices(root string) ([]byte, error) {
	modules, err := goModules(root)
	if err != nil {
		return nil, err
	}
	packages, err := npmPackages(root)
	if err != nil {
		return nil, err
	}
	goRoot, err := output(root, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	parts := append([]part{{"Go's standard library", strings.TrimSpace(goRoot)}}, append(modules, packages...)...)
	users := make(map[string][]string) // by text
	var texts []string
	for _, p := range parts {
		found, err := licenses(p)
		if err != nil {
			return nil, err
		}
		for _, text := range found {
			if users[text] == nil {
				texts = append(texts, text)
			}
			if users[text] = append(users[text], p.name); len(users[text]) > 1 && users[text][len(users[text])-2] == p.name {
				users[text] = users[text][:len(users[text])-1] // a package has a text twice
			}
		}
	}
	var b bytes.Buffer
	b.WriteString("voxeld is under the Apache License 2.0. It contains the software below, under the licenses that follow the names.\n")
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(users[text], "\n"), text)
	}
	return b.Bytes(), nil
}

// goModules lists the modules that are linked into voxeld.
func goModules(root string) ([]part, error) {
	found := make(map[string]string)
	for _, platform := range platforms {
		system, processor, _ := strings.Cut(platform, "/")
		list, err := output(root, []string{"GOOS=" + system, "GOARCH=" + processor, "CGO_ENABLED=0"},
			"go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", "./cmd/voxeld")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(list) {
			if name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				found[name] = dir
			}
		}
	}
	return sorted(found), nil
}

// npmPackages lists the packages that the page is bundled from; those for its development are not.
func npmPackages(root string) ([]part, error) {
	data, err := os.ReadFile(filepath.Join(root, "web/package-lock.json"))
	if err != nil {
		return nil, err
	}
	var locked struct {
		Packages map[string]struct{ Dev bool }
	}
	if err := json.Unmarshal(data, &locked); err != nil {
		return nil, fmt.Errorf("read package-lock.json: %w", err)
	}
	found := make(map[string]string)
	for path, p := range locked.Packages {
		if name, installed := strings.CutPrefix(path, "node_modules/"); installed && !p.Dev {
			found["npm: "+name] = filepath.Join(root, "web", path)
		}
	}
	return sorted(found), nil
}

func sorted(dirs map[string]string) (all []part) {
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		all = append(all, part{name, dirs[name]})
	}
	return all
}

var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|unlicense)([-._].*)?$`)

// licenses returns the texts of a package's licenses and notices.
func licenses(p part) (texts []string, err error) {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed: %w", p.name, err)
	}
	for _, e := range entries {
		if e.IsDir() || !licenseName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.dir, e.Name()))
		if err != nil {
			return nil, err
		}
		clean := strings.ToValidUTF8(strings.ReplaceAll(string(text), "\r\n", "\n"), "")
		lines := strings.Split(strings.TrimSpace(clean), "\n")
		for i, line := range lines {
			lines[i] = strings.TrimRight(line, " \t")
		}
		texts = append(texts, strings.Join(lines, "\n"))
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s has no file with its license", p.name)
	}
	return texts, nil
}

func output(dir string, environ []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), environ...)
	out, err := c.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		err = fmt.Errorf("%s %s: %s", name, args[0], failed.Stderr)
	}
	return string(out), err
}
