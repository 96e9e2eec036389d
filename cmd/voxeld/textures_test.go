package main

import (
	"archive/zip"
	"bytes"
	"image"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// packOf returns a texture pack with pictures of a size, by the names of their files.
func packOf(t *testing.T, size int, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, name := range names {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			err = png.Encode(w, image.NewRGBA(image.Rect(0, 0, size, size)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What the page could not use is not set.
func TestCheckTextures(t *testing.T) {
	if err := checkTextures(packOf(t, 32, "pack/Stone.png", "notes/other.png")); err != nil {
		t.Error(err)
	}
	good := packOf(t, 16, "stone.png")
	for why, pack := range map[string][]byte{
		"read the texture pack": []byte("no zip"), "16 × 16 or 32 × 32": packOf(t, 64, "stone.png"), "name of a tile": packOf(t, 16, "other.png"),
		"more than 3145728 bytes": make([]byte, nodemsg.MaxContent+1), "stone.png": bytes.Replace(good, []byte("IDAT"), []byte("IDAX"), 1),
	} {
		if err := checkTextures(pack); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// A texture pack that is set on one node is served by all, also by those that join later, until it is taken away.
func TestWorldTextures(t *testing.T) {
	t.Parallel()
	first := startDaemon(t)
	second := startDaemon(t, "--join", first.invite())
	pack := packOf(t, 16, "stone.png")
	file := filepath.Join(t.TempDir(), "pack.zip")
	if err := os.WriteFile(file, pack, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := first.operate("textures", file); !strings.Contains(said, "textures of its own") {
		t.Error(said)
	}
	hash := ""
	get := func(d *daemon) (status int, body []byte) {
		t.Helper()
		response, err := http.Get("http://" + d.HTTP + "/textures/" + hash) //nolint:noctx // of a test
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if body, err = io.ReadAll(response.Body); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, body
	}
	for _, d := range []*daemon{second, startDaemon(t, "--join", first.invite()), first} {
		eventually(t, "the node serves the pack", patience, func() bool {
			p := join(t, d.Game, "ada", 1)
			hash = p.Welcome.Textures
			p.Leave()
			if hash == "" {
				return false
			}
			status, body := get(d)
			return status == http.StatusOK && bytes.Equal(body, pack)
		})
	}
	second.operate("textures", "off")
	eventually(t, "no node serves the pack", patience, func() bool { status, _ := get(first); return status == http.StatusNotFound })
}
