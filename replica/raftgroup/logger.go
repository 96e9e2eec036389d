package raftgroup

import (
	"context"
	"fmt"
	"log/slog"
)

// raftLogger forwards raft's log messages; raft's info level becomes debug. It formats nothing that is not logged.
// Fatal and Panic panic: replica.guard turns that into the group's end.
type raftLogger struct{ logger *slog.Logger }

func (l raftLogger) log(level slog.Level, text func() string) {
	if l.logger.Enabled(context.Background(), level) {
		l.logger.Log(context.Background(), level, "raft", "text", text())
	}
}

func (l raftLogger) print(level slog.Level, v []any) {
	l.log(level, func() string { return fmt.Sprint(v...) })
}

func (l raftLogger) printf(level slog.Level, format string, v []any) {
	l.log(level, func() string { return fmt.Sprintf(format, v...) })
}

func (l raftLogger) Debug(v ...any)                   { l.print(slog.LevelDebug, v) }
func (l raftLogger) Debugf(format string, v ...any)   { l.printf(slog.LevelDebug, format, v) }
func (l raftLogger) Info(v ...any)                    { l.print(slog.LevelDebug, v) }
func (l raftLogger) Infof(format string, v ...any)    { l.printf(slog.LevelDebug, format, v) }
func (l raftLogger) Warning(v ...any)                 { l.print(slog.LevelWarn, v) }
func (l raftLogger) Warningf(format string, v ...any) { l.printf(slog.LevelWarn, format, v) }
func (l raftLogger) Error(v ...any)                   { l.print(slog.LevelError, v) }
func (l raftLogger) Errorf(format string, v ...any)   { l.printf(slog.LevelError, format, v) }
func (l raftLogger) Fatal(v ...any)                   { panic(fmt.Sprint(v...)) }
func (l raftLogger) Fatalf(format string, v ...any)   { panic(fmt.Sprintf(format, v...)) }
func (l raftLogger) Panic(v ...any)                   { panic(fmt.Sprint(v...)) }
func (l raftLogger) Panicf(format string, v ...any)   { panic(fmt.Sprintf(format, v...)) }
