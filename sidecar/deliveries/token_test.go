package deliveries

import (
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// A redrive does not silently replace the rights of a caller's token after its expiry. Only an operator with
// token_ended redrives such a delivery.
func TestARedriveAfterTheTokenHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "d.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		end := time.Now().Add(time.Hour)
		accept := func(ends time.Time) string {
			d, _, err := s.Accept(t.Context(), &delivery.Request{Upstream: "a", Owner: "ann", Method: "POST", Path: "/", Expires: end, TokenEnds: ends})
			if err != nil {
				t.Fatal(err)
			}
			return d.ID
		}
		ended, other := accept(end), accept(time.Time{})
		time.Sleep(2 * time.Hour)
		if _, err := s.Sweep(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		ask := func(who Caller, path, body string, status int, want string) {
			t.Helper()
			w := httptest.NewRecorder()
			API{Queue: s}.Serve(w, httptest.NewRequest("POST", Path+path, strings.NewReader(body)), path, who)
			if w.Code != status || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%+v %s %s: %d %s, want %d and %q", who, path, body, w.Code, w.Body, status, want)
			}
		}
		is := func(id string, want delivery.Status) {
			t.Helper()
			if d, err := s.Get(t.Context(), id); err != nil || d.Status != want {
				t.Errorf("%s is %s, want %s; %v", id, d.Status, want, err)
			}
		}
		ann, people := Caller{Name: "ann"}, Caller{Operator: true}
		for _, who := range []Caller{ann, people} {
			ask(who, "/"+ended+"/redrive", "", 409, "token expired at")
			ask(who, "/redrive", `{"ids":["`+ended+`"]}`, 200, "some were skipped")
			ask(who, "/"+ended+"/redrive", `{"upstream":"a"}`, 400, "the path already names one")
			ask(who, "/"+ended+"/drop", `{"token_ended":true}`, 400, "token_ended")
			ask(who, "/drop", `{"ids":["`+ended+`"],"token_ended":true}`, 400, "token_ended")
		}
		ask(ann, "/"+ended+"/redrive", `{"token_ended":true}`, 403, "only operators")
		ask(ann, "/redrive", `{"reason":"expired","token_ended":true}`, 403, "only operators")
		is(ended, delivery.Failed)
		ask(people, "/redrive", `{"all":true}`, 200, `"changed":1`)
		is(ended, delivery.Failed)
		is(other, delivery.Queued)
		ask(people, "/"+ended+"/redrive", `{"token_ended":true}`, 200, `"changed":1`)
		is(ended, delivery.Queued)
		w := httptest.NewRecorder()
		API{Queue: s}.Serve(w, httptest.NewRequest("GET", Path+"/"+ended, nil), "/"+ended, ann)
		var shown Whole
		if err := json.Unmarshal(w.Body.Bytes(), &shown); err != nil || !shown.TokenEnds.Equal(end) || !shown.Expires.IsZero() {
			t.Errorf("shown as %s; %v", w.Body, err)
		}
	})
}
