package actor

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/voxelpopuli/voxeld/world"
)

// An entry that another one before it has made void is answered at once: nobody waits for what cannot come, while the
// other half of a merge is frozen.
func TestVoidStepIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := scripted()
		l.LandOptions.Split = func(_ Split, done func(error)) { done(nil) }
		split, freeze := make(chan error, 1), make(chan error, 1)
		go func() { split <- l.handle.ProposeSplit(t.Context()) }()
		synctest.Wait()
		l.runInbox()
		go func() {
			_, err := l.handle.Freeze(t.Context(), 0, 0)
			freeze <- err
		}()
		synctest.Wait()
		l.runInbox()
		if len(g.proposed) != 2 {
			t.Fatalf("%d entries proposed, want %x and another one", len(g.proposed), world.EncodeSplit())
		}
		for range 2 {
			g.commit()
			l.step()
			l.step()
		}
		synctest.Wait()
		for name, c := range map[string]struct {
			answer chan error
			want   error
		}{"split": {split, nil}, "freeze": {freeze, ErrSplit}} {
			select {
			case err := <-c.answer:
				if !errors.Is(err, c.want) {
					t.Errorf("%s: %v, want %v", name, err, c.want)
				}
			default:
				t.Errorf("%s is not answered", name)
			}
		}
	})
}
