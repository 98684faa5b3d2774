package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// bound limits the wait that a response requests to the longest wait of weir itself: max_pause, or the longest window
// for a quota. If a throttled response states its wait in a body or in rate limit headers, bound adds Retry-After.
func (t *trip) bound(h http.Header) {
	o := &t.story.Outcome
	if o.Code == outerRefusal {
		return // the outer weir has bounded them
	}
	most := t.to.weir.Policy().MaxPause
	if o.Hint.Quota {
		most = max(most, pause.Longest)
	}
	now := time.Now()
	classify.BoundWaits(h, most, now)
	if o.Class == outcome.Throttled && o.Hint.Said && o.Hint.After > 0 && !classify.SaysWait(h, now) {
		h["Retry-After"] = []string{strconv.FormatInt(refuse.Ceil(min(o.Hint.After, most), time.Second), 10)}
	}
}
