// Package reload applies a changed configuration to a running node: what can be changed while it runs, or nothing if
// any of it cannot be used.
//
// A Reloader may be used by any goroutine.
package reload

import (
	"log/slog"
	"slices"
	"sync"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/internal/config"
)

// Subscriber checks a new configuration, and returns what applies its part of it. If it returns an error, no part is
// applied. It is called at every reload, because files that the configuration names may have changed too.
type Subscriber func(next config.Config) (apply func(), err error)

// Reloader reads the configuration again on request.
type Reloader struct {
	read func() (config.Settings, error)

	mu struct {
		sync.Mutex
		running     config.Settings // what the node runs with: options that cannot be reloaded keep their first value
		subscribers []Subscriber
	}
}

// New returns a reloader of a node that has started with the settings.
func New(settings config.Settings, read func() (config.Settings, error)) *Reloader {
	r := &Reloader{read: read}
	r.mu.running = settings
	return r
}

// Config returns the configuration of the start.
func (r *Reloader) Config() config.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.running.Config
}

// Settings returns what the node runs with, and where each value comes from.
func (r *Reloader) Settings() []config.Setting {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.running.All)
}

// Subscribe adds a part that can be reloaded. It is called while the node starts.
func (r *Reloader) Subscribe(s Subscriber) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.subscribers = append(r.mu.subscribers, s)
}

// Reload reads the configuration and applies it. It returns what has changed. After an error nothing has.
func (r *Reloader) Reload() (admin.Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := r.read()
	if err != nil {
		return admin.Reloaded{}, err
	}
	var applies []func()
	for _, subscriber := range r.mu.subscribers {
		apply, err := subscriber(next.Config)
		if err != nil {
			return admin.Reloaded{}, err
		}
		applies = append(applies, apply)
	}
	for _, apply := range applies {
		apply()
	}
	answer := admin.Reloaded{Applied: []admin.Change{}, Restart: []admin.Change{}}
	for _, i := range r.mu.running.Changed(next) {
		before, after := &r.mu.running.All[i], next.All[i]
		change := admin.Change{Option: before.Option.Key(), Old: before.Redacted(), New: after.Redacted()}
		if before.Option.Reload {
			answer.Applied = append(answer.Applied, change)
			*before = after
		} else {
			answer.Restart = append(answer.Restart, change)
		}
	}
	return answer, nil
}

// Log logs the outcome of a reload.
func Log(logger *slog.Logger, answer admin.Reloaded, err error) {
	if err != nil {
		logger.Error("the configuration has an error, and nothing was changed", "error", err)
		return
	}
	for _, c := range answer.Applied {
		logger.Info("option changed", "option", c.Option, "old", c.Old, "new", c.New)
	}
	for _, c := range answer.Restart {
		logger.Warn("option changed; it takes effect after a restart", "option", c.Option, "old", c.Old, "new", c.New)
	}
	logger.Info("configuration reloaded", "changed", len(answer.Applied), "need_restart", len(answer.Restart))
}
