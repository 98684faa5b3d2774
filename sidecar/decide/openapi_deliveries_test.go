package decide

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/deliveries"
)

// letters are deliveries of the caller ann, whose submissions can fail with away.
type letters struct {
	*sqlite.Store
	t    *testing.T
	away error
	n    int
}

func (q *letters) List(ctx context.Context, f delivery.Filter, cursor string, most int) ([]delivery.Delivery, string, error) {
	if q.away != nil {
		return nil, "", q.away
	}
	return q.Store.List(ctx, f, cursor, most)
}

func (q *letters) Get(ctx context.Context, id string) (delivery.Delivery, error) {
	if q.away != nil {
		return delivery.Delivery{}, q.away
	}
	return q.Store.Get(ctx, id)
}

func (q *letters) Redrive(ctx context.Context, f delivery.Filter, most int) (int, error) {
	if q.away != nil {
		return 0, q.away
	}
	return q.Store.Redrive(ctx, f, most)
}

func (q *letters) Drop(ctx context.Context, f delivery.Filter, most int) (int, error) {
	if q.away != nil {
		return 0, q.away
	}
	return q.Store.Drop(ctx, f, most)
}

// add submits a request with every possible field.
func (q *letters) add(upstream, order, body string) string {
	q.t.Helper()
	q.n++
	end := time.Now().Add(time.Hour)
	d, _, err := q.Accept(q.t.Context(), &delivery.Request{
		Upstream: upstream, Tenant: "ann", Owner: "ann", Method: "POST", Path: "/x", Query: "q=1", Header: http.Header{"Title": {"t"}}, Body: []byte(body),
		Key: fmt.Sprint("key", q.n), OrderKey: order, Correlation: "c1", Callback: "app", Tells: "another", Expires: end, TokenEnds: end,
	})
	if err != nil {
		q.t.Fatal(err)
	}
	return d.ID
}

// ends lets a delivery attempt end with a status. With status "" the delivery continues.
func (q *letters) ends(id string, to delivery.Status, why delivery.Reason, answer string) {
	q.t.Helper()
	d, err := q.Store.Get(q.t.Context(), id)
	if err != nil {
		q.t.Fatal(err)
	}
	all, err := q.Claim(q.t.Context(), delivery.Ask{Upstream: d.Upstream, Only: []int64{d.Seq}, Lease: time.Hour})
	if err != nil || len(all) != 1 {
		q.t.Fatal(all, err)
	}
	if to == "" {
		return
	}
	a := &delivery.Attempt{N: all[0].Starts, Series: 1, Began: time.Now(), Took: time.Second, Status: 500, Class: outcome.Failed, Code: "Broken", Answer: []byte(answer), Counted: true}
	if lost, err := q.End(q.t.Context(), delivery.End{Claim: all[0].Claim(), To: to, Reason: why, Detail: "in words", Attempt: a}); err != nil || len(lost) > 0 {
		q.t.Fatal(lost, err)
	}
}

// The OpenAPI file matches the delivery handlers in every field and every enumeration value.
func TestTheFileTellsOfDeliveries(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "d.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	q := &letters{Store: store, t: t}
	s := server(t)
	s.Auth = func() *auth.Auth {
		return &auth.Auth{Tokens: []auth.Token{{Name: "ann", SHA256: auth.Hash("a-secret-of-the-test")}}}
	}
	s.Deliveries = func(w http.ResponseWriter, r *http.Request, rest, caller string) {
		deliveries.API{Queue: q}.Serve(w, r, rest, deliveries.Caller{Name: caller})
	}
	h, seen := s.Handler(), newCoverage()
	do := func(method, target, body string, status int, code string, header ...string) {
		t.Helper()
		if len(header) == 0 {
			header = []string{"Authorization: Bearer a-secret-of-the-test"}
		}
		a := ask(t, h, method, "/v1/deliveries"+target, body, header...)
		if a.Code != status || a.Error.Code != code {
			t.Errorf("%s %s %s: got %d %s, want %d %s", method, target, body, a.Code, a.Body, status, code)
		}
		seen.add(t, exchange{method: method, target: "/v1/deliveries" + target, body: body}, a)
	}
	one := make(map[string]string)
	for _, why := range delivery.Reasons {
		id := q.add("a", "", "text")
		q.ends(id, delivery.Failed, why, "answer")
		one[string(why)] = id
	}
	one["queued"] = q.add("a", "k", strings.Repeat("x", 5<<10))
	one["created"] = q.add("a", "k", "\xff")
	one["processing"] = q.add("a", "", "")
	q.ends(one["processing"], "", "", "")
	one["completed"] = q.add("a", "", "text")
	q.ends(one["completed"], delivery.Completed, "", "\xff")
	for _, id := range one {
		do("GET", "/"+id, "", 200, "")
	}
	before := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	do("GET", "", "", 200, "")
	do("GET", "?upstream=a&status=failed&reason=rejected&owner=ann&older=0s&oldest=false&id="+one["rejected"]+"&id="+one["dropped"], "", 200, "")
	page, next, err := q.List(t.Context(), delivery.Filter{Owner: "ann"}, "", 2)
	if err != nil || len(page) != 2 || next == "" {
		t.Fatal(page, next, err)
	}
	do("GET", "?limit=2&cursor="+next, "", 200, "")
	do("GET", "?before="+before, "", 200, "")
	do("POST", "/"+one["rejected"]+"/redrive", "{}", 200, "")
	do("POST", "/"+one["dropped"]+"/drop", "", 200, "")
	do("POST", "/redrive", `{"ids":["`+one["attempts"]+`"],"upstream":"a","reason":"attempts","owner":"ann","before":"`+before+`","most":1}`, 200, "")
	for _, why := range delivery.Reasons {
		do("POST", "/redrive", `{"reason":"`+string(why)+`","older":"1h"}`, 200, "")
		do("POST", "/drop", `{"reason":"`+string(why)+`","older":"1h"}`, 200, "")
	}
	for _, status := range []string{"created", "queued", "failed"} {
		do("POST", "/drop", `{"ids":["`+one["expired"]+`"],"upstream":"a","reason":"expired","owner":"ann","status":"`+status+`","before":"`+before+`","most":1}`, 200, "")
	}
	do("POST", "/redrive", `{"all":true}`, 200, "")
	do("POST", "/drop", `{"all":true}`, 200, "")

	do("GET", "?color=red", "", 400, refuse.ValidationError)
	do("GET", "?owner=bob", "", 403, refuse.Forbidden)
	do("POST", "/redrive", "{}", 400, refuse.ValidationError)
	do("POST", "/drop", "{}", 400, refuse.ValidationError)
	do("POST", "/redrive", `{"owner":"bob"}`, 403, refuse.Forbidden)
	do("POST", "/drop", `{"owner":"bob"}`, 403, refuse.Forbidden)
	id := one["completed"]
	do("POST", "/"+id+"/redrive", `{"token_ended":true}`, 403, refuse.Forbidden)
	for _, what := range []string{"redrive", "drop"} {
		do("POST", "/"+id+"/"+what, `{"all":true}`, 400, refuse.ValidationError)
		do("POST", "/"+id+"/"+what, "", 409, "CONFLICT")
		do("POST", "/nobody/"+what, "", 404, "DELIVERY_NOT_FOUND")
	}
	do("GET", "/nobody", "", 404, "DELIVERY_NOT_FOUND")
	all := map[string]string{"": "", "/" + id: "", "/" + id + "/redrive": "{}", "/" + id + "/drop": "{}", "/redrive": `{"all":true}`, "/drop": `{"all":true}`}
	for target, body := range all {
		method := "POST"
		if body == "" {
			method = "GET"
		}
		q.away = errors.New("the disk is gone")
		do(method, target, body, 503, refuse.ServiceUnavailable)
		q.away = nil
		do(method, target, body, 401, refuse.Unauthorized, "Authorization: Bearer no")
		do(method, target, body, 421, refuse.ValidationError, "Host: evil.example")
	}
	seen.complete(t, func(path string) bool { return strings.HasPrefix(path, deliveriesPath) })
}
