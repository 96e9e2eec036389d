package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/reload"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/region/split"
	"github.com/voxelpopuli/voxeld/wire"
)

// admissionSettings returns what the options grant to players.
func admissionSettings(o config.Players) admission.Settings {
	return admission.Settings{
		MaxView: o.ViewDistance, Guests: o.Guests, NoOriginal: !o.Original, Map: o.Map, PublicMap: o.PublicMap, PerAddress: o.SessionsPerAddress,
		MotionBudget: int(o.MotionBudget), EditsPerSecond: o.EditsPerSecond,
		ConnectionsPerAddress: o.ConnectionsPerAddress, JoinsPerAddress: o.JoinsPerAddress, BytesPerAddress: int(o.BytesPerAddress),
	}
}

// limits returns the loads above which regions are split.
func limits(o config.Dividing) split.Limits {
	if !o.Split {
		return split.Limits{}
	}
	return split.Limits{MergeAfter: o.MergeAfter, Load: split.Load{
		split.Tick: float64(o.SplitTick) / 100, split.Players: float64(o.SplitPlayers),
		split.Edits: float64(o.SplitEdits), split.Stored: float64(o.SplitStored),
	}}
}

// retention returns how much history each region keeps.
func retention(o config.History) rollback.Retention {
	return rollback.Retention{Time: o.HistoryKeep, Bytes: int(o.HistorySize)}
}

// startReload subscribes the parts that can take new options, and reloads the configuration at each SIGHUP.
func (n *node) startReload(_ context.Context, parts *stack) error {
	n.reloader.Subscribe(func(next config.Config) (func(), error) {
		return func() { n.gateway.SetAdmission(admissionSettings(next.Players)) }, nil
	})
	n.reloader.Subscribe(func(next config.Config) (func(), error) {
		return func() { n.regions.AutoSplit.SetLimits(limits(next.Dividing)) }, nil
	})
	n.reloader.Subscribe(func(next config.Config) (func(), error) {
		return func() { n.regions.History.SetRetention(retention(next.History)) }, nil
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
		answer.Error = "the configuration has an error, and nothing was changed: " + wire.ErrorText(err)
	}
	reply(w, answer)
}

// reloadLevel returns a subscriber that sets the level of the log.
func reloadLevel(level *slog.LevelVar) reload.Subscriber {
	return func(next config.Config) (func(), error) {
		return func() { level.Set(next.Level()) }, nil
	}
}
