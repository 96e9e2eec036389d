package replica_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/store"
)

// childVariable names the data file when this test binary runs as the process to be killed.
const childVariable = "VOXELD_REPLICA_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		if err := child(path); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// node is a store and a host on it, both running.
type node struct {
	*replica.Host
	*store.DB
	end func() error
}

func start(path string) (*node, error) {
	db, err := store.Open(store.Options{Path: path})
	if err != nil {
		return nil, err
	}
	h, err := replica.NewHost(replica.Options{Storage: db, Self: "me"})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	storeEnd, hostEnd := make(chan error, 1), make(chan error, 1)
	go func() { storeEnd <- db.Run(context.Background()) }()
	go func() { hostEnd <- h.Run(ctx) }()
	return &node{Host: h, DB: db, end: func() error {
		cancel()
		if err := <-hostEnd; err != nil {
			return err
		}
		if err := db.Close(); err != nil {
			return err
		}
		return <-storeEnd
	}}, nil
}

// child proposes numbers forever, a few at a time, applies the committed ones, and prints each number after its
// delivery: everything on its standard output is acknowledged.
func child(path string) error {
	n, err := start(path)
	if err != nil {
		return err
	}
	g, err := n.Open(context.Background(), replica.Founding{Group: 1, Members: []string{"me"}})
	if err != nil {
		return err
	}
	next, err := stored(n.DB)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	waiting := 0
	for range g.Ready() {
		for _, d := range g.Dequeue() {
			switch d := d.(type) {
			case replica.Leadership:
				waiting = 0
			case replica.Failed:
				return d.Err
			case replica.Committed:
				// Proposals of the previous process with unknown outcome may come first: numbers follow their places.
				fmt.Fprintln(out, next, string(d.Entry))
				g.ReportApplied(d.Index, []kv.Write{{Table: "world", Key: fmt.Appendf(nil, "%08d", next), Value: d.Entry}})
				next++
				waiting--
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		for waiting < 8 {
			if g.Propose(fmt.Appendf(nil, "%d-%d-%d", os.Getpid(), next, waiting)) != nil {
				break
			}
			waiting++
		}
	}
	return nil
}

// stored counts the owner's rows and checks that they have no gap.
func stored(db *store.DB) (int, error) {
	n := 0
	err := db.Scan("world", nil, func(key, _ []byte) error {
		if at, err := strconv.Atoi(string(key)); err != nil || at != n {
			return fmt.Errorf("row %q at place %d: %w", key, n, err)
		}
		n++
		return nil
	})
	return n, err
}

// TestKilledProcess kills a real process with SIGKILL while it commits, repeatedly on the same file, and finds every
// acknowledged entry again.
func TestKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.db")
	var ledger []string
	rounds, each := 5, 300
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"="+path)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for seen := 0; lines.Scan(); seen++ {
			var place int
			var entry string
			if _, err := fmt.Sscan(lines.Text(), &place, &entry); err != nil {
				t.Fatalf("the child printed %q", lines.Text())
			}
			switch {
			case place < len(ledger) && ledger[place] != entry:
				t.Fatalf("round %d: entry %d was acknowledged as %q, now it is %q", round, place, ledger[place], entry)
			case place > len(ledger):
				t.Fatalf("round %d: entry %d follows entry %d", round, place, len(ledger)-1)
			case place == len(ledger):
				ledger = append(ledger, entry)
			}
			if seen == each+37*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("the child was not killed: %v", err)
		}
	}
	if len(ledger) < rounds*each {
		t.Fatalf("only %d entries were acknowledged", len(ledger))
	}

	n, err := start(path)
	if err != nil {
		t.Fatal(err)
	}
	recovered := make(map[int]string)
	if err := n.Scan("world", nil, func(_, value []byte) error {
		recovered[len(recovered)] = string(value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	g, err := n.Open(context.Background(), replica.Founding{Group: 1})
	if err != nil {
		t.Fatal(err)
	}
	for leading := false; !leading; {
		<-g.Ready()
		for _, d := range g.Dequeue() {
			switch d := d.(type) {
			case replica.Committed:
				recovered[len(recovered)] = string(d.Entry)
			case replica.Leadership:
				leading = d.Self
			case replica.Failed:
				t.Fatal(d.Err)
			}
		}
	}
	for place, entry := range ledger {
		if recovered[place] != entry {
			t.Fatalf("entry %d was acknowledged as %q, recovered is %q", place, entry, recovered[place])
		}
	}
	t.Logf("%d acknowledged, %d recovered", len(ledger), len(recovered))
	if err := n.end(); err != nil {
		t.Fatal(err)
	}
}
