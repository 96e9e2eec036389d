package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
)

// This file logs what operators order on the admin socket. The commands that concern players are entries of the world's policy besides,
// which voxeld audit lists, and revocations are signed (voxeld peers revoked); the others concern this node, or are ordered on it.

// openParameters are the parameters of orders that are logged: none of them is a secret. The subject of a revocation may be a token.
var openParameters = []string{"kind", "subject", "node", "region", "cell", "operator", "uses", "expires", "issuer", "lift", "force", "reason", admin.OldCopy}

// logOrders logs each order before it is carried out, and when it has failed, too.
func logOrders(logger *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		order := []any{"path", r.URL.Path}
		if uid, known := r.Context().Value(callerKey{}).(uint32); known {
			order = append(order, "uid", uid)
		}
		query := r.URL.Query()
		for _, key := range openParameters {
			value := query.Get(key)
			if _, err := hex.DecodeString(value); key == "subject" && query.Get("kind") == admin.RevokeToken && err != nil {
				value = "a token" // which is a secret; its id is not
			}
			if query.Has(key) && value != "" {
				order = append(order, strings.ReplaceAll(key, "-", "_"), value)
			}
		}
		logger.Info("ordered by an operator", order...)
		answer := &answerRecorder{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		if why := answer.failure(); why != "" {
			logger.Warn("an operator's order has failed", append(order, "error", why)...)
		}
	})
}

// answerRecorder keeps the beginning of an answer.
type answerRecorder struct {
	http.ResponseWriter
	begin bytes.Buffer
}

// recorded bounds what is kept of an answer.
const recorded = 16 << 10

func (a *answerRecorder) Write(p []byte) (int, error) {
	a.begin.Write(p[:min(len(p), recorded-a.begin.Len())])
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
	if err := json.Unmarshal(a.begin.Bytes(), &answer); err != nil {
		return "" // it has no such field, or is no JSON
	}
	return answer.Error
}

// callerKey is the key of a request's user id, that of the process at the other end of the socket.
type callerKey struct{}
