package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/redact"
)

// This file logs what operators order on the admin socket. The commands that concern players are entries of the world's
// policy besides, which voxeld audit lists, and revocations are signed (voxeld peers revoked); the others concern this
// node, or are ordered on it.

// openParameters are the parameters of orders that are logged. None of them is meant to be a secret, but operators may
// put a token into any: see redact.Tokens.
var openParameters = []string{
	"kind", "subject", "node", "region", "cell", "operator", "uses", "expires", "issuer", "lift", "force", "reason", "text", admin.OldCopy,
}

// logOrders logs each order before it is carried out, and when it has failed, too.
func logOrders(logger *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		order := []any{"path", redact.Tokens(r.URL.Path)}
		if uid, known := r.Context().Value(callerKey{}).(uint32); known {
			order = append(order, "uid", uid)
		}
		query := r.URL.Query()
		for _, key := range openParameters {
			value := redact.Tokens(query.Get(key))
			if _, err := hex.DecodeString(value); key == "subject" && query.Get("kind") == admin.RevokeToken && err != nil {
				value = redact.Token // whatever its form is; its id is no secret
			}
			if value != "" {
				order = append(order, strings.ReplaceAll(key, "-", "_"), value)
			}
		}
		logger.Info("ordered by an operator", order...)
		answer := &answerRecorder{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		if why := answer.failure(); why != "" {
			logger.Warn("an operator's order has failed", append(order, "error", redact.Tokens(why))...)
		}
	})
}

// answerRecorder keeps the status of an answer, and its body if that is JSON, which is in memory as a whole anyway. Of
// another body it keeps the beginning.
type answerRecorder struct {
	http.ResponseWriter
	status int // 0: none was written, so it is 200
	body   bytes.Buffer
}

// recorded bounds what is kept of an answer that is not JSON.
const recorded = 1 << 10

func (a *answerRecorder) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answerRecorder) Write(p []byte) (int, error) {
	kept := p
	if a.Header().Get("Content-Type") != "application/json" {
		kept = p[:min(len(p), max(0, recorded-a.body.Len()))]
	}
	a.body.Write(kept)
	return a.ResponseWriter.Write(p)
}

// Unwrap returns the writer for http.ResponseController.
func (a *answerRecorder) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// failure returns the error in the answer; empty if there is none.
func (a *answerRecorder) failure() string {
	if why := a.Header().Get(admin.BackupError); why != "" {
		return why
	}
	var answer struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(a.body.Bytes(), &answer); err == nil && answer.Error != "" {
		return answer.Error
	}
	if a.status >= http.StatusBadRequest {
		text := a.body.Bytes()[:min(a.body.Len(), recorded)]
		return fmt.Sprintf("%d %s: %s", a.status, http.StatusText(a.status), bytes.TrimSpace(text))
	}
	return ""
}

// callerKey is the key of a request's user id, that of the process at the other end of the socket.
type callerKey struct{}
