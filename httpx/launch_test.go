package httpx_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/outcome"
)

type sends func(*http.Request) (*http.Response, error)

func (f sends) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var errNotHad = unsentError{errors.New("its body cannot be read")}

type unsentError struct{ error }

func (unsentError) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Canceled, Code: "not sent", Undone: true, Unsent: true}
}

// A launch may take long, for instance to fetch the body. That does not count for the attempt's timeout, and a launch that then
// fails does not count against the upstream.
func TestALaunchTakesNoneOfTheAttemptsTime(t *testing.T) {
	for name, body := range map[string]string{"without a body": "", "with a body": "x"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u, err := weir.New("u", weir.Policy{Timeouts: weir.Timeouts{Attempt: 10 * sec}}, weir.Options{})
				if err != nil {
					t.Fatal(err)
				}
				var sent time.Duration
				tr := httpx.NewTransport(u, sends(func(r *http.Request) (*http.Response, error) {
					begin := time.Now()
					<-r.Context().Done()
					sent = time.Since(begin)
					return nil, r.Context().Err()
				}))
				launch := func(fails error) (trace weir.Trace) {
					ctx := httpx.WithLaunch(weir.Once(httpx.WithTrace(t.Context(), &trace)), func(context.CancelCauseFunc) error {
						time.Sleep(time.Minute)
						return fails
					})
					r, _ := http.NewRequestWithContext(ctx, "POST", "http://u.example/", strings.NewReader(body))
					if _, err := tr.RoundTrip(r); err == nil {
						t.Error("there is an answer")
					}
					return trace
				}
				if o := launch(nil).Outcome; sent != 10*sec || o.Class != outcome.Failed {
					t.Errorf("the attempt had %v and ended as %+v, want 10s", sent, o)
				}
				if o := launch(errNotHad).Outcome; o.Class != outcome.Canceled || !o.Unsent {
					t.Errorf("a launch that failed after the attempt's time is %+v", o)
				}
			})
		})
	}
}
