package board_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/callid"
	"github.com/seed1158cd35/weir/observe/why"
)

// stories has a record of one call. For other calls it has only the lines of a second.
type stories struct {
	call  *why.Call
	lines []why.Line
	err   error
}

func (s *stories) Find(_ context.Context, id string) ([]*why.Call, error) {
	if s.call != nil && s.call.ID == id {
		return []*why.Call{s.call}, s.err
	}
	return nil, s.err
}

func (s *stories) In(time.Time) ([]why.Line, bool) { return s.lines, s.lines != nil }

// The page explains a call by its ID, or why it cannot. No text of a call becomes markup.
func TestThePageSaysWhy(t *testing.T) {
	s := open(t, policy, "up")
	if code, page := s.get("/why?id=x"); code != http.StatusNotFound || !strings.Contains(page, "no record of") {
		t.Errorf("nothing is kept at all: %d %s", code, page)
	}
	of := &stories{call: &why.Call{ID: "one", Upstream: "up", Kind: why.Refused, Reason: "rate_limited", Key: "<script>", At: time.Now()}}
	s.board.Page.Why = of
	if _, page := s.get("/"); !strings.Contains(page, `action="why"`) {
		t.Error("the page has no form for it")
	}
	if code, page := s.get("/why"); code != http.StatusOK || strings.Contains(page, "role=\"alert\"") {
		t.Errorf("no ID: %d %s", code, page)
	}
	if code, page := s.get("/why?id=+one+"); code != http.StatusOK || !strings.Contains(page, "up: refused by weir: rate_limited") || !strings.Contains(page, "Its key is &lt;script&gt;.") || !strings.Contains(page, `value="one"`) {
		t.Errorf("a call that is known: %d %s", code, page)
	}
	if code, page := s.get("/why?id=" + url.QueryEscape("<b>")); code != http.StatusNotFound || strings.Contains(page, "<b>") {
		t.Errorf("nobody's ID: %d %s", code, page)
	}
	of.lines = []why.Line{{Upstream: "up", Decision: "rate_limited", N: 7}}
	if code, page := s.get("/why?id=" + callid.New(time.Now())); code != http.StatusOK || !strings.Contains(bare(page), "<td>up<td>7<td>rate_limited") {
		t.Errorf("a second: %d %s", code, page)
	}
	of.err = errors.New("no route to host")
	if code, page := s.get("/why?id=two"); code != http.StatusServiceUnavailable || !strings.Contains(page, "the store cannot be asked: no route to host") {
		t.Errorf("no store: %d %s", code, page)
	}
}
