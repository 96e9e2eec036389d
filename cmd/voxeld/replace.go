package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/voxelpopuli/voxeld/backup"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/replace"
	"github.com/voxelpopuli/voxeld/region/restore"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// answerReplacePlan answers what is known of a region of which no copy may be left.
func (n *node) answerReplacePlan(w http.ResponseWriter, r *http.Request) {
	var answer admin.ReplacePlan
	cell, err := grid.ParseCell(r.URL.Query().Get("region"))
	if err == nil {
		var p replace.Plan
		p, err = n.regions.Replacer.Plan(r.Context(), cell)
		answer.Members, answer.Refused = p.Members, p.Refused
	}
	if err != nil {
		answer.Error = err.Error()
	}
	reply(w, answer)
}

// answerReplace founds a lost region again, with the land in the body.
func (n *node) answerReplace(w http.ResponseWriter, r *http.Request) {
	var answer admin.Done
	cell, err := grid.ParseCell(r.URL.Query().Get("region"))
	var land replace.Land
	if err == nil {
		land, err = n.readLand(http.MaxBytesReader(w, r.Body, admin.MaxLand), r.URL.Query().Get("world"))
	}
	if err == nil {
		err = n.regions.Replacer.Replace(r.Context(), cell, land)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	reply(w, answer)
}

// readLand reads the records of a region.
func (n *node) readLand(body io.Reader, worldID string) (land replace.Land, err error) {
	in := bufio.NewReader(body)
	for {
		r, err := wire.ReadFrame[backup.Record](in, backup.MaxRecord)
		switch {
		case errors.Is(err, io.EOF):
			return land, nil
		case err != nil:
			return land, err
		case worldID != n.world.ID():
			return land, fmt.Errorf("the backup is of another world (%.12s); this is %q (%s)", worldID, n.world.Name, n.world.ID()[:12])
		case r.Group != nil:
			land.From = restore.Origin(*r.Group)
		case r.Rows != nil:
			rows, err := world.DecodeRows(r.Rows)
			if err != nil {
				return land, err
			}
			land.Rows = append(land.Rows, rows...)
		}
	}
}
