package admin

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The text with which a node refuses a request reaches the operator, and a node that hangs is called that, not "context
// deadline exceeded".
func TestErrorsAreForPeople(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "admin")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	hang := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/since", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `"2hours" is not a time: write 30m, 2h, 7d or 4w`, http.StatusBadRequest)
	})
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	mux.HandleFunc("/silent", func(http.ResponseWriter, *http.Request) { <-hang })
	mux.HandleFunc("/stuck", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("["))
		w.(http.Flusher).Flush()
		<-hang
	})
	server := &http.Server{Handler: mux}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		close(hang)
		server.Close()
		<-served
	})
	for path, want := range map[string]string{
		"/since":  `"2hours" is not a time: write 30m, 2h, 7d or 4w`,
		"/empty":  "400 Bad Request",
		"/silent": "does not answer in time",
		"/stuck":  "does not answer in time",
	} {
		var answer []int
		err := GetWithin(t.Context(), 50*time.Millisecond, socket, path, &answer)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "deadline") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
