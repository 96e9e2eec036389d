// Package historycmd has the commands that list who changed which blocks, and that roll changes back, and the handlers
// of the admin socket that answer them.
package historycmd

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/wire"
)

// Changes are changes of blocks.
type Changes struct {
	Changes []Change            `json:"changes"`
	More    bool                `json:"more,omitempty"` // there are more
	Missing []admin.AreaMissing `json:"missing"`        // cells of which nothing is known
}

// Change is a change of a block.
type Change struct {
	Time time.Time `json:"time"`
	By   string    `json:"by"`
	ID   string    `json:"id"`
	X    int32     `json:"x"`
	Y    int32     `json:"y"`
	Z    int32     `json:"z"`
	Old  string    `json:"old"` // natural if no player had changed it before
	New  string    `json:"new"`
}

// Rollback is how far a rollback is, or what it would do.
type Rollback struct {
	ID       int                 `json:"id,omitempty"` // 0: it is not ordered
	What     string              `json:"what,omitempty"`
	Command  string              `json:"command,omitempty"` // orders it
	Changed  int                 `json:"changed"`           // blocks that it has changed
	Left     int                 `json:"left"`              // blocks that it has yet to change
	From     grid.Pos            `json:"from"`              // corners of the box
	To       grid.Pos            `json:"to"`
	Others   []Elsewhere         `json:"others,omitempty"` // changes that are too far away for the same rollback
	Regions  int                 `json:"regions"`
	Done     int                 `json:"regions_done"`
	Complete bool                `json:"complete"`
	Paused   bool                `json:"paused,omitempty"`
	Aborted  bool                `json:"aborted,omitempty"`
	Missing  []admin.AreaMissing `json:"missing"`
}

// Elsewhere is what another rollback would do.
type Elsewhere struct {
	Command string   `json:"command"` // orders it
	Left    int      `json:"left"`
	From    grid.Pos `json:"from"`
	To      grid.Pos `json:"to"`
}

// Ordered is a rollback that was ordered.
type Ordered struct {
	ID      int       `json:"id"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Of      string    `json:"of,omitempty"`     // whose changes it undoes
	Undoes  int       `json:"undoes,omitempty"` // which rollback it undoes
	Since   time.Time `json:"since,omitzero"`
	From    grid.Pos  `json:"from"`
	To      grid.Pos  `json:"to"`
	Paused  bool      `json:"paused,omitempty"`
	Aborted bool      `json:"aborted,omitempty"`
}

// Server answers the commands. Write sends an answer as JSON.
type Server struct {
	Regions *region.Host
	Write   func(w http.ResponseWriter, answer any)
}

// Add adds the handlers.
func (s Server) Add(mux *http.ServeMux) {
	mux.HandleFunc("GET /history", s.answerHistory)
	mux.HandleFunc("GET /rollback", s.answerRollback)
	mux.HandleFunc("GET /rollbacks", s.answerRollbacks)
}

func refuse(w http.ResponseWriter, err error) {
	http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
}

// values are the parameters of a request.
type values struct {
	url.Values
	now func() time.Time
	err error
}

func (v *values) number(name string) int {
	if v.Get(name) == "" {
		return 0
	}
	n, err := strconv.Atoi(v.Get(name))
	if err != nil || n < 0 {
		v.err = cmp.Or(v.err, fmt.Errorf("%s: want a number, not %q", name, v.Get(name)))
	}
	return n
}

func (v *values) box() grid.Box {
	box, err := grid.ParseBox(v.Get("area"))
	v.err = cmp.Or(v.err, err)
	return box
}

// ago returns the time before now that a parameter says, in Unix milliseconds; 0 if it is empty.
func (v *values) ago(name string) int64 {
	if v.Get(name) == "" {
		return 0
	}
	d, err := policy.ParseDuration(v.Get(name))
	v.err = cmp.Or(v.err, err)
	return v.now().Add(-d).UnixMilli()
}

func (s Server) answerHistory(w http.ResponseWriter, r *http.Request) {
	v := values{Values: r.URL.Query(), now: s.Regions.Clock.Now}
	q := rollback.Query{Newest: true, Most: v.number("last")}
	q.Box, q.Since, q.Until = v.box(), v.ago("since"), v.ago("until")
	if of := v.Get("player"); of != "" {
		s.Regions.Policy.Read(func(p *policy.State) {
			var err error
			q.Players, err = p.PlayersOf(of)
			v.err = cmp.Or(v.err, err)
		})
	}
	if v.err != nil {
		refuse(w, v.err)
		return
	}
	found, err := s.Regions.History.Query(r.Context(), q)
	if err != nil {
		refuse(w, err)
		return
	}
	answer := Changes{Changes: []Change{}, More: found.More, Missing: missing(found.Missing)}
	s.Regions.Policy.Read(func(p *policy.State) {
		for _, c := range found.Records {
			answer.Changes = append(answer.Changes, Change{
				Time: time.UnixMilli(c.Time).UTC(), By: p.AuthorName(c.Player, c.Guest), ID: c.Player.String(),
				X: c.At.X, Y: c.At.Y, Z: c.At.Z, Old: history.BlockName(c.Old), New: history.BlockName(c.New),
			})
		}
	})
	s.Write(w, answer)
}

// answerRollback answers how far the rollback with an id is, or what one would do.
func (s Server) answerRollback(w http.ResponseWriter, r *http.Request) {
	v := values{Values: r.URL.Query(), now: s.Regions.Clock.Now}
	if id := v.number("id"); id != 0 || v.err != nil {
		s.answerOrdered(w, r, id, v.err)
		return
	}
	of, since := strings.Join(v.Values["player"], ","), v.ago("since")
	var box grid.Box
	if v.Get("area") != "" {
		box = v.box()
	}
	var proposed history.Rollback
	s.Regions.Policy.Read(func(p *policy.State) {
		var err error
		proposed, err = p.ProposeRollback(of, since, box)
		v.err = cmp.Or(v.err, err)
	})
	if v.Get("area") == "" && of == policy.Everyone {
		v.err = cmp.Or(v.err, errors.New("to undo the changes of everybody, name an area"))
	}
	if v.err != nil {
		refuse(w, v.err)
		return
	}
	var places []rollback.Progress
	var unknown []rollback.Missing
	var err error
	if v.Get("area") == "" {
		places, unknown, err = s.Regions.History.Search(r.Context(), proposed)
	} else {
		places = make([]rollback.Progress, 1)
		places[0], err = s.Regions.History.Progress(r.Context(), proposed)
		places[0].Extent, unknown = box, places[0].Missing
	}
	if err != nil {
		refuse(w, err)
		return
	}
	answer := Rollback{Missing: missing(unknown)}
	for i, p := range places {
		one := Elsewhere{Command: policy.RevertText(of, since, p.Extent), Left: p.Left, From: p.Extent.Min, To: p.Extent.Max}
		if i > 0 {
			answer.Others = append(answer.Others, one)
			continue
		}
		answer.Command, answer.Left, answer.From, answer.To, answer.Regions = one.Command, one.Left, one.From, one.To, p.Regions
	}
	s.Write(w, answer)
}

// answerOrdered answers how far a rollback is.
func (s Server) answerOrdered(w http.ResponseWriter, r *http.Request, id int, err error) {
	ordered, notFound := s.ordered(id)
	if err = cmp.Or(err, notFound); err != nil {
		refuse(w, err)
		return
	}
	progress, err := s.Regions.History.Progress(r.Context(), ordered.Rollback)
	if err != nil {
		refuse(w, err)
		return
	}
	s.Write(w, Rollback{
		ID: id, What: ordered.Line().Text, Paused: ordered.Paused, Aborted: ordered.Aborted, From: ordered.Box.Min, To: ordered.Box.Max,
		Changed: progress.Changed, Left: progress.Left, Regions: progress.Regions, Done: progress.Done,
		Complete: progress.Complete(), Missing: missing(progress.Missing),
	})
}

func (s Server) ordered(id int) (r policy.Rollback, err error) {
	found := false
	s.Regions.Policy.Read(func(p *policy.State) { r, found = p.Rollback(id) })
	if !found {
		err = fmt.Errorf("there is no rollback %d: voxeld rollbacks lists them", id)
	}
	return r, err
}

func (s Server) answerRollbacks(w http.ResponseWriter, _ *http.Request) {
	answer := []Ordered{}
	s.Regions.Policy.Read(func(p *policy.State) {
		for _, r := range p.Rollbacks() {
			one := Ordered{
				ID: r.ID, By: r.By, At: time.UnixMilli(r.At).UTC(), Of: r.Of, Undoes: r.Undoes, From: r.Box.Min, To: r.Box.Max,
				Paused: r.Paused, Aborted: r.Aborted,
			}
			if r.Undoes == 0 {
				one.Since = time.UnixMilli(r.Since).UTC()
			}
			answer = append(answer, one)
		}
	})
	s.Write(w, answer)
}

func missing(all []rollback.Missing) []admin.AreaMissing {
	cells := []admin.AreaMissing{}
	for _, m := range all {
		cells = append(cells, admin.AreaMissing{Cell: m.Cell.String(), Why: m.Why})
	}
	return cells
}
