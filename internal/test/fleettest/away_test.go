//go:build unix

package fleettest

import (
	"os/exec"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// Redis freezes, or is killed and returns empty, while processes have parts of the limit. With the calls that they admit
// meanwhile, the limit holds.
func TestProcessesWhoseRedisIsAway(t *testing.T) {
	const few, before, away, after = 4, 8 * time.Second, 4 * time.Second, 3 * time.Second
	for i, l := range shapes {
		for name, gone := range map[string]func(*servers.Server) (back func()){
			"stands still": func(s *servers.Server) func() { s.Stop(); return s.Cont },
			"is emptied":   func(s *servers.Server) func() { s.Kill(); return s.Restart },
		} {
			t.Run(l.Name+" "+name, func(t *testing.T) {
				beside(t)
				redis := servers.Redis(t)
				o := order{Redis: redis.URL(), Group: "up", Limit: l, Shape: i, Callers: callers, Lasts: before + away + after}
				known(t, redis.URL(), o.Group)
				var cmds []*exec.Cmd
				var dones []<-chan []grant
				for range few {
					cmd, done := spawn(t, o)
					cmds, dones = append(cmds, cmd), append(dones, done)
				}
				sleep := func(d time.Duration) { _ = clock.System.Sleep(t.Context(), d) }
				sleep(before)
				back := gone(redis)
				sleep(away / 2)
				_ = cmds[0].Process.Kill() // its part is lost with it
				sleep(away / 2)
				back()
				var all []grant
				for _, done := range dones {
					all = append(all, <-done...)
				}
				judge(t, o, all, 0)
			})
		}
	}
}
