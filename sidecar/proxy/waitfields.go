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

// bound tells the caller to wait no longer than weir itself does for what the upstream says: max_pause, and
// for a quota the longest window. The wait of a throttle that stands elsewhere, in a body or in the headers of limits, is told in
// Retry-After.
func (t *trip) bound(h http.Header) {
	o := &t.story.Outcome
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
