package stored

import (
	"bytes"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// Ending checks an End. It returns a copy that does not share memory with the caller, who may return early.
func Ending(e delivery.End) (delivery.End, error) {
	if e.To != delivery.Completed && e.To != delivery.Failed && e.To != delivery.Queued {
		return e, fmt.Errorf("an attempt cannot end as %q", e.To)
	}
	if e.Attempt != nil {
		a := *e.Attempt
		a.Answer = bytes.Clone(a.Answer[:min(len(a.Answer), delivery.MaxAnswer)])
		e.Attempt = &a
	}
	return e, nil
}
