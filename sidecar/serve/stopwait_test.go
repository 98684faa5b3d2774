package serve

import (
	"runtime"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
)

// A caller that waits for a delivery does not delay a stop: it immediately gets its receipt.
func TestAStopAnswersThoseWhoWait(t *testing.T) {
	m := newMailbox(t, "always", "", "")
	m.answers(503)
	type answer struct {
		status int
		is     delivery.Status
	}
	answers := make(chan answer, 1)
	go func() {
		defer close(answers) // in case of a failure
		resp, r, _ := m.post("/box/x", "x", "Prefer: wait=60", async)
		answers <- answer{resp.StatusCode, r.Status}
	}()
	for len(m.letters()) == 0 {
		runtime.Gosched()
	}
	if err := m.run.Stop(); err != nil { // Close would cut calls in progress
		t.Error(err)
	}
	if got := <-answers; got.status != 202 || got.is == delivery.Failed || got.is == delivery.Completed {
		t.Errorf("answered %+v, want 202", got)
	}
	m.answers(200)
	m.start()
}
