package dynamostore

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// What an ask of two keys took of the first is given back when the second fails, and perhaps only
// after the ask was repeated: then the repeat must not have been granted it.
func TestALateUndoGivesBackWhatNobodyUses(t *testing.T) {
	f := newFake(time.Now)
	var late []*http.Request
	var bodies []string
	n := 0
	m := &meddler{next: tripper{f}, do: func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		switch n++; n {
		case 1:
			return send()
		case 2:
			body := `{"__type":"com.amazonaws.dynamodb.v20120810#AccessDeniedException","message":"not now"}`
			return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		late, bodies = append(late, r), append(bodies, string(text))
		return nil, syscall.ECONNRESET
	}}
	s := New(client("http://fake", m), "weir", Options{exact: time.Now, sleep: func(context.Context, time.Duration) error { return nil }})
	a := ask(5, "x")
	a.Claims = append(a.Claims, limit.Claim{Rule: slow, Key: "y", Cost: 1})
	m.with(2 + 1 + retries)
	if err := take(t, s, a); err == nil || len(late) == 0 {
		t.Fatalf("%v after %d attempts to give back", err, len(late))
	}
	a.Again = true
	if err := take(t, s, a); err != nil {
		t.Fatal(err)
	}
	for i, r := range late {
		again := r.Clone(context.Background())
		again.Body = io.NopCloser(strings.NewReader(bodies[i]))
		if out, err := f.Do(again); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		} else if err == nil {
			out.Body.Close()
		}
	}
	fresh := New(clientOf(f), "weir", Options{exact: time.Now})
	look := ask(0, "x")
	if err := take(t, fresh, look); err != nil {
		t.Fatal(err)
	}
	if left := look.Grants[0].Left; left+a.Granted > 100 {
		t.Errorf("%d left of 100, and %d granted to the repeat", left, a.Granted)
	}
}
