package rollback

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
)

// What other domains have is found though one fails, and one does not answer.
func TestSearchGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var domains []grid.Domain
		for i := range int32(3 * parallel) {
			domains = append(domains, grid.Domain{X: 9 * i})
		}
		failing, silent := domains[1], domains[2]
		places, missing := searchAll(domains, func(d grid.Domain) (Progress, error) {
			switch d {
			case failing:
				return Progress{}, errors.New("damaged")
			case silent:
				<-time.After(queryTime)
				return Progress{}, errors.New("no answer")
			}
			<-time.After(time.Second)
			return Progress{Left: 1 + int(d.X), Extent: columnsOf(grid.Cell{Domain: d}.Area())}, nil
		})
		if len(places) != len(domains)-2 || places[0].Left < places[1].Left {
			t.Errorf("%d places are found", len(places))
		}
		if len(missing) != 2 || missing[0].Cell.Domain != failing || missing[1].Cell.Domain != silent {
			t.Errorf("missing: %v", missing)
		}
		if took := time.Since(began); took != queryTime {
			t.Errorf("it took %v", took)
		}
	})
}
