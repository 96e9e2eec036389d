// Command sbom writes the bill of materials of a voxeld binary in CycloneDX's format (JSON): the Go modules that are
// linked into it, with their checksums, and the packages in its browser client. The same binary gives the same
// document.
//
//	sbom VERSION LOCK BINARY DOCUMENT
//
// LOCK is the client's package-lock.json.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The parts of a CycloneDX 1.6 document that are used here.
type (
	document struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
		PURL    string `json:"purl,omitempty"`
		Hashes  []hash `json:"hashes,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION LOCK BINARY DOCUMENT")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(version, lock, binary, file string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read build information: %w", err)
	}
	d := document{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{component{Type: "application", Name: info.Main.Path, Version: version, PURL: "pkg:golang/" + info.Main.Path + "@" + version}},
		Components: []component{{
			Type: "library", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
		}},
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version}
		if c.Hashes, err = sum("SHA-256", m.Sum, "h1:"); err != nil {
			return err
		}
		d.Components = append(d.Components, c)
	}
	client, err := clientPackages(lock)
	if err != nil {
		return err
	}
	d.Components = append(d.Components, client...)
	out, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(out, '\n'), 0o644) //nolint:gosec // the document is published
}

// clientPackages returns the npm packages that the client is bundled from; those for its development are not.
func clientPackages(lock string) ([]component, error) {
	data, err := os.ReadFile(lock)
	if err != nil {
		return nil, fmt.Errorf("read the client's packages: %w", err)
	}
	var locked struct {
		Packages map[string]struct {
			Version, Integrity string
			Dev                bool
		}
	}
	if err := json.Unmarshal(data, &locked); err != nil {
		return nil, fmt.Errorf("read %s: %w", lock, err)
	}
	var all []component
	for path, p := range locked.Packages {
		name, installed := strings.CutPrefix(path, "node_modules/")
		if !installed || p.Dev {
			continue
		}
		c := component{
			Type: "library", Name: name, Version: p.Version,
			PURL: "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + p.Version,
		}
		if c.Hashes, err = sum("SHA-512", p.Integrity, "sha512-"); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b component) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// sum returns a checksum that is written in base64 after a prefix.
func sum(algorithm, text, prefix string) ([]hash, error) {
	encoded, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return nil, nil
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("checksum %s: %w", text, err)
	}
	return []hash{{algorithm, hex.EncodeToString(raw)}}, nil
}
