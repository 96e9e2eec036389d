// Structure measures what makes a package hard to read, and fails if a package exceeds a limit: files, lines, methods of a
// type, fields of a struct, and backward arrows between files.
//
//	go run ./tools/structure [-v] [packages]
//
// File A points to file B if A uses something that B declares. The files of a package are put into the order with the
// fewest arrows that point backwards; a package without backward arrows has no two files that use each other, directly or
// by way of others. Test files are not counted. With -v it prints all packages and the backward arrows.
//
// exceptions.txt lists what exceeds a limit for now, with its value. It may only shrink: a value that is too high, and an
// exception that is not needed, fail too.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// limits are the largest allowed values.
var limits = map[string]int{"files": 20, "lines": 3000, "methods": 40, "fields": 25, "backward": 10}

//go:embed exceptions.txt
var exceptions string

func main() {
	verbose := flag.Bool("v", false, "print all packages and the backward arrows")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles |
		packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedModule}, patterns...)
	if err != nil {
		fail(err)
	}
	exceeds := make(map[string]int) // "package limit [type]" -> value
	for _, p := range loaded {
		for _, e := range p.Errors {
			fail(e)
		}
		m := measure(p)
		if *verbose {
			m.print()
		}
		m.check(exceeds)
	}
	if !report(exceeds, len(flag.Args()) == 0) {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// report prints what differs from the exceptions, and reports whether nothing does. Missing exceptions count only if all
// packages were measured.
func report(exceeds map[string]int, all bool) (ok bool) {
	ok = true
	known := make(map[string]int)
	for line := range strings.Lines(exceptions) {
		line, _, _ = strings.Cut(line, "#")
		at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if at < 0 {
			continue
		}
		var value int
		if _, err := fmt.Sscan(line[at:], &value); err != nil {
			fail(fmt.Errorf("exceptions.txt: %q: %w", line, err))
		}
		known[strings.Join(strings.Fields(line[:at]), " ")] = value
	}
	for _, what := range slices.Sorted(maps.Keys(exceeds)) {
		switch value, most := exceeds[what], known[what]; {
		case most == 0:
			fmt.Printf("%s: %d; the limit is %s (docs/ARCHITECTURE.md): cut by idea, not by length\n", what, value, limitText(what))
			ok = false
		case value != most:
			fmt.Printf("%s %d: tools/structure/exceptions.txt has %d\n", what, value, most)
			ok = false
		}
	}
	for _, what := range slices.Sorted(maps.Keys(known)) {
		if _, needed := exceeds[what]; all && !needed {
			fmt.Printf("%s: the exception is not needed any more\n", what)
			ok = false
		}
	}
	return ok
}

func limitText(what string) string {
	limit := strings.Fields(what)[1]
	if limit == "backward" {
		return fmt.Sprintf("less than %d %% of the arrows (-v lists them)", limits[limit])
	}
	return fmt.Sprint(limits[limit])
}

// measured holds the figures of a package.
type measured struct {
	name            string
	files           []string
	count, lines    int                 // with the files for other systems and build tags
	uses            [][]map[string]bool // from file, to file: the names used
	order           []int               // of the files, users first
	arrows, back    int
	methods, fields map[string]int // of types
}

func measure(p *packages.Package) *measured {
	m := &measured{
		name:    strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, p.Module.Path), "/"),
		methods: make(map[string]int), fields: make(map[string]int),
	}
	index := make(map[string]int)
	for _, f := range p.Syntax {
		name := p.Fset.Position(f.Package).Filename
		if ast.IsGenerated(f) {
			continue
		}
		index[name] = len(m.files)
		m.files = append(m.files, filepath.Base(name))
		m.lines += countLines(name)
	}
	m.count = len(m.files)
	for _, name := range p.IgnoredFiles { // for other systems or build tags
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			m.count++
			m.lines += countLines(name)
		}
	}
	m.uses = make([][]map[string]bool, len(m.files))
	for i := range m.uses {
		m.uses[i] = make([]map[string]bool, len(m.files))
	}
	for id, o := range p.TypesInfo.Uses {
		o = origin(o)
		if o.Pkg() != p.Types || !o.Pos().IsValid() {
			continue
		}
		from, known := index[fileOf(p.Fset, id.Pos())]
		to, declared := index[fileOf(p.Fset, o.Pos())]
		if !known || !declared || from == to {
			continue
		}
		if m.uses[from][to] == nil {
			m.uses[from][to] = make(map[string]bool)
			m.arrows++
		}
		m.uses[from][to][o.Name()] = true
	}
	for _, part := range m.cycles() {
		m.order = append(m.order, m.best(part)...)
	}
	m.back = len(m.backward())
	for _, o := range p.TypesInfo.Defs {
		t, isType := o.(*types.TypeName)
		if !isType || t.IsAlias() {
			continue
		}
		if named, ok := t.Type().(*types.Named); ok {
			m.methods[t.Name()] = max(m.methods[t.Name()], named.NumMethods())
			if s, ok := named.Underlying().(*types.Struct); ok {
				m.fields[t.Name()] = max(m.fields[t.Name()], countFields(s))
			}
		}
	}
	return m
}

func countLines(name string) int {
	text, err := os.ReadFile(name)
	if err != nil {
		fail(err)
	}
	return bytes.Count(text, []byte{'\n'})
}

func fileOf(fset *token.FileSet, at token.Pos) string { return fset.Position(at).Filename }

// origin returns the generic object of an instance.
func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

// countFields counts a struct's fields, and those of anonymous structs in it.
func countFields(s *types.Struct) (n int) {
	for f := range s.Fields() {
		if nested, ok := f.Type().(*types.Struct); ok {
			n += countFields(nested)
		} else {
			n++
		}
	}
	return n
}

func (m *measured) check(exceeds map[string]int) {
	over := func(limit, of string, value int) {
		if value > limits[limit] {
			exceeds[strings.TrimSpace(m.name+" "+limit+" "+of)] = value
		}
	}
	over("files", "", m.count)
	over("lines", "", m.lines)
	for t, n := range m.methods {
		over("methods", t, n)
	}
	for t, n := range m.fields {
		over("fields", t, n)
	}
	if m.back*100 >= m.arrows*limits["backward"] && m.back > 0 {
		exceeds[m.name+" backward"] = m.back
	}
}

func (m *measured) print() {
	fmt.Printf("%-28s %3d files %5d lines %4d arrows %3d backward\n", m.name, m.count, m.lines, m.arrows, m.back)
	for _, line := range m.backward() {
		fmt.Println("    " + line)
	}
}

// backward describes the arrows that point backwards.
func (m *measured) backward() (lines []string) {
	for at, from := range m.order {
		for _, to := range m.order[:at] {
			if used := m.uses[from][to]; used != nil {
				lines = append(lines, fmt.Sprintf("%s -> %s: %s", m.files[from], m.files[to], strings.Join(slices.Sorted(maps.Keys(used)), ", ")))
			}
		}
	}
	return lines
}

// cycles returns the files that use each other, directly or by way of others, users first (Tarjan's algorithm).
func (m *measured) cycles() (parts [][]int) {
	n := len(m.files)
	number, low, on := make([]int, n), make([]int, n), make([]bool, n)
	var stack []int
	next := 1
	var visit func(v int)
	visit = func(v int) {
		number[v], low[v] = next, next
		next++
		stack, on[v] = append(stack, v), true
		for w := range n {
			switch {
			case m.uses[v][w] == nil:
			case number[w] == 0:
				visit(w)
				low[v] = min(low[v], low[w])
			case on[w]:
				low[v] = min(low[v], number[w])
			}
		}
		if low[v] == number[v] {
			first := slices.Index(stack, v)
			for _, w := range stack[first:] {
				on[w] = false
			}
			parts, stack = append(parts, slices.Clone(stack[first:])), stack[:first]
		}
	}
	for v := range n {
		if number[v] == 0 {
			visit(v)
		}
	}
	slices.Reverse(parts)
	return parts
}

// best returns the files of a cycle in the order with the fewest backward arrows, by trying all sets of first files. Cycles of
// more files than a package may have stay as they are.
func (m *measured) best(files []int) []int {
	k := len(files)
	if k == 1 || k > limits["files"] {
		return files
	}
	slices.Sort(files)
	out := make([]uint32, k)
	for i, a := range files {
		for j, b := range files {
			if m.uses[a][b] != nil {
				out[i] |= 1 << j
			}
		}
	}
	cost, last := make([]int16, 1<<k), make([]int8, 1<<k)
	for set := 1; set < 1<<k; set++ {
		cost[set] = 1 << 14
		for i := range k {
			if set>>i&1 == 0 {
				continue
			}
			rest := set &^ (1 << i)
			if c := cost[rest] + int16(bits.OnesCount32(out[i]&uint32(rest))); c < cost[set] {
				cost[set], last[set] = c, int8(i)
			}
		}
	}
	order := make([]int, k)
	for set, at := 1<<k-1, k-1; set != 0; at-- {
		order[at] = files[last[set]]
		set &^= 1 << last[set]
	}
	return order
}
