package websocket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// requestID returns the ID of the caller's next refused message. All messages that are allowed until then have the
// same ID, because it is not known in advance which one is refused.
func (s *Session) requestID() string { return s.id + "-" + strconv.FormatInt(s.serial+1, 10) }

// refuse sends the caller a refusal of its message, and reports whether the session continues.
func (s *Session) refuse(row *row, err error) bool {
	if s.ctx.Err() != nil && !isRefusal(err) {
		return false // it ends anyway
	}
	f := facts(err)
	row.refused.Add(1)
	if f.Reason == weir.CircuitOpen {
		s.end(ending{code: tryAgainLater, why: f.Message})
		return false
	}
	s.serial++
	body := s.body(f)
	s.call.ID = s.requestID()
	if s.refused.tooMany(time.Now(), s.Config.Refusals) {
		s.end(ending{code: policy, why: f.Message})
		return false
	}
	if err := s.up.write(s.caller, ws.MessageText, body, s.Config.Write); err != nil {
		s.end(s.left(err))
		return false
	}
	return true
}

// body returns weir's error as a message: as over HTTP, with API Gateway's names for connection and message.
func (s *Session) body(f *refuse.Facts) []byte {
	b := f.JSON()
	b = b[:len(b)-1]
	b = refuse.AppendText(append(b, `,"connectionId":`...), s.id)
	b = refuse.AppendText(append(b, `,"requestId":`...), s.call.ID)
	return append(b, '}')
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*weir.Refusal](err)
	return ok
}

// facts converts the error for a refused message.
func facts(err error) *refuse.Facts {
	if r, ok := errors.AsType[*weir.Refusal](err); ok {
		return refuse.Of(r, time.Now())
	}
	if f, ok := errors.AsType[*refuse.Facts](err); ok {
		return f
	}
	f := &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Message: err.Error(), Final: true}
	if !errors.Is(err, weir.ErrTooMuch) {
		f.Status, f.Code = http.StatusInternalServerError, refuse.InternalError
	}
	if errors.Is(err, context.Canceled) {
		f.Status, f.Code = http.StatusServiceUnavailable, refuse.ServiceUnavailable
	}
	return f
}

// ambiguous returns the error for a message that names its route twice.
func ambiguous(field []string) error {
	return &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Final: true,
		Message: fmt.Sprintf("the message has %s more than once (in upper or lower case), so its route is ambiguous", strings.Join(field, "."))}
}

// refusals counts recent refusals, from the first of them.
type refusals struct {
	since time.Time
	n     int
}

// tooMany counts a refusal, and reports whether there are too many.
func (r *refusals) tooMany(now time.Time, most int) bool {
	if most == 0 {
		return false
	}
	if now.Sub(r.since) > within {
		r.since, r.n = now, 0
	}
	r.n++
	return r.n > most
}
