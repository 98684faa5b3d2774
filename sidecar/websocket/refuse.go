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

// requestID names the next message of the caller that is refused. It is made before anybody knows which that is, and so is that of
// all that are allowed until then.
func (s *Session) requestID() string { return s.id + "-" + strconv.FormatInt(s.serial+1, 10) }

// refuse tells the caller that its message is not sent on, and reports whether the session goes on.
func (s *Session) refuse(row *row, err error) bool {
	if s.ctx.Err() != nil && !isRefusal(err) {
		return false // it ends anyhow
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

// body is weir's error as a message: as over HTTP, with the names that API Gateway gives to connection and message.
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

// facts are what there is to say of a message that was not let through.
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

// ambiguous refuses a message that names its route twice.
func ambiguous(field []string) error {
	return &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Final: true,
		Message: fmt.Sprintf("the message has %s more than once (in upper or lower case), so its route is ambiguous", strings.Join(field, "."))}
}

// refusals are those of late, since the first of them.
type refusals struct {
	since time.Time
	n     int
}

// tooMany counts one more, and reports whether that is more than may be.
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
