package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// A bodyKeeper is an Accepter that stores bodies that are too large for records; see delivery.Worker.
type bodyKeeper interface {
	Keep(ctx context.Context, r *delivery.Request, body io.Reader, most int64) error
	Largest() int64 // size limit of a stored body, in bytes
}

// holds reads the body of a letter into memory, or stores it next to its record while it arrives.
func (t *trip) holds(r *http.Request, q *letter, to Accepter) *NotAccepted {
	keeper, most := t.keeper(to)
	switch {
	case keeper == nil:
		most = delivery.MaxBody
	case r.ContentLength > most:
		return notBody(tooLarge(most))
	case r.ContentLength > delivery.MaxBody:
		q.release = func() {}
		return t.keep(r, q, keeper, r.Body, most)
	case r.ContentLength < 0:
		return t.holdsUnsaid(r, q, keeper, most)
	}
	body, release, f := t.bodyOf(r, min(most, delivery.MaxBody))
	if f != nil {
		return notBody(f)
	}
	q.Body, q.release = body, release
	return nil
}

// holdsUnsaid is like holds, for a body of unknown length.
func (t *trip) holdsUnsaid(r *http.Request, q *letter, keeper bodyKeeper, most int64) *NotAccepted {
	begins := *r
	begins.Body = io.NopCloser(io.LimitReader(r.Body, delivery.MaxBody+1))
	body, release, f := t.bodyOf(&begins, delivery.MaxBody+1)
	if f != nil {
		return notBody(f)
	}
	q.release = release
	if len(body) <= delivery.MaxBody {
		q.Body = body
		return nil
	}
	not := t.keep(r, q, keeper, io.MultiReader(bytes.NewReader(body), r.Body), most)
	if not != nil {
		release()
	}
	return not
}

// keeper returns where the upstream's large bodies are stored, and their size limit. It returns nil if the dialect must
// read the body first.
func (t *trip) keeper(to Accepter) (bodyKeeper, int64) {
	k, ok := to.(bodyKeeper)
	if t.to.Dialect != nil {
		x, streams := t.exchange.(httpx.Streamer)
		ok = ok && streams && x.Streams()
	}
	if !ok {
		return nil, 0
	}
	most := k.Largest()
	if t.to.MaxBody > 0 {
		most = min(most, t.to.MaxBody)
	}
	if most <= delivery.MaxBody {
		return nil, 0
	}
	return k, most
}

// keep stores a body next to the record of its letter.
func (t *trip) keep(r *http.Request, q *letter, keeper bodyKeeper, body io.Reader, most int64) *NotAccepted {
	err := keeper.Keep(r.Context(), &q.Request, body, most)
	var large *delivery.TooLargeError
	var broken *delivery.BodyError
	switch {
	case errors.As(err, &large):
		return notBody(tooLarge(most))
	case errors.As(err, &broken):
		return notBody(httpx.BrokenBody(broken.Err))
	case err != nil:
		return &NotAccepted{Why: notThere, Err: err, facts: &refuse.Facts{Status: http.StatusServiceUnavailable, Code: refuse.ServiceUnavailable, Wait: time.Second,
			Message: "the request was not accepted: its body could not be stored"}}
	}
	return nil
}

func notBody(f *refuse.Facts) *NotAccepted {
	return &NotAccepted{Why: whyOfBody(f), Field: "body", facts: f}
}
