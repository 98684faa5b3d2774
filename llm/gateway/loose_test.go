package gateway_test

import (
	"testing"

	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// With a loose cache, a question in another spelling hits the cache. Without it, the model is asked again.
func TestALooseCacheAnswersTheSameQuestion(t *testing.T) {
	for loose, want := range map[bool]int{false: 2, true: 1} {
		b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{}), Loose: loose}})
		b.chat("What is a weir?")
		b.calls.Wait()
		b.chat("  what is a WEIR?")
		b.calls.Wait()
		if got := len(b.sim.Log()); got != want {
			t.Errorf("loose %v: the model was asked %d times, want %d", loose, got, want)
		}
	}
}
