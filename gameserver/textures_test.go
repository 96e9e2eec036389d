package gameserver

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/voxelpopuli/voxeld/mod"
)

// However often the texture pack is requested, it is opened once; and an address may not request it any number of times.
func TestTexturesAreOpenedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pack, opened, world := []byte("pack"), 0, newPeople()
		r := newHarness(t, func(o *Options) {
			o.People, o.Admission.PerAddress = world, 2
			o.Contents = func([32]byte) ([]byte, error) {
				opened++
				return pack, nil
			}
		})
		hash := mod.HashOf(pack).String()
		world.operate(t, "set textures "+hash)
		answers := make(map[int]int)
		for range 200 {
			request, response := httptest.NewRequest(http.MethodGet, "/textures/"+hash, http.NoBody), httptest.NewRecorder()
			request.SetPathValue("hash", hash)
			request.Header.Set("Range", "bytes=0-0")
			r.g.textures(response, request)
			answers[response.Code]++
		}
		if opened != 1 || answers[http.StatusPartialContent] != 128 || answers[http.StatusTooManyRequests] != 72 {
			t.Errorf("the pack was opened %d times; answers %v", opened, answers)
		}
	})
}
