package proxy

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// bound tells the caller to wait no longer than weir itself does for what the upstream says: max_pause, and
// for a quota the longest window.
func (t *trip) bound(h http.Header) {
	for _, f := range classify.WaitFields {
		for i, v := range h[f.Name] {
			d := waitOf(v, f.Unit)
			if d == 0 {
				continue
			}
			most := t.to.weir.Policy().MaxPause
			if t.story.Outcome.Hint.Quota {
				most = max(most, pause.Longest)
			}
			if d > most {
				h[f.Name][i] = strconv.FormatInt(refuse.Ceil(most, f.Unit), 10)
			}
		}
	}
}

// waitOf is the longest wait that a field can mean, which may hold several that were merged; 0 if it holds none.
func waitOf(v string, unit time.Duration) (most time.Duration) {
	const endless = 1 << 62
	dates := []string{v}
	if i := strings.LastIndexByte(v, ','); i > 0 {
		dates = append(dates, v[:i])
	}
	for _, text := range dates {
		if at, err := http.ParseTime(strings.TrimSpace(text)); err == nil {
			most = max(most, time.Until(at))
		}
	}
	for part := range strings.SplitSeq(v, ",") {
		n, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		switch {
		case err != nil && !errors.Is(err, strconv.ErrRange):
		case n*float64(unit) >= endless:
			return endless
		case n > 0:
			most = max(most, time.Duration(n*float64(unit)))
		}
	}
	return most
}
