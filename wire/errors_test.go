package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// Each code of a refused edit is a label of its own; what another node invents is not.
func TestRefusalLabel(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(file, func(n ast.Node) bool {
		constant, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(constant.Names[0].Name, "Refused") {
			return true
		}
		code, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
		if err != nil || RefusalLabel(code) != code {
			t.Errorf("%s: %q, %v", constant.Names[0].Name, RefusalLabel(code), err)
		}
		codes++
		return true
	})
	if label := RefusalLabel("invented"); codes != len(refusals) || label != "other" {
		t.Errorf("%d codes, %d labels; an invented one: %q", codes, len(refusals), label)
	}
}
