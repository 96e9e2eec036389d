package web_test

import (
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

var update = flag.Bool("update", false, "write test/codes.json")

// codes are the texts of the server that the page translates. Its tests compare its languages with them.
type codes struct {
	Failures []string          `json:"failures"`
	Refusals []string          `json:"refusals"`
	Notices  map[string]string `json:"notices"`  // templates in English, by their codes
	Commands map[string]string `json:"commands"` // what commands of players do, by their names
	Usages   []string          `json:"usages"`   // their arguments, and those of the settings of /set
	Groups   []string          `json:"groups"`
}

// test/codes.json is as the server is; `go test ./web -run Codes -update` writes it, and `npm run fmt` formats it.
func TestCodes(t *testing.T) {
	refusals := wire.RefusalLabels()
	found := codes{
		Failures: wire.FailLabels(), Refusals: refusals[:len(refusals)-1], // without "other"
		Notices: notices(t, ".."), Commands: make(map[string]string), Groups: policy.Groups,
	}
	for _, c := range policy.For(policy.Owner) {
		if !slices.Contains(policy.Groups, c.Group) {
			t.Errorf("/%s is in the group %q", c.Name, c.Group)
		}
		found.Commands[c.Name] = c.Help
		if slices.Contains(policy.Groups, c.Name) {
			t.Errorf("/help %s would explain a group, not the command", c.Name)
		}
		if c.Usage != "" {
			found.Usages = append(found.Usages, c.Usage)
		}
		if c.Name == "set" {
			found.Usages = append(found.Usages, usagesOfSettings(c.Usage)...)
		}
	}
	const name = "test/codes.json"
	if *update {
		text, err := json.MarshalIndent(found, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var listed codes
	if err := json.Unmarshal(text, &listed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(listed, found); diff != "" {
		t.Errorf("%s is not as the server is (-file +server):\n%s", name, diff)
	}
}

// usagesOfSettings returns the arguments of the settings that /set lists in its own.
func usagesOfSettings(usage string) (all []string) {
	settings, _, _ := strings.Cut(usage, " ")
	for name := range strings.SplitSeq(settings, "|") {
		why := policy.New().Try(nodemsg.Act{Text: "set " + name, Operator: true, Seq: 1})
		if n, is := errors.AsType[notice.Notice](why); is && n.Args["command"] == "set "+name {
			all = append(all, n.Args["usage"])
		}
	}
	return all
}

// notices returns the templates of all calls of notice.New below a folder. Each code has one call, with as many
// arguments as placeholders.
func notices(t *testing.T, root string) map[string]string {
	all := make(map[string]string)
	files := token.NewFileSet()
	constants := make(map[string]map[string]string) // string constants, by package and name
	calls := make(map[string][]*ast.CallExpr)       // by package
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		in := filepath.Dir(name)
		if constants[in] == nil {
			constants[in] = make(map[string]string)
		}
		for _, d := range file.Decls {
			if group, ok := d.(*ast.GenDecl); ok && group.Tok == token.CONST {
				for _, spec := range group.Specs {
					spec := spec.(*ast.ValueSpec)
					for i, value := range spec.Values {
						if text, ok := textOf(value, nil); ok {
							constants[in][spec.Names[i].Name] = text
						}
					}
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "New" {
					if of, ok := f.X.(*ast.Ident); ok && of.Name == "notice" {
						calls[in] = append(calls[in], call)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for in := range calls {
		for _, call := range calls[in] {
			at := files.Position(call.Pos())
			code, known := textOf(call.Args[0], constants[in])
			template, literal := textOf(call.Args[1], constants[in])
			if !known || !literal {
				t.Errorf("%v: the code and the template are to be constants", at)
				continue
			}
			if all[code] != "" {
				t.Errorf("%v: the code %s has another call", at, code)
			}
			if want := len(notice.Placeholders(template)); len(call.Args)-2 != want {
				t.Errorf("%v: %s has %d arguments and %d placeholders", at, code, len(call.Args)-2, want)
			}
			all[code] = template
		}
	}
	if len(all) < 100 {
		t.Errorf("found only %d calls of notice.New", len(all))
	}
	return all
}

// textOf returns the value of a string constant.
func textOf(e ast.Expr, constants map[string]string) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		a, okA := textOf(e.X, constants)
		b, okB := textOf(e.Y, constants)
		return a + b, okA && okB && e.Op == token.ADD
	case *ast.Ident:
		text, ok = constants[e.Name]
	}
	return text, ok
}
