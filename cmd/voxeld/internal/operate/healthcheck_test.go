package operate

import "testing"

func TestNodeURL(t *testing.T) {
	for address, want := range map[string]string{
		":8080": "http://127.0.0.1:8080", "0.0.0.0:80": "http://127.0.0.1:80", "127.0.0.2:8080": "http://127.0.0.2:8080",
		"http://127.0.0.1:8080": "http://127.0.0.1:8080", "https://voxels.example/": "https://voxels.example",
		"node-a:8080": "http://node-a:8080", "nowhere": "", "8080": "", "ftp://a.example": "", "http://": "",
	} {
		if got, err := nodeURL(address); got != want || (err == nil) != (want != "") {
			t.Errorf("URL of %q: %q, %v; want %q", address, got, err, want)
		}
	}
}
