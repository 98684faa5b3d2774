package serve

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/campaign"
)

// An away describes how to stop and restart an engine.
type away struct {
	name        string
	goes, comes func()
}

// While the database is paused or stopped, deliveries are refused with 503. No delivery is lost, and later ones are
// accepted.
func TestTheDatabaseIsAway(t *testing.T) {
	o := newTown(t)
	o.init()
	o.outlives(away{"stopped", o.db.Stop, o.db.Cont}, away{"ended", o.db.Shut, o.db.Restart})
}

// The same for the table, which holds the deliveries. While only the queue is unreachable, nothing changes.
func TestTheTableIsAway(t *testing.T) {
	o := cloudTown(t, "--path", t.TempDir())
	o.init()
	o.queue.Stop()
	w := o.weir()
	o.completes(w, "without messages")
	o.queue.Cont()
	_ = w.Close()
	o.outlives(away{"stopped", o.db.Stop, o.db.Cont}, away{"ended", o.db.Shut, o.db.Restart})
}

// outlives submits requests before, during and after the outage. It submits refused requests again under the same key,
// because they may have been stored. Each is delivered once.
func (o *town) outlives(all ...away) {
	w := o.weir()
	if !o.accepts(w, "before") {
		o.Fatal("not accepted while the engine is there")
	}
	bodies := []string{"before"}
	for _, a := range all {
		a.goes()
		gone, longest := time.Now(), time.Duration(0)
		for i := 0; i == 0 || time.Since(gone) < time.Duration(campaign.Of(1, 10))*time.Second; i++ {
			begin, body := time.Now(), fmt.Sprintf("%s %d", a.name, i)
			if o.accepts(w, body) {
				o.Errorf("%s: it was accepted", a.name)
			}
			longest = max(longest, time.Since(begin))
			bodies = append(bodies, body)
			<-time.After(20 * time.Millisecond)
		}
		a.comes()
		back := time.Now()
		for i := 0; !o.accepts(w, a.name+" back"); i++ {
			if i > 30 {
				o.Fatalf("%s: not accepted any more", a.name)
			}
		}
		o.Logf("%s for %v: refused within %v, back after %v", a.name, back.Sub(gone).Round(time.Millisecond), longest.Round(time.Millisecond), time.Since(back).Round(time.Millisecond))
		bodies = append(bodies, a.name+" back")
	}
	for _, body := range bodies {
		o.completes(w, body)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for body, n := range o.got {
		if n > 1 {
			o.Logf("%q was sent %d times", body, n)
		}
	}
}

// completes submits a request until it is delivered: on a busy machine the engine may be late.
func (o *town) completes(w *Running, body string) {
	o.Helper()
	for i := 0; ; i++ {
		resp, text := o.send(w, body, "respond-async, wait=60")
		if resp.StatusCode == 200 && strings.Contains(text, `"completed"`) {
			return
		}
		if i > 2 {
			o.Errorf("%s: %s %s", body, resp.Status, text)
			return
		}
	}
}

// accepts submits a request and reports whether it was accepted. A refusal must be 503 with Retry-After and the
// delivery's ID.
func (o *town) accepts(w *Running, body string) bool {
	o.Helper()
	resp, text := o.send(w, body, "respond-async")
	switch resp.StatusCode {
	case http.StatusAccepted:
		return true
	case http.StatusServiceUnavailable:
		if resp.Header.Get("Retry-After") == "" || !strings.Contains(text, `"id"`) {
			o.Errorf("503 without Retry-After or ID: %v %s", resp.Header, text)
		}
	default:
		o.Errorf("%s %s", resp.Status, text)
	}
	return false
}
