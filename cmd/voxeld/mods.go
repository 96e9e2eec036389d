package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/contents"
	runner "github.com/voxelpopuli/voxeld/region/mods"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/wire"
)

// mods holds the handlers of voxeld mod.
type mods struct {
	policy   *policysync.Copy
	contents *contents.Store
}

func (m mods) add(mux *http.ServeMux) {
	mux.HandleFunc("GET /mods", func(w http.ResponseWriter, _ *http.Request) { reply(w, m.list()) })
	mux.HandleFunc("POST /mods", func(w http.ResponseWriter, r *http.Request) {
		packed, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mod.MaxPacked+1))
		if err != nil {
			http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
			return
		}
		m.grant(w, r, func(changes []string) (mod.Grant, error) { return m.put(packed, changes) })
	})
	mux.HandleFunc("POST /mods/grant", func(w http.ResponseWriter, r *http.Request) {
		m.grant(w, r, func(changes []string) (g mod.Grant, err error) { return m.change(r.URL.Query().Get("name"), changes) })
	})
}

// put stores a mod's archive on this node, and returns what is to be granted to it: what it asks for, with changes.
func (m mods) put(packed []byte, changes []string) (mod.Grant, error) {
	content, err := runner.Check(packed)
	if err != nil {
		return mod.Grant{}, err
	}
	g, err := content.Grant(mod.HashOf(packed)).With(changes)
	if err == nil {
		_, err = m.contents.Put(packed)
	}
	return g, err
}

// change returns the grant of a mod with changes.
func (m mods) change(name string, changes []string) (mod.Grant, error) {
	var of policy.Mod
	var there bool
	m.policy.Read(func(p *policy.State) { of, there = p.ModNamed(name) })
	if !there {
		return mod.Grant{}, fmt.Errorf("there is no mod %.40q: see voxeld mod list", name)
	}
	return of.With(changes)
}

// grant enters the operator's command.
func (m mods) grant(w http.ResponseWriter, r *http.Request, what func(changes []string) (mod.Grant, error)) {
	g, err := what(strings.Fields(r.URL.Query().Get("changes")))
	var text string
	if err == nil {
		text, err = m.enter(r.Context(), g)
	}
	replyText(w, text, err)
}

// enter enters the operator's command that grants a mod something.
func (m mods) enter(ctx context.Context, g mod.Grant) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, moderateTime)
	defer cancel()
	return m.policy.Operate(ctx, mod.GrantCommand+" "+g.String())
}

// granted reports whether the mod has that content already.
func (m mods) granted(g mod.Grant) (is bool) {
	m.policy.Read(func(p *policy.State) {
		of, there := p.ModNamed(g.Name)
		is = there && of.Content == g.Content
	})
	return is
}

// watchEvery is how often the folder of an author's mod is looked at.
const watchEvery = 500 * time.Millisecond

// watch adds the mod in a folder with what it asks for, and again whenever a file of it has changed, until ctx ends.
func (m mods) watch(ctx context.Context, folder string, log *slog.Logger) {
	every := time.NewTicker(watchEvery)
	defer every.Stop()
	var seen mod.Hash
	var next *mod.Grant // that is to be entered
	var reported string // the last error
	for {
		packed, err := mod.Pack(os.DirFS(folder))
		if hash := mod.HashOf(packed); err == nil && hash != seen {
			var g mod.Grant
			g, err = m.put(packed, nil)
			seen, next, reported = hash, &g, ""
			if err != nil || m.granted(g) {
				next = nil
			}
		}
		if next != nil {
			if _, err = m.enter(ctx, *next); err == nil {
				log.Info("mod added", "folder", folder, "grant", next.String())
				next = nil
			}
		}
		if err != nil && wire.ErrorText(err) != reported && ctx.Err() == nil {
			reported = wire.ErrorText(err)
			log.Error("mod not added", "folder", folder, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// list returns the mods of the world.
func (m mods) list() []admin.Mod {
	all := []admin.Mod{}
	m.policy.Read(func(p *policy.State) {
		for _, one := range p.Mods() {
			if !one.Removed {
				all = append(all, admin.Mod{Name: one.Name, Content: one.Content.String(), Grant: one.Grant.String(), Suspended: one.Off})
			}
		}
	})
	for i := range all {
		hash, _ := mod.ParseHash(all[i].Content) // its own text
		packed, err := m.contents.Get(contents.Hash(hash))
		if err != nil {
			all[i].Missing = wire.ErrorText(err)
			continue
		}
		if content, err := mod.Unpack(packed); err == nil {
			all[i].Version, all[i].Title = content.Version, content.Title
		} else {
			all[i].Missing = wire.ErrorText(err)
		}
	}
	return all
}
