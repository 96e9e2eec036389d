package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The file that pages and packages have is that of the modules and packages that are linked now.
func TestNoticesAreCurrent(t *testing.T) {
	const root = "../.."
	if _, err := os.Stat(root + "/web/node_modules"); err != nil {
		t.Skip("the page's packages are not installed: npm --prefix web ci")
	}
	want, err := notices(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(root + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is out of date: run go run ./tools/notices", file)
	}
	for _, name := range []string{"Go's standard library", "github.com/libp2p/go-libp2p", "go.etcd.io/bbolt", "github.com/coreos/go-systemd/v22", "npm: @noble/ed25519"} {
		if !strings.Contains(string(got), "\n"+name+"\n") {
			t.Errorf("it lacks %s", name)
		}
	}
	for _, name := range []string{"npm: vite", "github.com/golangci/golangci-lint"} {
		if strings.Contains(string(got), "\n"+name+"\n") {
			t.Errorf("it has %s, which is not linked", name)
		}
	}
}
