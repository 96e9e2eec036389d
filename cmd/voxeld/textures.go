package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/voxelpopuli/voxeld/gameserver/luanti"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/region/contents"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// textures has the handler of voxeld textures FILE, which makes that the world's texture pack.
type textures struct {
	policy   *policysync.Copy
	contents *contents.Store
}

func (t textures) add(mux *http.ServeMux) {
	mux.HandleFunc("POST /textures", func(w http.ResponseWriter, r *http.Request) {
		pack, err := io.ReadAll(http.MaxBytesReader(w, r.Body, nodemsg.MaxContent+1))
		if err == nil {
			err = checkTextures(pack)
		}
		if err == nil {
			_, err = t.contents.Put(pack)
		}
		var text string
		if err == nil {
			ctx, cancel := context.WithTimeout(r.Context(), moderateTime)
			defer cancel()
			text, err = t.policy.Operate(ctx, "set textures "+mod.HashOf(pack).String())
		}
		replyText(w, text, err)
	})
}

const (
	// maxPackFiles and maxPicture, in bytes, are what the page takes (web/src/render/texture-pack.ts).
	maxPackFiles = 2000
	maxPicture   = 128 << 10
)

// checkTextures returns an error unless the page can use a texture pack.
func checkTextures(pack []byte) error {
	if len(pack) > nodemsg.MaxContent {
		return fmt.Errorf("the texture pack has more than %d bytes", nodemsg.MaxContent)
	}
	archive, err := zip.NewReader(bytes.NewReader(pack), int64(len(pack)))
	if err != nil {
		return fmt.Errorf("read the texture pack: %w", err)
	}
	if len(archive.File) > maxPackFiles {
		return fmt.Errorf("the texture pack has more than %d files", maxPackFiles)
	}
	tiles, used := luanti.TileNames(), 0
	for _, f := range archive.File {
		if !slices.Contains(tiles, strings.ToLower(path.Base(f.Name))) {
			continue
		}
		if err := checkPicture(f); err != nil {
			return fmt.Errorf("%.60q is not a PNG file of 16 × 16 or 32 × 32 pixels: %w", f.Name, err)
		}
		used++
	}
	if used == 0 {
		return errors.New("the texture pack has no picture with the name of a tile, such as stone.png")
	}
	return nil
}

func checkPicture(f *zip.File) error {
	file, err := f.Open()
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxPicture+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	size, err := png.DecodeConfig(bytes.NewReader(data))
	switch {
	case err != nil:
		return err
	case len(data) > maxPicture:
		return fmt.Errorf("it has more than %d bytes", maxPicture)
	case size.Width != size.Height || size.Width != 16 && size.Width != 32:
		return fmt.Errorf("it has %d × %d", size.Width, size.Height)
	}
	_, err = png.Decode(bytes.NewReader(data))
	return err
}
