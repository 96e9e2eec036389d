package main

import (
	"io/fs"
	"testing/fstest"
)

// unbuiltClient is served when the daemon was built without its browser client.
type unbuiltClient struct{}

const unbuiltPage = `<!doctype html><meta charset="utf-8"><title>voxeld</title>
<p>This voxeld was built without its browser client. Run <code>make build</code> in its source directory,
then start <code>bin/voxeld</code> again.</p>`

func (unbuiltClient) Open(name string) (fs.File, error) {
	return fstest.MapFS{"index.html": {Data: []byte(unbuiltPage)}}.Open(name)
}
