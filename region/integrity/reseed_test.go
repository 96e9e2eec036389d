package integrity

import (
	"testing"
	"testing/synctest"
	"time"
)

// A copy is replaced a few times a day, however long the node runs.
func TestReseedsADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make(reseeds)
		for range 10 * maxReseeds {
			if !r.allow(7) {
				t.Fatalf("refused after %v", r[7])
			}
			r[7] = append(r[7], time.Now())
			<-time.After(reseedsWithin / maxReseeds)
		}
		r[8] = []time.Time{time.Now(), time.Now(), time.Now()}
		if r.allow(8) || !r.allow(9) {
			t.Error("allowed more in a day, or refused to another region")
		}
		<-time.After(reseedsWithin - time.Second)
		if r.allow(8) {
			t.Error("allowed too early")
		}
		<-time.After(time.Second)
		if !r.allow(8) || !r.allow(7) || len(r) != 0 {
			t.Errorf("after a day: %v", r)
		}
	})
}
