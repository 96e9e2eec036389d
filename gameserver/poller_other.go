//go:build !linux

package gameserver

import (
	"context"
	"log/slog"

	"github.com/voxelpopuli/voxeld/gameserver/mirror"
)

// poller reads nothing on this platform: sessions read by themselves.
type poller struct{}

func newPoller(*slog.Logger, bool) *poller { return &poller{} }

func (*poller) run(context.Context) {}

func (*poller) park(conn, func(data []byte) (taken, stay bool)) bool { return false }

func (*poller) flushAfterRound(*mirror.Subscription) {}

// parking is the part of a descriptor used by the poller.
type parking struct{}

func (*parking) unpark() {}
