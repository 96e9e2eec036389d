package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/vitals"
	"github.com/voxelpopuli/voxeld/gameserver"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// The admin socket serves HTTP on a Unix socket in the data directory. The permissions of the socket's file
// control access. This file holds its handlers.

// reply writes an answer as JSON.
func reply(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer) //nolint:errcheck,errchkjson // the client left
}

func (n *node) status(ctx context.Context) admin.Status {
	connected := 0
	for _, p := range n.host.Peers() {
		if p.Connected && n.access.Admitted(p.ID) {
			connected++
		}
	}
	states := n.regions.States()
	answer := admin.Status{
		Version: version(), World: n.world.Name, WorldID: n.world.ID(), Peer: n.host.PeerID(),
		Game: n.gameAddress(), HTTP: n.http.Addr().String(), Uptime: time.Since(n.started),
		Peers: connected, Regions: len(n.regions.Regions(ctx)), Led: states.Led, Players: len(n.gateway.Online()),
		Database: n.db.Size(), Catalog: n.catalogLeader(ctx), URL: n.playerURL(), Draining: n.gateway.Draining(),
		CatalogQuorum: states.CatalogQuorum, CatalogUnknown: !states.Settled && !states.CatalogQuorum, NodeRegions: states.Node.Named(),
		Access: n.access.Status(), Disk: n.disk(), Backups: n.backups.Status(),
	}
	answer.Copied, _ = n.regions.Copied()
	for _, d := range n.regions.Damaged() {
		if answer.Unusable == nil {
			answer.Unusable = make(map[string]int)
		}
		answer.Unusable[d.Reason]++
	}
	if states.World != nil {
		answer.WorldRegions = states.World.Named()
	}
	if err := n.takesPlayers(); err != nil {
		answer.NotReady = wire.ErrorText(err)
	}
	return answer
}

// disk describes the disk of the data directory.
func (n *node) disk() admin.Disk {
	d := admin.Disk{Dir: n.cfg.DataDir}
	d.Free, d.Size = vitals.DiskSpace(d.Dir)
	if err := n.replicas.Stalled(); err != nil {
		d.Full, d.Error = errors.Is(err, store.ErrFull), wire.ErrorText(err)
	}
	return d
}

// catalogLeader waits for at most 2 s: operators use status when something is wrong.
func (n *node) catalogLeader(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return n.regions.Directory.CatalogLeader(ctx)
}

func (n *node) peerList() []admin.Peer {
	all := []admin.Peer{}
	for _, p := range n.host.Peers() {
		known := admin.Peer{Peer: p.ID, Connected: p.Connected && n.access.Admitted(p.ID), Latency: p.Latency.Round(10 * time.Microsecond).String(), Addrs: p.Addrs}
		n.access.Describe(&known)
		all = append(all, known)
	}
	return all
}

func (n *node) regionList(ctx context.Context) []admin.Region {
	all := []admin.Region{}
	for _, r := range n.regions.Regions(ctx) {
		if r.Region.Split != 0 {
			continue // its children have its land
		}
		members := make([]string, len(r.Region.Members))
		for i, m := range r.Region.Members {
			members[i] = m.Peer
		}
		answer := admin.Region{
			ID: fmt.Sprintf("%016x", r.Region.ID), Cell: r.Region.Cell.String(), Leader: r.Region.Leader, Members: members, Voters: r.Voters, Term: r.Region.Term,
			Links: r.Links, Bodies: r.Bodies, Edits: r.Edits,
		}
		if d, led := n.regions.AutoSplit.Division(r.Region.ID); led {
			answer.Load, answer.LoadKind, answer.Next = &d.Load, d.Kind, d.Next
		}
		all = append(all, answer)
	}
	return all
}

func (n *node) playerList() []gameserver.Player {
	return append([]gameserver.Player{}, n.gateway.Online()...)
}

func (n *node) answerScrub(w http.ResponseWriter, r *http.Request) {
	var all []region.Scrubbed
	if name := r.URL.Query().Get("cell"); name == "" {
		all = n.regions.ScrubAll(r.Context())
	} else {
		cell, err := grid.ParseCell(name)
		if err != nil {
			http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
			return
		}
		all = append(all, n.regions.Scrub(r.Context(), cell))
	}
	answer := []admin.Scrub{}
	for _, s := range all {
		a := admin.Scrub{
			ID: fmt.Sprintf("%016x", s.Region.ID), Cell: s.Region.Cell.String(), Members: s.Members, Reported: s.Reported,
			Parts: s.Parts, Damaged: s.Damaged, Repaired: s.Repaired, Open: append([]string{}, s.Open...),
		}
		if s.Err != nil {
			a.Error = wire.ErrorText(s.Err)
		}
		answer = append(answer, a)
	}
	reply(w, answer)
}

var errNoReplica = errors.New("this node has no replica")

// findRegions returns the regions of this node with the name.
func (n *node) findRegions(name string) ([]nodemsg.Region, error) {
	all, err := n.regions.Memberships()
	if err != nil || name == admin.AllLost {
		return all, err
	}
	for _, info := range all {
		if region.Name(info) == name || fmt.Sprintf("%016x", info.ID) == name {
			return []nodemsg.Region{info}, nil
		}
	}
	return nil, fmt.Errorf("%w of %q: pass catalog, or a cell as voxeld regions prints it, and run this on a node that voxeld doctor names", errNoReplica, name)
}

func (n *node) answerPlan(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), recoverTime)
	defer cancel()
	name := r.URL.Query().Get("region")
	all, err := n.findRegions(name)
	switch {
	case errors.Is(err, errNoReplica) && name == "catalog":
		err = fmt.Errorf("%w; if no replica is left anywhere, found the world again from a backup: voxeld restore FILE --data-dir NEW", err)
	case errors.Is(err, errNoReplica):
		err = fmt.Errorf("%w; if no replica is left anywhere, add --from FILE (a backup) or --anew", err)
	}
	if err != nil {
		reply(w, admin.Plan{Error: wire.ErrorText(err)})
		return
	}
	ids := make([]uint64, len(all))
	for i, info := range all {
		ids[i] = info.ID
	}
	plans, err := n.regions.PlanRecovery(ctx, ids)
	if err != nil {
		reply(w, admin.Plan{Error: wire.ErrorText(err)})
		return
	}
	var answer admin.Plan
	for _, p := range plans {
		if name != admin.AllLost || !p.Alive {
			answer.Plans = append(answer.Plans, p)
		}
	}
	reply(w, answer)
}

func (n *node) answerRecover(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), recoverTime)
	defer cancel()
	all, err := n.findRegions(r.URL.Query().Get("region"))
	if err == nil && len(all) != 1 {
		err = errors.New("name one region")
	}
	if err == nil {
		err = n.regions.Recover(ctx, all[0].ID, r.URL.Query().Has(admin.OldCopy))
	}
	var answer admin.Done
	if err != nil {
		answer.Error = wire.ErrorText(err)
	}
	reply(w, answer)
}

func (n *node) answerRelease(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), orderTime)
	defer cancel()
	all, err := n.findRegions(r.URL.Query().Get("region"))
	if err == nil && len(all) != 1 {
		err = errors.New("name one region")
	}
	var answer admin.Done
	if err == nil {
		answer.Released, answer.Missed, err = n.regions.Release(ctx, all[0].ID)
	}
	if err != nil {
		answer.Error = wire.ErrorText(err)
	}
	reply(w, answer)
}

// answerCell does something with the region of a cell.
func answerCell(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, cell grid.Cell) error) {
	cell, err := grid.ParseCell(r.URL.Query().Get("cell"))
	if err != nil {
		http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), orderTime)
	defer cancel()
	var answer admin.Done
	if err := do(ctx, cell); err != nil {
		answer.Error = wire.ErrorText(err)
	}
	reply(w, answer)
}

// recoverTime bounds the plan of a recovery, and the recovery of one region before anything is changed: all nodes are
// asked, of which many may be silent. orderTime bounds the other changes to one region. It is shorter than the timeout
// of admin.Post.
const recoverTime, orderTime = 90 * time.Second, 8 * time.Second

// examineTime bounds an examination. It is shorter than the timeout of admin.Get.
const examineTime = 8 * time.Second

// examineBackups adds to an examination how the scheduled backups of this node do.
func (n *node) examineBackups(d admin.Doctor) admin.Doctor {
	s := n.backups.Status()
	switch overdue := s.Overdue(n.started, n.clock.Now()); {
	case s.Error != "" || overdue:
		d.Findings = append(d.Findings, region.Finding{
			Kind: "backup", Subject: "node", What: "the scheduled backups of this node fail, or are late: " + s.String(),
			Do: "see VoxeldBackupTooOld in docs/runbook.md; meanwhile make one with voxeld backup, and check it with voxeld verify",
		})
	case s.Every == 0:
		d.Notes = append(d.Notes, "this node makes no backups by itself: see that one node of the world does (backup_every)")
	}
	return d
}

// examineDisk adds to an examination that the disk of this node fills up. It is a note: the world works, and a disk may
// stay like that for good. Once writes are refused it is a finding, which is in the examination already.
func examineDisk(d admin.Doctor, disk admin.Disk) admin.Doctor {
	if disk.Filling() && !disk.Full {
		d.Notes = append(d.Notes, disk.String()+"; make room or enlarge the disk before: see VoxeldDiskFilling in docs/runbook.md")
	}
	return d
}

// examineCommands adds to an examination that the log of commands fills up, of which so much is used.
func examineCommands(d admin.Doctor, used float64) admin.Doctor {
	if used > policy.Filling {
		d.Findings = append(d.Findings, region.Finding{
			Kind: "command_log", Subject: "world", What: fmt.Sprintf("%.0f %% is used of the commands that the world takes from players", 100*used),
			Do: "there is time: see VoxeldCommandLogFilling in docs/runbook.md, which founds the world again from a backup",
		})
	}
	return d
}

// addOperations adds the handlers of voxeld doctor and voxeld region to the admin socket.
func (n *node) addOperations(mux *http.ServeMux) {
	mux.HandleFunc("GET /doctor", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), examineTime)
		defer cancel()
		var used float64
		n.regions.Policy.Read(func(s *policy.State) { used = s.Used() })
		reply(w, examineDisk(examineCommands(n.examineBackups(n.access.Examine(n.regions.Examiner.Examine(ctx))), used), n.disk()))
	})
	mux.HandleFunc("GET /recovery", func(w http.ResponseWriter, r *http.Request) { n.answerPlan(w, r) })
	mux.HandleFunc("POST /recovery", func(w http.ResponseWriter, r *http.Request) { n.answerRecover(w, r) })
	mux.HandleFunc("POST /split", func(w http.ResponseWriter, r *http.Request) { answerCell(w, r, n.regions.Splitter.Split) })
	mux.HandleFunc("POST /merge", func(w http.ResponseWriter, r *http.Request) { answerCell(w, r, n.regions.Splitter.Merge) })
	mux.HandleFunc("POST /release", func(w http.ResponseWriter, r *http.Request) { n.answerRelease(w, r) })
}
