package sqlite_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// One call holds a key at a time. Another takes it over after the first one's deadline, and the holder's response is
// stored. The key is forgotten after a month.
func TestKeysOfDirectCalls(t *testing.T) {
	bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
		call := func(id string) *delivery.Keyed {
			return &delivery.Keyed{Upstream: "a", Tenant: "t", Key: "k", Print: []byte("print"), Call: id, Until: time.Now().Add(time.Minute)}
		}
		begins := func(id string, want delivery.KeptState) delivery.Kept {
			t.Helper()
			got, err := s.Begin(t.Context(), call(id))
			if err != nil || got.State != want {
				t.Fatalf("%s: %+v, %v; want %d", id, got, err, want)
			}
			return got
		}
		ends := func(id string, how delivery.Finish, status int) {
			t.Helper()
			if err := s.Finish(t.Context(), call(id), how, &delivery.KeptAnswer{Status: status, Header: http.Header{"X-A": {id}}, Body: []byte(id)}); err != nil {
				t.Fatal(err)
			}
		}
		begins("first", delivery.FirstCall)
		begins("second", delivery.UnderWay)
		ends("second", delivery.NotMade, 0) // it was never sent
		begins("third", delivery.UnderWay)
		ends("first", delivery.NotMade, 0)
		begins("fourth", delivery.FirstCall)
		time.Sleep(2 * time.Minute)
		begins("fifth", delivery.Unknown)
		begins("sixth", delivery.UnderWay)
		ends("fourth", delivery.KeepFirst, 200) // too late
		begins("sixth", delivery.UnderWay)
		ends("fifth", delivery.Doubtful, 0)
		begins("seventh", delivery.Unknown)
		ends("seventh", delivery.KeepFirst, 201)
		if a := begins("eighth", delivery.Answered).Answer; a.Status != 201 || a.Header.Get("X-A") != "seventh" || string(a.Body) != "seventh" {
			t.Errorf("%+v", a)
		}
		ends("eighth", delivery.NotMade, 0)
		begins("ninth", delivery.Answered)
		other := call("other")
		other.Print = []byte("another")
		if _, err := s.Begin(t.Context(), other); !errors.Is(err, delivery.ErrKeyReused) {
			t.Errorf("another request: %v", err)
		}
		other.Tenant = "u"
		if got, err := s.Begin(t.Context(), other); err != nil || got.State != delivery.FirstCall {
			t.Errorf("another tenant: %+v, %v", got, err)
		}
		time.Sleep(31 * 24 * time.Hour)
		if _, err := s.Sweep(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		begins("tenth", delivery.FirstCall)
	})
}

// The key of a call that a former process had under way can be taken over immediately.
func TestCallsOfAWeirThatEnded(t *testing.T) {
	p := made(t)
	s := open(t, p, sqlite.Options{})
	k := &delivery.Keyed{Upstream: "a", Key: "k", Print: []byte("print"), Call: "first", Until: time.Now().Add(time.Hour)}
	if got, err := s.Begin(t.Context(), k); err != nil || got.State != delivery.FirstCall {
		t.Fatal(got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	k.Call = "second"
	if got, err := open(t, p, sqlite.Options{}).Begin(t.Context(), k); err != nil || got.State != delivery.Unknown {
		t.Errorf("%+v, %v", got, err)
	}
}
