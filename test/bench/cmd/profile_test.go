package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The functions that profiles are read by exist: a renamed one would count as 0 without an error.
func TestProfiledFunctionsExist(t *testing.T) {
	var names []string
	for _, kind := range workKinds {
		names = append(names, kind.below...)
	}
	for _, name := range slices.Concat(receiveFuncs, leadFuncs) {
		names = append(names, strings.TrimPrefix(name, module))
	}
	method := regexp.MustCompile(`^((?:gameserver|region)(?:/\w+)*)\.\(\*(\w+)\)\.(\w+)$`)
	for _, name := range names {
		m := method.FindStringSubmatch(name)
		if m == nil {
			if !strings.HasPrefix(name, "runtime.") {
				t.Errorf("%s is no method of gameserver or region", name)
			}
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", "..", "..", m[1], "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		declared := regexp.MustCompile(`(?m)^func \(\w+ \*` + m[2] + `\) ` + m[3] + `\(`)
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && declared.Match(text)
		}) {
			t.Errorf("there is no %s", name)
		}
	}
}
