package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// of returns request i of many with different sets of fields.
func of(i int) *delivery.Request {
	r := post("a")
	r.Path, r.Body = fmt.Sprint("/", i), bytes.Repeat([]byte{byte(i)}, i%5*10)
	for n, has := range []func(){
		func() { r.Tenant, r.Owner, r.Correlation = "t", "o", fmt.Sprint(i) },
		func() { r.Expires = time.Now().Add(time.Hour + time.Duration(i)*time.Second) },
		func() { r.Key = fmt.Sprint(i) },
		func() { r.OrderKey, r.Stop = fmt.Sprint(i%3), true },
		func() { r.Query, r.Header = "q", http.Header{"I": {fmt.Sprint(i)}} },
		func() { r.Callback = "c" },
		func() { r.NotBefore = time.Now().Add(time.Minute) },
	} {
		if i>>5&(1<<n) != 0 { // requests with the same fields are consecutive
			has()
		}
	}
	return r
}

// Concurrent callers each get the result that they would get alone, for all combinations of fields and all batch sizes.
func TestManyAreStoredAtOnceEachAsItIs(t *testing.T) {
	bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
		const many = 32 << 7
		accepted, errs := make([]delivery.Delivery, many), make([]error, many)
		for from := 0; from < many; from += 200 {
			var callers []func()
			for i := from; i < min(from+200, many); i++ {
				callers = append(callers, func() {
					if i%32 < 16 {
						accepted[i], _, errs[i] = s.Accept(t.Context(), of(i))
					} else {
						accepted[i], _, errs[i] = s.AcceptBegun(t.Context(), of(i), delivery.Ask{Upstream: "a", Owner: "w", Lease: time.Minute})
					}
				})
			}
			s.Together(callers...)
		}
		for i, d := range accepted {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			got, err := s.Get(t.Context(), d.ID)
			if err != nil {
				t.Fatalf("%d: %v", i, err)
			}
			d.NotBefore, d.Stop = time.Time{}, false // these are not read back
			if len(d.Body) == 0 {
				d.Body = got.Body
			}
			if !d.Expires.IsZero() && d.Expires.Equal(got.Expires) {
				d.Expires = got.Expires
			}
			if !reflect.DeepEqual(got, d) || d.Path != fmt.Sprint("/", i) {
				t.Fatalf("%d was accepted as\n%+v and is\n%+v", i, d, got)
			}
			if d.Status != delivery.Processing {
				continue
			}
			if lost, err := s.End(t.Context(), delivery.End{Claim: d.Claim(), To: delivery.Completed}); err != nil || len(lost) > 0 {
				t.Fatalf("the end of %d: %v, %v", i, lost, err)
			}
		}
		sameCounts(t, s)
	})
}

// Two concurrent requests with the same key, or the same ID, are one delivery.
func TestTheSameComesTwiceAtOnce(t *testing.T) {
	bubble(t, sqlite.Options{}, func(t *testing.T, s *sqlite.Store) {
		var got [6]delivery.Delivery
		var errs [6]error
		var fresh [6]bool
		var callers []func()
		for i := range got {
			r := post("a")
			switch {
			case i < 3:
				r.Key = "k"
			default:
				r.ID = "dlv_1"
			}
			if i%3 == 2 {
				r.Path = "/other"
			}
			callers = append(callers, func() { got[i], fresh[i], errs[i] = s.Accept(t.Context(), r) })
		}
		s.Together(callers...)
		for i := 0; i < 6; i += 3 {
			if err := errors.Join(errs[i], errs[i+1]); err != nil || !fresh[i] || fresh[i+1] || got[i].ID != got[i+1].ID || got[i].Seq != got[i+1].Seq {
				t.Errorf("%v: %v %v, %v %v", err, got[i].ID, fresh[i], got[i+1].ID, fresh[i+1])
			}
			if !errors.Is(errs[i+2], delivery.ErrKeyReused) {
				t.Errorf("another request under the same: %v", errs[i+2])
			}
		}
		sameCounts(t, s)
	})
}
