package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/reload"
	"github.com/voxelpopuli/voxeld/config"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
)

// policy returns what the options grant to players.
func policy(o config.Players) admission.Policy {
	return admission.Policy{
		MaxView: o.ViewDistance, Guests: o.Guests, PerAddress: o.SessionsPerAddress,
		MotionBudget: int(o.MotionBudget), EditsPerSecond: o.EditsPerSecond,
	}
}

// startReload subscribes the parts that can take new options, and reloads the configuration at each SIGHUP.
func (n *node) startReload(_ context.Context, parts *stack) error {
	n.reloader.Subscribe(func(next config.Config) (func(), error) {
		return func() { n.gateway.SetPolicy(policy(next.Players)) }, nil
	})
	if n.certs != nil {
		n.reloader.Subscribe(func(config.Config) (func(), error) { return n.certs.Reload() })
	}
	parts.start("reload", func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-n.hangups:
				answer, err := n.reloader.Reload()
				reload.Log(n.logger, answer, err)
			}
		}
	})
	return nil
}

// answerReload answers voxeld reload.
func (n *node) answerReload(w http.ResponseWriter, _ *http.Request) {
	answer, err := n.reloader.Reload()
	reload.Log(n.logger, answer, err)
	if err != nil {
		answer.Error = "the configuration has an error, and nothing was changed: " + err.Error()
	}
	reply(w, answer)
}

// reloadLevel returns a subscriber that sets the level of the log.
func reloadLevel(level *slog.LevelVar) reload.Subscriber {
	return func(next config.Config) (func(), error) {
		return func() { level.Set(next.Level()) }, nil
	}
}
