package backups

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A node may ask for so much at the same time; what is above that waits, and then is refused. Others are served
// meanwhile.
func TestRequestsOfOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRequests()
		entered := make(chan func(), maxAsked)
		for range maxAsked {
			go func() {
				leave, err := r.enter(t.Context(), "a")
				if err != nil {
					t.Error(err)
				}
				entered <- leave
			}()
		}
		synctest.Wait()
		if len(entered) != maxServedPeer {
			t.Errorf("%d requests of one node are served", len(entered))
		}
		if _, err := r.enter(t.Context(), "a"); !errors.Is(err, errTooMany) {
			t.Errorf("one more: %v", err)
		}
		leave, err := r.enter(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		leave()
		ended, end := context.WithCancel(t.Context())
		end()
		for range maxServed - maxServedPeer {
			if leave, err = r.enter(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			defer leave()
		}
		if _, err := r.enter(ended, "c"); !errors.Is(err, context.Canceled) {
			t.Errorf("beyond what all may have: %v", err)
		}
		for range maxAsked {
			leave := <-entered
			leave()
		}
		if _, there := r.peers["a"]; there || len(r.peers) != 1 {
			t.Errorf("%d nodes are remembered", len(r.peers))
		}
	})
}
