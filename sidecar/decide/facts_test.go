package decide

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/test/refusals"
)

// Every refusal is a JSON response with the status, the reason and the wait of the HTTP refusal.
func TestRefusalsAsAnswers(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	u := upstream(t, "up", policy())
	a := &asker{s: server(t, u), u: u, policy: new(u.Policy()), q: &acquireRequest{}}
	for range 2000 {
		refusal := refusals.Random(r)
		f := a.refusal(refusal)
		w := httptest.NewRecorder()
		write(w, f)
		var got struct {
			Error struct {
				Code    string
				Details struct {
					Reason  weir.Reason
					RetryMS int64   `json:"retry_after_ms"`
					Limit   *string `json:"limit"`
					Key     *string `json:"key"`
					Limits  []limitView
				}
			}
		}
		err := json.Unmarshal(w.Body.Bytes(), &got)
		status := http.StatusTooManyRequests
		if refusal.Reason.Unavailable() {
			status = http.StatusServiceUnavailable
		}
		d := got.Error.Details
		named := refusal.Limit != "" && status == http.StatusTooManyRequests
		if err != nil || w.Code != status || d.Reason != refusal.Reason || d.RetryMS != refuse.Ceil(f.Wait, time.Millisecond) || w.Header().Get("Retry-After") != f.Seconds() ||
			(d.Limit != nil) != named || (d.Key != nil) != named || d.Limits == nil {
			t.Fatalf("seed %d: %v, %v: %s", seed, refusal, err, w.Body)
		}
	}
}
