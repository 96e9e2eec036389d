package httpd

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// encodings are the content encodings that the client's build writes beside a file, the best one first, by the ending
// of the copy.
var encodings = []struct{ name, ending string }{{"br", ".br"}, {"gzip", ".gz"}}

// files serves the browser client. Names below /assets/ contain a hash of the content, so that browsers may cache these
// files for ever; all others are revalidated by their ETag. Directories are not listed.
type files struct {
	pages map[string]page // by path of the URL
}

// page is a file with its compressed copies.
type page struct {
	contentType, cacheControl string
	copies                    []fileCopy // the best one first; the last one is not compressed
}

type fileCopy struct {
	encoding, etag string
	data           []byte
}

// Preview is what chats and search engines show of a link to the page (https://ogp.me).
type Preview struct {
	Title string
	URL   string // under which others open the page; empty: no preview
}

// meta returns the elements of a page's head that say so. The picture is part of the client.
func (p Preview) meta() string {
	if p.URL == "" {
		return ""
	}
	at := strings.TrimSuffix(p.URL, "/") + "/"
	var all strings.Builder
	for _, m := range [][2]string{
		{"og:type", "website"}, {"og:title", p.Title}, {"og:url", at}, {"og:image", at + "preview.jpg"},
	} {
		fmt.Fprintf(&all, `<meta property="%s" content="%s">`, m[0], html.EscapeString(m[1]))
	}
	return all.String()
}

// newFiles reads all files, and writes the preview into the page.
func newFiles(content fs.FS, preview Preview) (*files, error) {
	f := &files{pages: make(map[string]page)}
	err := fs.WalkDir(content, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Base(name)[0] == '.' {
			return err
		}
		for _, e := range encodings {
			if original, ok := strings.CutSuffix(name, e.ending); ok && exists(content, original) {
				return nil
			}
		}
		f.pages["/"+name], err = newPage(content, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the browser client: %w", err)
	}
	if index, ok := f.pages["/index.html"]; ok {
		index.write(preview)
		f.pages["/"], f.pages["/index.html"] = index, index
	}
	if public, ok := f.pages["/map.html"]; ok {
		f.pages["/map"] = public
		delete(f.pages, "/map.html") // which would not ask whether it is public
	}
	return f, nil
}

func newPage(content fs.FS, name string) (page, error) {
	p := page{contentType: mime.TypeByExtension(path.Ext(name)), cacheControl: "no-cache"}
	if strings.HasPrefix(name, "assets/") {
		p.cacheControl = "public, max-age=31536000, immutable"
	}
	for _, e := range encodings {
		if !exists(content, name+e.ending) {
			continue
		}
		c, err := newCopy(content, name+e.ending, e.name)
		if err != nil {
			return page{}, err
		}
		p.copies = append(p.copies, c)
	}
	plain, err := newCopy(content, name, "")
	p.copies = append(p.copies, plain)
	return p, err
}

func exists(content fs.FS, name string) bool {
	_, err := fs.Stat(content, name)
	return err == nil
}

func newCopy(content fs.FS, name, encoding string) (fileCopy, error) {
	data, err := fs.ReadFile(content, name)
	if err != nil {
		return fileCopy{}, err
	}
	return fileCopy{encoding: encoding, etag: etagOf(data), data: data}, nil
}

func etagOf(data []byte) string {
	hash := sha256.Sum256(data)
	return strconv.Quote(hex.EncodeToString(hash[:8]))
}

// write adds the preview to the head of a page.
func (p *page) write(preview Preview) {
	meta := preview.meta()
	before, after, found := bytes.Cut(p.copies[len(p.copies)-1].data, []byte("</head>"))
	if meta == "" || !found {
		return
	}
	data := slices.Concat(before, []byte(meta), []byte("</head>"), after)
	var compressed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&compressed, gzip.BestCompression) // the level exists
	w.Write(data)                                                  //nolint:errcheck // into memory
	w.Close()                                                      //nolint:errcheck // into memory
	p.copies = []fileCopy{
		{encoding: "gzip", etag: etagOf(compressed.Bytes()), data: compressed.Bytes()},
		{etag: etagOf(data), data: data},
	}
}

func (f *files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, ok := f.pages[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	chosen := p.copies[slices.IndexFunc(p.copies, func(c fileCopy) bool {
		return c.encoding == "" || accepts(r.Header["Accept-Encoding"], c.encoding)
	})]
	h := w.Header()
	h.Set("Cache-Control", p.cacheControl)
	h.Set("Content-Type", p.contentType)
	h.Set("ETag", chosen.etag)
	h.Set("Vary", "Accept-Encoding")
	if chosen.encoding != "" {
		h.Set("Content-Encoding", chosen.encoding)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(chosen.data))
}

// accepts reports whether an Accept-Encoding header (RFC 9110, section 12.5.3) names a content encoding, and not with a
// weight of 0. Wildcards are ignored: no browser sends them.
func accepts(header []string, encoding string) bool {
	for _, line := range header {
		for element := range strings.SplitSeq(line, ",") {
			name, weight, weighted := strings.Cut(element, ";")
			if !strings.EqualFold(strings.TrimSpace(name), encoding) {
				continue
			}
			q, found := strings.CutPrefix(strings.TrimSpace(weight), "q=")
			return !weighted || !found || strings.Trim(q, "0.") != ""
		}
	}
	return false
}
