// Export writes the blocks of an area to a file, as a program does that runs every night:
//
//	export -node http://127.0.0.1:8080 -key vxs… -box 0,0:255,255 -to area.json.gz
//
// The file has a line of JSON for each part of up to 64×16×64 blocks: {"box": …, "palette": […], "blocks": […]}. It is complete, or
// it is not there. Needs the scope read.
package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"

	voxeld "github.com/voxelpopuli/voxeld/sdk/go"
)

// side and layer bound what is read at once: 65,536 blocks in 16 chunks.
const side, layer = 64, 16

func main() {
	node, key := flag.String("node", "http://127.0.0.1:8080", "URL of a node"), flag.String("key", "", "key of a service")
	box, to := flag.String("box", "", "X1,Z1:X2,Z2"), flag.String("to", "area.json.gz", "file to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := export(ctx, voxeld.New(*key, *node), *box, *to)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func export(ctx context.Context, world *voxeld.Client, box, to string) (err error) {
	var x1, z1, x2, z2 int
	if _, err := fmt.Sscanf(box, "%d,%d:%d,%d", &x1, &z1, &x2, &z2); err != nil {
		return fmt.Errorf("-box %q: want X1,Z1:X2,Z2", box)
	}
	var about struct {
		Height int `json:"height"`
	}
	if err := world.Get(ctx, "world", nil, &about); err != nil {
		return err
	}
	file, err := os.Create(to + ".part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name()) //nolint:errcheck // it may be there
		}
	}()
	packed := gzip.NewWriter(file)
	lines := json.NewEncoder(packed)
	for x := x1; x <= x2; x += side {
		for z := z1; z <= z2; z += side {
			for y := 0; y < about.Height; y += layer {
				part := fmt.Sprintf("%d,%d,%d:%d,%d,%d", x, y, z, min(x+side-1, x2), min(y+layer-1, about.Height-1), min(z+side-1, z2))
				var blocks json.RawMessage
				if err := world.Get(ctx, "blocks", url.Values{"box": {part}}, &blocks); err != nil {
					return errors.Join(fmt.Errorf("%s: %w", part, err), file.Close())
				}
				if err := lines.Encode(blocks); err != nil {
					return errors.Join(err, file.Close())
				}
			}
		}
	}
	if err := errors.Join(packed.Close(), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), to)
}
