package main

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/research/clocks"
)

func sizesText(r clocks.Result) string {
	return fmt.Sprintf("%d events, heard %d times.\n\n%s", r.Events, r.Hearing, r.SizeTable().Markdown())
}

func comparisonsText(r clocks.Result) string {
	return fmt.Sprintf("All pairs that one player receives: %d ordered, %d concurrent.\n\n%s\nThose of them whose authors see each other: %d ordered, %d concurrent.\n\n%s",
		r.Received.Ordered, r.Received.Apart, r.Received.Table().Markdown(), r.Facing.Ordered, r.Facing.Apart, r.Facing.Table().Markdown())
}
