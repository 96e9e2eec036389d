package mod

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// Bounds of a mod's content.
const (
	MaxPacked   = 1 << 20 // bytes of the archive
	MaxUnpacked = 4 << 20 // bytes of all files
	MaxFiles    = 256
)

// Hash is the SHA-256 of a mod's archive.
type Hash [sha256.Size]byte

// HashOf returns the hash of an archive.
func HashOf(packed []byte) Hash { return sha256.Sum256(packed) }

// String returns the hash in base64 for URLs: 43 characters.
func (h Hash) String() string { return base64.RawURLEncoding.EncodeToString(h[:]) }

// ParseHash parses the output of String.
func ParseHash(text string) (h Hash, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("%.50q is not the hash of a mod", text)
	}
	return Hash(b), nil
}

// Content is a mod.
type Content struct {
	Manifest
	Files map[string][]byte // by path, with slashes; ManifestFile and ScriptFile are there
}

// Pack returns the archive of a folder: a zip file. The same files make the same bytes. Files whose names, or whose
// folders' names, begin with a dot are left out. It follows no links: every node gets what is in the archive.
func Pack(folder fs.FS) ([]byte, error) {
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	left := int64(MaxUnpacked)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(path.Base(name), ".")
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%.60q is a link or no file: put a copy of it there", name)
		}
		source, err := folder.Open(name)
		if err != nil {
			return err
		}
		data, err := read(source, left)
		if err != nil {
			return fmt.Errorf("%.60q: %w", name, err)
		}
		left -= int64(len(data))
		file, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err == nil {
			_, err = file.Write(data)
		}
		return err
	})
	if err = errors.Join(err, archive.Close()); err != nil {
		return nil, fmt.Errorf("pack the mod: %w", err)
	}
	_, err = Unpack(buffer.Bytes())
	return buffer.Bytes(), err
}

// Unpack returns the content of an archive, and checks its bounds and its manifest.
func Unpack(packed []byte) (Content, error) {
	if len(packed) > MaxPacked {
		return Content{}, fmt.Errorf("the mod's archive has %d bytes, and at most %d are allowed", len(packed), MaxPacked)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return Content{}, fmt.Errorf("the mod's archive: %w", err)
	}
	c := Content{Files: make(map[string][]byte)}
	left := int64(MaxUnpacked)
	for _, entry := range archive.File {
		if strings.HasSuffix(entry.Name, "/") {
			continue
		}
		if len(c.Files) == MaxFiles {
			return Content{}, fmt.Errorf("the mod has more than %d files", MaxFiles)
		}
		if _, twice := c.Files[entry.Name]; twice || !fs.ValidPath(entry.Name) || !utf8.ValidString(entry.Name) || strings.Contains(entry.Name, `\`) {
			return Content{}, fmt.Errorf("the mod's archive has a file %.60q", entry.Name)
		}
		file, err := entry.Open()
		if err != nil {
			return Content{}, fmt.Errorf("%.60q: %w", entry.Name, err)
		}
		data, err := read(file, left)
		if err != nil {
			return Content{}, fmt.Errorf("%.60q: %w", entry.Name, err)
		}
		left -= int64(len(data))
		c.Files[entry.Name] = data
	}
	for _, name := range []string{ManifestFile, ScriptFile} {
		if c.Files[name] == nil {
			return Content{}, fmt.Errorf("the mod has no file %s", name)
		}
	}
	c.Manifest, err = ParseManifest(c.Files[ManifestFile])
	return c, err
}

// read returns the bytes of a file, which it closes, unless they are more than so many.
func read(file io.ReadCloser, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if int64(len(data)) > most {
		err = fmt.Errorf("the mod's files have more than %d bytes together", MaxUnpacked)
	}
	return append([]byte{}, data...), errors.Join(err, file.Close())
}
