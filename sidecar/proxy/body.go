package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	memory "github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// makingRoom is how long a body waits for memory.
const makingRoom = 5 * time.Second

// bodyOf reads the body of a request, up to most bytes. The body counts against the process's memory for bodies until
// release is called. It counts twice, because the store makes a copy.
func (t *trip) bodyOf(r *http.Request, most int64) (body []byte, release func(), f *refuse.Facts) {
	if t.to.MaxBody > 0 {
		most = min(most, t.to.MaxBody)
	}
	if r.ContentLength > most {
		return nil, nil, tooLarge(most)
	}
	held := memory.Bodies.Claim(2*max(0, r.ContentLength), 0)
	give := func() { held.Give(held.Has()) }
	defer func() {
		held.Whole()
		if f != nil {
			give()
		}
	}()
	body, err := memory.Read(r.Context(), io.LimitReader(r.Body, most+1), r.ContentLength, held, makingRoom)
	switch {
	case errors.Is(err, memory.ErrFull):
		return nil, nil, &refuse.Facts{Status: http.StatusServiceUnavailable, Code: refuse.ServiceUnavailable, Wait: time.Second, Message: "the request was not accepted: weir's memory for bodies is full"}
	case errors.Is(err, memory.ErrTooLarge):
		return nil, nil, tooLarge(memory.Bodies.Total() / 4)
	case err != nil:
		return nil, nil, httpx.BrokenBody(err)
	case int64(len(body)) > most:
		return nil, nil, tooLarge(most)
	}
	return body, give, nil
}

func tooLarge(most int64) *refuse.Facts {
	return &refuse.Facts{Status: http.StatusRequestEntityTooLarge, Code: refuse.ValidationError, Final: true,
		Message: fmt.Sprintf("the body is larger than %d bytes, the most that a request for later delivery may have", most),
		Details: map[string]any{"field": "body", "reason": fmt.Sprintf("at most %d bytes", most)}}
}
