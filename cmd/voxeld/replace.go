package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/region/backups"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// replaceHandlers found lost regions again on request.
type replaceHandlers struct {
	refounder *integrity.Refounder
	world     world.Genesis
}

func (h replaceHandlers) add(mux *http.ServeMux) {
	mux.HandleFunc("GET "+admin.ReplacePath, h.plan)
	mux.HandleFunc("POST "+admin.ReplacePath, h.replace)
}

// plan answers what is known of a region of which no copy may be left.
func (h replaceHandlers) plan(w http.ResponseWriter, r *http.Request) {
	var answer admin.ReplacePlan
	cell, err := grid.ParseCell(r.URL.Query().Get("region"))
	if err == nil {
		var p integrity.RefoundPlan
		p, err = h.refounder.Plan(r.Context(), cell)
		answer.Members, answer.Refused = p.Members, p.Refused
	}
	if err != nil {
		answer.Error = wire.ErrorText(err)
	}
	reply(w, answer)
}

// replace founds a lost region again, with the land in the body.
func (h replaceHandlers) replace(w http.ResponseWriter, r *http.Request) {
	var answer admin.Done
	cell, err := grid.ParseCell(r.URL.Query().Get("region"))
	var land integrity.RefoundedLand
	if err == nil {
		land, err = h.readLand(http.MaxBytesReader(w, r.Body, admin.MaxLand), r.URL.Query().Get("world"))
	}
	if err == nil {
		err = h.refounder.Refound(r.Context(), cell, land)
	}
	if err != nil {
		answer.Error = wire.ErrorText(err)
	}
	reply(w, answer)
}

// readLand reads the records of a region.
func (h replaceHandlers) readLand(body io.Reader, worldID string) (land integrity.RefoundedLand, err error) {
	in := bufio.NewReader(body)
	for {
		r, err := wire.ReadFrame[backup.Record](in, backup.MaxRecord)
		switch {
		case errors.Is(err, io.EOF):
			return land, nil
		case err != nil:
			return land, err
		case worldID != h.world.ID():
			return land, fmt.Errorf("the backup is of another world (%.12s); this is %q (%s)", worldID, h.world.Name, h.world.ID()[:12])
		case r.Group != nil:
			land.From = backups.Origin(*r.Group)
		case r.Rows != nil:
			rows, err := world.DecodeRows(r.Rows)
			if err != nil {
				return land, err
			}
			land.Rows = append(land.Rows, rows...)
		}
	}
}
