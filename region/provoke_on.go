//go:build fault

package region

import (
	"os"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/world"
)

// provocation returns a probe that makes regions fail on purpose, for tests of whole processes. It needs a voxeld that
// was built with the tag fault. FAULT_VOXELD=tick:ID panics in the tick of a leader in which an edit with that block
// waits. FAULT_VOXELD=apply:ID panics where an entry with such an edit is applied, which is on every member.
func provocation() func(tx actor.Tx, entry []byte) {
	where, text, _ := strings.Cut(os.Getenv("FAULT_VOXELD"), ":")
	id, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil
	}
	block := chunk.Block(id)
	return func(tx actor.Tx, entry []byte) {
		if entry == nil {
			if where == "tick" && tx.Waits(block) {
				panic("provoked by an edit that waits")
			}
			return
		}
		batch, err := world.DecodeBatch(entry)
		for _, e := range batch.Edits {
			if err == nil && where == "apply" && e.Block == block {
				panic("provoked by an edit that is applied")
			}
		}
	}
}
