package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every code of a failure and of a refusal is a label of its metric.
func TestLabelsAreComplete(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		value, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || value.Kind != token.STRING {
			return true
		}
		name := spec.Names[0].Name
		code, err := strconv.Unquote(value.Value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "Fail") && !slices.Contains(FailLabels(), code) || strings.HasPrefix(name, "Refused") && !slices.Contains(RefusalLabels(), code) {
			t.Errorf("%s is no label", name)
		}
		return true
	})
}
