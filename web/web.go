// Package web embeds the browser client that the daemon serves on its own origin.
//
// `npm run build` bundles the TypeScript sources in this directory into dist, which is embedded here. In a checkout
// whose client was never built, dist is empty and Built returns false, so that the daemon can report the missing build
// instead of serving an empty page.
package web

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed all:dist
var files embed.FS

// Client returns the built client: index.html, the icon and hashed files below assets/, each with a brotli and a gzip
// copy (.br, .gz). Files below assets/ have content-hashed names and may be cached forever; index.html must not be
// cached.
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
