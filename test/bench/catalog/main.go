// Command catalog measures what the catalog bears: a real group with a real store for each member, in this process, without a
// network between them. For each number of rows it fills the stores, and measures the time to open, the memory, lookups and
// foundings a second, and the time until a new member has everything.
//
//	go run ./test/bench/catalog -rows 10000,100000,1000000
//
// docs/scale.md has results.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

func main() {
	rows := flag.String("rows", "10000,100000,1000000", "numbers of founded regions")
	var o options
	flag.DurationVar(&o.length, "length", 5*time.Second, "time of each measurement")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *rows, o); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rows string, o options) error {
	t := figure.Table{Head: []string{"regions", "open, s", "counted, s", "heap, bytes a region", "file, bytes a region", "lookups/s", "foundings/s", "p99, ms", "new member, s"}}
	for text := range strings.SplitSeq(rows, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-rows: %q is not a number of regions", text)
		}
		dir, err := os.MkdirTemp(".", "catalog-") // on the disk that is measured
		if err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
		r, err := measure(ctx, dir, n, o)
		if failed := os.RemoveAll(dir); err == nil {
			err = failed
		}
		if err != nil {
			return fmt.Errorf("%d regions: %w", n, err)
		}
		joined := "–"
		if r.joined > 0 {
			joined = figure.Number(r.joined.Seconds())
		}
		t.Add(fmt.Sprint(n), r.opened.Seconds(), r.counted.Seconds(), r.heap, r.file, fmt.Sprintf("%.0f", r.lookups), fmt.Sprintf("%.0f", r.foundings), 1000*r.slowest, joined)
	}
	fmt.Printf("%s\n%d members, %d foundings at a time, %s.\n", t.Markdown(), groupSize, writers, process.Machine())
	return nil
}
