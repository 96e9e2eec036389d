package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// areaTime bounds a query of an area. It is shorter than the timeout of admin.Get.
const areaTime = 7 * time.Second

// stateNames are the states of regions in an area.
var stateNames = map[nodemsg.RegionState]string{
	nodemsg.StateOpen: "open", nodemsg.StateClosed: "closed", nodemsg.StateQuarantined: "quarantined",
}

// answerArea returns a handler that answers what is in an area of the world, with or without the players.
func answerArea(regions *region.Host, players bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { serveArea(regions, players, w, r) }
}

func serveArea(regions *region.Host, players bool, w http.ResponseWriter, r *http.Request) {
	area, err := grid.ParseArea(r.URL.Query().Get("area"))
	if err != nil {
		http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
		return
	}
	found, err := regions.Ranges.Query(r.Context(), region.RangeQuery{Area: area, Players: players, Time: areaTime})
	if err != nil {
		http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
		return
	}
	answer := admin.Area{
		Regions: []admin.AreaRegion{}, Unfounded: []string{}, Missing: []admin.AreaMissing{},
		Questions: found.Questions, Rounds: found.Rounds, Took: found.Took,
	}
	for _, g := range found.Regions {
		info := g.Region
		one := admin.AreaRegion{
			ID: fmt.Sprintf("%016x", info.ID), Cell: info.Cell.String(), Leader: info.Leader, State: stateNames[g.State], Players: g.Players,
		}
		for _, m := range info.Members {
			one.Members = append(one.Members, m.Peer)
		}
		if g.State != nodemsg.StateClosed {
			one.Edits = &g.Edits
		}
		answer.Regions = append(answer.Regions, one)
		for _, p := range g.Inside {
			answer.Players = append(answer.Players, admin.AreaPlayer{
				ID: p.Player.String(), Name: p.Name, Guest: p.Guest, X: p.At.X, Y: p.At.Y, Z: p.At.Z, Cell: info.Cell.String(),
			})
		}
		if players && g.Clipped {
			answer.Missing = append(answer.Missing, admin.AreaMissing{
				Cell: info.Cell.String(), Why: fmt.Sprintf("only %d of its %d players are listed", len(g.Inside), g.Players),
			})
		}
	}
	for _, cell := range found.Unfounded {
		answer.Unfounded = append(answer.Unfounded, cell.String())
	}
	for _, m := range found.Missing {
		answer.Missing = append(answer.Missing, admin.AreaMissing{Cell: m.Cell.String(), Why: m.Why})
	}
	reply(w, answer)
}
