package httpd

import (
	"encoding/json"
	"net/http"

	"github.com/voxelpopuli/voxeld/grid"
)

// Map is what the public map shows of the world, beside its land.
type Map struct {
	World string   `json:"world"` // its name
	Node  string   `json:"node"`  // peer id of this node
	Spawn grid.Pos `json:"spawn"`
}

// publicMap serves the page of the map, or, if that is nil, what the page shows; while the map is public.
func publicMap(about func() (Map, bool), page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		it, public := about()
		switch {
		case !public:
			http.Error(w, "this node has no public map", http.StatusNotFound)
		case page != nil:
			page.ServeHTTP(w, r)
		default:
			w.Header().Set("Cache-Control", "public, max-age=60")
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(it) //nolint:errcheck,errchkjson // the client left
		}
	})
}
