package classicube

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A list is told who plays where. What it answers is logged; it lists the node only if that is an address.
func TestHeartbeat(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string // in the log
	}{
		"listed": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, "http://www.classicube.net/server/play/0123/")
		}, `level=INFO msg="the server list of ClassiCube lists this node" url=LIST play=http://www.classicube.net/server/play/0123/`},
		"refused": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"errors": [["The port is not open."]], "response": "", "status": "fail"}`)
		}, "level=WARN msg=\"the server list of ClassiCube does not list this node\" url=LIST error=\"the list answers [[\\\"The port is not open.\\\"]]\""},
		"broken": {http.NotFound, `does not list this node" url=LIST error="the list answers 404 Not Found"`},
		"cut off": {func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, `does not list this node" url=LIST error="Post`},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, strings.Repeat("x", 1<<16))
			}
		}, `does not list this node" url=LIST error="the list answers \"` + strings.Repeat("x", 100) + `\", and no address"`},
		"a page": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<html>see http://www.classicube.net/</html>")
		}, `does not list this node" url=LIST error="the list answers`},
		"a page's address": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "/server/play/0123/") }, `does not list this node"`},
		"errors": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"errors": "The port is not open.", "status": "fail"}`)
		}, `does not list this node" url=LIST error="the list answers`},
		"nothing": {func(http.ResponseWriter, *http.Request) {}, `does not list this node"`},
		"moved": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, `does not list this node" url=LIST error="the list answers 302 Found"`},
	} {
		t.Run(name, func(t *testing.T) {
			reports := make(chan url.Values, 2)
			list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := r.ParseForm(); err != nil {
					t.Error(err)
				}
				reports <- r.PostForm
				c.answer(w, r)
			}))
			defer list.Close()
			logged := make(lines, 10)
			ctx, end := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				ended <- Heartbeat{
					URL: list.URL, Name: "the world & more", Software: "voxeld test", Port: "25577", Players: func() int { return 3 },
					Logger: slog.New(slog.NewTextHandler(logged, nil)),
				}.Run(ctx)
			}()
			form := <-reports
			if line := <-logged; !strings.Contains(line, strings.ReplaceAll(c.want, "LIST", list.URL)) {
				t.Errorf("logged is %.300s", line)
			}
			salt := form.Get("salt")
			form.Del("salt")
			want := "max=255&name=the+world+%26+more&port=25577&public=true&software=voxeld+test&users=3&version=7&web=false"
			if form.Encode() != want || len(salt) != 16 {
				t.Errorf("the list is told %s, with the salt %q", form.Encode(), salt)
			}
			end()
			if err := <-ended; err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// A list that does not answer does not keep the node from stopping.
func TestSilentList(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan error)
	list := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		r.ParseForm() //nolint:errcheck // only once all is read the server notices that the client is gone
		close(asked)
		<-r.Context().Done()
	}))
	defer list.Close()
	ctx, end := context.WithCancel(t.Context())
	go func() {
		ended <- Heartbeat{URL: list.URL, Players: func() int { return 0 }, Logger: slog.New(slog.DiscardHandler)}.Run(ctx)
	}()
	<-asked
	begun := time.Now()
	end()
	if err := <-ended; err != nil || time.Since(begun) > beatTimeout/2 {
		t.Errorf("it ends after %v with %v", time.Since(begun), err)
	}
}

// lines are those of a log.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(bytes.TrimSpace(line))
	return len(line), nil
}
