package status

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// gone is a store that does not respond.
type gone struct{ fleet.Store }

func (gone) Take(context.Context, *fleet.Ask) error { return errors.New("no answer") }

func (gone) Beat(context.Context, *fleet.Beat) (fleet.Standing, error) {
	return fleet.Standing{}, errors.New("no answer")
}

func TestTheStatusTellsOfTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleet.New(gone{fleet.NewMemory(nil)}, fleet.Options{Client: "a"})
		u, err := weir.New("up", weir.Policy{Limits: []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 10, Per: time.Second}}}}, weir.Options{Fleet: f})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		p := &Page{
			Upstreams: func() map[string]*weir.Upstream { return map[string]*weir.Upstream{"up": u} },
			Fleet:     func() *Fleet { return FleetOf(f, "memory") },
		}
		if got := p.Report(t.Context()).Fleet; got.Store != "memory" || got.Client != "a" || got.Instances != 1 || got.AwayMS != 0 {
			t.Errorf("%+v", got)
		}
		f.Start()
		defer func() { _ = f.Close(t.Context()) }() // it cannot sign off
		for range 3 {
			if p, err := u.Acquire(t.Context(), weir.Call{}); err == nil {
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		}
		time.Sleep(3 * time.Second)
		w := httptest.NewRecorder()
		p.status(w, httptest.NewRequest("GET", "/v1/status", nil))
		var r Report
		if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Fleet == nil || r.Fleet.AwayMS != 0 || len(r.Fleet.Parts) != 1 || r.Fleet.Parts[0].State != "new" {
			t.Errorf("a store that has never been reached, which nobody goes on without: %s", w.Body)
		}
	})
}

// leased returns an upstream with a limit that a fleet shares and leases.
func leased(t *testing.T) *weir.Upstream {
	f := fleet.New(fleet.NewMemory(nil), fleet.Options{Lease: 250 * time.Millisecond})
	u, err := weir.New("up", weir.Policy{Limits: []limit.Limit{
		{Name: "shared", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}},
		{Name: "own", Local: true, Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}},
	}}, weir.Options{Fleet: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	return u
}

// A leased limit reports how much of its burst the store never grants at one time, in /v1/status and as text.
func TestWhatLeasesHoldBackIsTold(t *testing.T) {
	u := leased(t)
	p := &Page{Upstreams: func() map[string]*weir.Upstream { return map[string]*weir.Upstream{"up": u} }}
	w := httptest.NewRecorder()
	p.status(w, httptest.NewRequest("GET", "/v1/status", nil))
	var r Report
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Upstreams[0].Limits {
		want := map[string]int64{"shared": 26, "own": 0}[l.Name] // 25.0001 units, rounded up
		if l.HeldBack != want || l.Full != 100-want {
			t.Errorf("%s: %+v, want %d held back", l.Name, l, want)
		}
	}
	var text strings.Builder
	if err := Print(&text, r); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "74, 26 held back "); n != 1 {
		t.Errorf("said %d times in %s", n, text.String())
	}
}
