package decide

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// marshal appends a response as encoding/json writes it. It avoids reflection for permits and reports, which are
// nearly all responses.
func marshal(to []byte, answer any) []byte {
	switch a := answer.(type) {
	case acquireAnswer:
		return a.append(to)
	case struct{}:
		return append(to, "{}"...)
	}
	b, err := json.Marshal(answer)
	if err != nil {
		panic(fmt.Errorf("the response is not JSON: %w", err))
	}
	return append(to, b...)
}

func (a *acquireAnswer) append(b []byte) []byte {
	b = refuse.AppendText(append(b, `{"permit":`...), a.Permit)
	b = refuse.AppendTime(append(b, `,"expires_at":`...), a.ExpiresAt)
	b = strconv.AppendInt(append(b, `,"waited_ms":`...), a.WaitedMS, 10)
	if a.Limits == nil {
		return append(b, `,"limits":null}`...)
	}
	b = append(b, `,"limits":[`...)
	for i := range a.Limits {
		if i > 0 {
			b = append(b, ',')
		}
		b = a.Limits[i].append(b)
	}
	return append(b, "]}"...)
}

func (v *limitView) append(b []byte) []byte {
	b = refuse.AppendText(append(b, `{"limit":`...), v.Limit)
	b = refuse.AppendText(append(b, `,"key":`...), v.Key)
	b = refuse.AppendText(append(b, `,"unit":`...), v.Unit)
	b = strconv.AppendInt(append(b, `,"left":`...), v.Left, 10)
	b = strconv.AppendInt(append(b, `,"full":`...), v.Full, 10)
	b = strconv.AppendInt(append(b, `,"reset_ms":`...), v.ResetMS, 10)
	b = refuse.AppendTime(append(b, `,"reset_at":`...), v.ResetAt)
	return append(b, '}')
}
