package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/redact"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire"
)

// logOfOrder returns what is logged of an order that a handler answers.
func logOfOrder(path string, query url.Values, answer http.HandlerFunc) string {
	var out bytes.Buffer
	r := httptest.NewRequest(http.MethodPost, path+"?"+query.Encode(), http.NoBody)
	logOrders(slog.New(slog.NewTextHandler(&out, nil)), answer).ServeHTTP(httptest.NewRecorder(), r)
	return out.String()
}

// A token is logged under no key, in no form, and not in an error that quotes it.
func TestTokensAreNotLogged(t *testing.T) {
	t.Parallel()
	token := config.Token{World: strings.Repeat("5a", 32), Secret: &trust.Secret{7}, Addrs: []string{"/ip4/127.0.0.1/tcp/4001"}}.String()
	forms := map[string]string{
		"whole": token, "cut": token[:len(token)-5], "capitals": strings.ToUpper(token), "wrapped": token[:30] + "\n" + token[30:60] + " " + token[60:],
		"mistyped": "vxz" + token[3:], "quoted": "lost “" + token + "”", "for /owner": "owner ABCD-EFGH-IJKL-MNOP",
	}
	for name, form := range forms {
		secret := strings.ToLower(form[len(form)-19 : len(form)-5])
		for _, key := range openParameters {
			got := logOfOrder("/peers/x", url.Values{key: {form}, "kind": {admin.RevokeNode}}, func(w http.ResponseWriter, _ *http.Request) {
				_, err := admission.KeyOfNode(form)
				reply(w, admin.AccessChange{Error: wire.ErrorText(err)})
			})
			if strings.Contains(strings.ToLower(got), secret) || !strings.Contains(got, "failed") || !strings.Contains(got, "is no id of a node") {
				t.Errorf("%s, as %s: %s", name, key, got)
			}
		}
	}
	for _, said := range []string{
		"12D3KooWSwuJ3aPoNbCdyd7ifNvj98pjrfPWfxeJxpRDoEDczKWG", "it begins with \"vx3\", not with vx2: it is mistyped", "kick vx2cool",
	} {
		if got := redact.Tokens(said); got != said {
			t.Errorf("%s was taken for a token: %s", said, got)
		}
	}
}

// A failed order is logged as failed however long its answer is, and whether it is JSON or text. The command of an
// order is logged.
func TestFailedOrdersAreLogged(t *testing.T) {
	t.Parallel()
	command := url.Values{"text": {"ban Mallory for griefing"}}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string // empty: it has not failed
	}{
		"good": {func(w http.ResponseWriter, _ *http.Request) { reply(w, admin.Text{Text: "done"}) }, ""},
		"bad":  {func(w http.ResponseWriter, _ *http.Request) { reply(w, admin.Text{Error: "no"}) }, "error=no"},
		"long JSON": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, admin.Text{Text: strings.Repeat("x", 1<<17), Error: "no"})
		}, "error=no"},
		"text": {
			func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "uses: want a number", http.StatusBadRequest)
			},
			`error="400 Bad Request: uses: want a number"`,
		},
		"long text": {
			func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "why: "+strings.Repeat("x", 1<<17), http.StatusInternalServerError)
			}, `error="500 Internal Server Error: why: xxx`,
		},
	} {
		got := logOfOrder("/policy", command, test.answer)
		if failed := strings.Contains(got, "an operator's order has failed"); failed != (test.want != "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %.500s", name, got)
		}
		if !strings.Contains(got, `path=/policy text="ban Mallory for griefing"`) || len(got) > 4096 {
			t.Errorf("%s: %d bytes: %.500s", name, len(got), got)
		}
	}
}
