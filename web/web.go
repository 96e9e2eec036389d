// Package web carries the browser client that a daemon serves on its own origin.
//
// The client's TypeScript sources live beside this file; `npm run build` bundles them into dist, which is embedded
// here. A checkout whose client was never built has an empty dist: Built tells, so that the daemon can say what to run
// instead of serving an empty page. The package holds no state; anybody may import it, it imports nothing of ours.
package web

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed all:dist
var files embed.FS

// Client is the built client: index.html, the icon and hashed files below assets/.
// Files below assets/ never change under one name and may be cached forever; index.html must not be.
func Client() fs.FS {
	client, err := fs.Sub(files, "dist")
	if err != nil {
		panic(fmt.Errorf("open embedded dist: %w", err)) // the directive above guarantees dist
	}
	return client
}

// Built reports whether the client was bundled before the daemon was compiled.
func Built() bool {
	_, err := fs.Stat(Client(), "index.html")
	return err == nil
}
