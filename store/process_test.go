package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// writerEnv makes the test binary a process that writes to the store at the path until it is killed.
const writerEnv = "VOXELD_STORE_TEST_WRITER"

const writers = 8

// writeUntilKilled commits pairs of entries from several goroutines and prints one line for each commit
// that has returned: writer and number.
func writeUntilKilled(path string) int {
	db, err := Open(Options{Path: path})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	var lines sync.Mutex
	print := func(format string, args ...any) {
		lines.Lock()
		defer lines.Unlock()
		fmt.Printf(format+"\n", args...) // unbuffered: it has left this process when it returns
	}
	print("open")
	go func() { // so that some kills hit a checkpoint
		for range time.Tick(20 * time.Millisecond) {
			if err := db.flush(func() error { return nil }); err != nil {
				print("error: %v", err)
			}
		}
	}()
	for writer := range writers {
		go func() {
			for n := 0; ; n++ {
				if err := db.Commit(pair(writer, n)); err != nil {
					print("error: %v", err)
					os.Exit(1)
				}
				print("%d %d", writer, n)
			}
		}()
	}
	if err := db.Run(context.Background()); err != nil {
		print("error: %v", err)
	}
	return 1
}

// pair is a commit of two entries in two tables; both are there or none.
func pair(writer, n int) []kv.Write {
	key := binary.BigEndian.AppendUint32([]byte{byte(writer)}, uint32(n))
	value := bytes.Repeat(key, 1+n%40)
	return []kv.Write{{Table: "one", Key: key, Value: value}, {Table: "two", Key: key, Value: value}}
}

// startWriter starts a writing process and returns a reader of its lines, past "open".
func startWriter(t *testing.T, path string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			kill(t, cmd)
		}
	})
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "open\n" {
		t.Fatalf("the writer printed %q, %v", line, err)
	}
	return cmd, lines
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Errorf("the killed writer: %v", err)
	}
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	path := newPath(t)
	acknowledged := [writers]int{} // by the last round
	for round := range 5 {
		cmd, lines := startWriter(t, path)
		for i := range writers {
			acknowledged[i] = -1
		}
		note := func(line string) {
			var writer, n int
			if _, err := fmt.Sscanf(line, "%d %d\n", &writer, &n); err != nil || n != acknowledged[writer]+1 {
				t.Fatalf("the writer printed %q (%v) after %d", line, err, acknowledged[writer])
			}
			acknowledged[writer] = n
		}
		for range 50 + 150*round {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			note(line)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(lines) // acknowledged before the kill
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(rest)) {
			if strings.HasSuffix(line, "\n") {
				note(line)
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the writer ended by itself")
		}

		db, err := Open(Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for writer, last := range acknowledged {
			for n := range last + 1 {
				for _, w := range pair(writer, n) {
					got, err := db.Get(w.Table, w.Key)
					if err != nil || !bytes.Equal(got, w.Value) {
						t.Fatalf("round %d: acknowledged write %d of writer %d in %s is %x, %v", round, n, writer, w.Table, got, err)
					}
				}
				total++
			}
		}
		one, two := map[string]bool{}, map[string]bool{}
		for table, keys := range map[string]map[string]bool{"one": one, "two": two} {
			if err := db.Scan(table, nil, func(key, _ []byte) error { keys[string(key)] = true; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for key := range one {
			if !two[key] {
				t.Errorf("round %d: half a commit: %x", round, key)
			}
		}
		if len(one) != len(two) || len(one) < total {
			t.Errorf("round %d: %d and %d entries for %d acknowledged commits", round, len(one), len(two), total)
		}
		if err := errors.Join(db.Check(), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInUseByAnotherProcess(t *testing.T) {
	path := newPath(t)
	cmd, lines := startWriter(t, path)
	read := make(chan error, 1)
	go func() { // or the writer would block on its full pipe
		_, err := io.Copy(io.Discard, lines)
		read <- err
	}()
	began := time.Now()
	db, err := Open(Options{Path: path, LockTimeout: 100 * time.Millisecond})
	if !errors.Is(err, ErrInUse) || db != nil {
		t.Fatalf("%v, want ErrInUse", err)
	}
	if took := time.Since(began); took < 100*time.Millisecond || took > 5*time.Second {
		t.Errorf("it gave up after %v", took)
	}
	for _, part := range []string{path, "--data-dir", "stop"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message does not contain %q: %v", part, err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the writer ended by itself")
	}
	run(t, Options{Path: path}) // the lock died with its holder
}

func TestInUseInThisProcess(t *testing.T) {
	path := newPath(t)
	run(t, Options{Path: path})
	if _, err := Open(Options{Path: path, LockTimeout: time.Millisecond}); !errors.Is(err, ErrInUse) {
		t.Errorf("%v, want ErrInUse", err)
	}
}

func TestManyCreateAtOnce(t *testing.T) {
	for range 10 {
		path := newPath(t)
		var winners []*DB
		var mu sync.Mutex
		var racers sync.WaitGroup
		for range 6 {
			racers.Go(func() {
				db, err := Open(Options{Path: path, LockTimeout: time.Millisecond})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					winners = append(winners, db)
				case !errors.Is(err, ErrInUse):
					t.Error(err)
				}
			})
		}
		racers.Wait()
		if len(winners) != 1 {
			t.Fatalf("%d have created the same store", len(winners))
		}
		if err := winners[0].Close(); err != nil {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 1 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

func TestTornCreation(t *testing.T) {
	whole := newPath(t)
	run(t, Options{Path: whole})
	bytes, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	for name, torn := range map[string][]byte{
		"empty":            {},
		"one byte":         {0},
		"half a meta page": bytes[:100],
		"one meta page":    bytes[:page],
		"without its data": bytes[:2*page],
		"zeros":            make([]byte, 4*page),
		"all but rename":   bytes,
	} {
		path := newPath(t)
		if err := os.WriteFile(path+".new", torn, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(Options{Path: path})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := errors.Join(db.Check(), db.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the unfinished file is still there (%v)", name, err)
		}
	}
}
