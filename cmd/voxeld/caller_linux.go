package main

import (
	"context"
	"net"
	"syscall"
)

// withCaller adds the user id of the process at the other end of a Unix socket.
func withCaller(ctx context.Context, c net.Conn) context.Context {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return ctx
	}
	var caller *syscall.Ucred
	controlled := raw.Control(func(fd uintptr) {
		caller, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if controlled != nil || err != nil {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, caller.Uid)
}
