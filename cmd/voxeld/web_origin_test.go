package main

import (
	"net/http"
	"strings"
	"testing"
)

// A page of a stranger plays at no node, and reads no metrics, although a browser on the machine reaches both. Pages of
// another node of the world, also one that has been stopped, and those that the operator names, play.
func TestWebPagesOfStrangers(t *testing.T) {
	first := startDaemon(t, "--advertise-http", "https://a.example.org")
	second := startDaemon(t, "--join", first.invite(), "--web-origin", "http://voxels.lan:8080")
	second.ready()
	request := func(address, path, host, origin string) (status int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if status := request(second.HTTP, "/ws", "", "https://evil.example"); status != http.StatusForbidden {
		t.Errorf("a stranger's page: %d", status)
	}
	if status := request(second.HTTP, "/ws", "evil.example", "http://evil.example"); status != http.StatusMisdirectedRequest {
		t.Errorf("a page whose name leads to the node: %d", status)
	}
	for host, want := range map[string]int{"": 200, "evil.example": 421, "voxels.lan:9102": 200, "node-b:9102": 200} {
		if status := request(second.Metrics, "/metrics", host, ""); status != want {
			t.Errorf("metrics as %q: %d, want %d", host, status, want)
		}
	}
	plays := func(origin string) {
		t.Helper()
		if first, status := welcome(t, nil, "ws://"+second.HTTP+"/ws", "ann", http.Header{"Origin": {origin}}); !strings.HasPrefix(first, `{"type":"welcome"`) {
			t.Errorf("a page of %s: %d", origin, status)
		}
	}
	plays("https://a.example.org")
	plays("http://voxels.lan:8080")
	first.kill()
	plays("https://a.example.org")
}
