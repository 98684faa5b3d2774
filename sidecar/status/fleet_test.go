package status

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// gone is a store that does not answer.
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
		defer func() { _ = f.Close(t.Context()) }() // it cannot say that it leaves
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
