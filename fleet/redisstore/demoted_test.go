package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// A primary becomes a replica and keeps running, and the name of the store now leads to the new primary. A client
// that stayed connected to the old server would get READONLY forever.
func TestAServerThatIsNoPrimaryAnyMoreIsLeft(t *testing.T) {
	for name, by := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := servers.Redis(t)
			next := servers.Replica(t, old)
			n := servers.Named(t, old)
			s := by(startFull(open(t, n.URL())))
			b := claim(bucketOf("b", 1, time.Hour, 100), 1)
			a := ask(b)
			a.Copies = 60
			take(t, s, a)
			next.CaughtUp(old)
			next.Promote()
			old.Follow(next)
			look := ask(b) // a claim of no copies, because the response to an attempt that took units could be lost
			look.Copies = 0
			try := func() error {
				_, err := within(time.Second, func(ctx context.Context) error { return s.Take(ctx, look) })
				return err
			}
			eventually(t, "the operator hears what is wrong", func() bool {
				err := try()
				return err != nil && strings.Contains(err.Error(), "READONLY") && strings.Contains(err.Error(), "name the primary")
			})
			n.Lead(next)
			took := eventually(t, "an answer of the new primary", func() bool { return try() == nil })
			t.Logf("the new primary answered after %v and %d connections", took, n.Made())
			if got := take(t, s, ask(b)).Grants[0].Left; got != 39 {
				t.Errorf("%d left at the new primary, want 39", got)
			}
		})
	}
}
