package deliveries

import (
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// A single delivery is shown with the data to send, but without credentials, and with the beginning of a large body.
func TestOneDeliveryIsShownWhole(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "d.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	show := func(query string, header map[string][]string, body string) (w Whole) {
		t.Helper()
		d, _, err := s.Accept(t.Context(), &delivery.Request{Upstream: "a", Method: "POST", Path: "/x", Query: query, Header: header, Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRecorder()
		API{Queue: s}.Serve(r, httptest.NewRequest("GET", Path+"/"+d.ID, nil), "/"+d.ID, Caller{})
		if err := json.Unmarshal(r.Body.Bytes(), &w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := show("day=1&access_token=s3&x%2Dapi%2Dkey=s3&%zz=s3&plain", map[string][]string{"Title": {"done", "twice"}, "Authorization": {"Bearer s3", "s3"}}, "build 81")
	if w.Query != "day=1&access_token=(hidden)&x%2Dapi%2Dkey=(hidden)&%zz=(hidden)&plain" {
		t.Errorf("query %q", w.Query)
	}
	if want := map[string][]string{"Title": {"done", "twice"}, "Authorization": {"(hidden)"}}; !reflect.DeepEqual(w.Header, want) {
		t.Errorf("headers %v", w.Header)
	}
	if w.Body != "build 81" || w.Longer || w.Bytes != 8 {
		t.Errorf("body %q %t %d", w.Body, w.Longer, w.Bytes)
	}
	long := strings.Repeat("x", shownBody-1) + "ä"
	if w = show("", nil, long); w.Body != long[:shownBody-1] || !w.Longer || w.BodyStart != nil || w.Bytes != shownBody+1 {
		t.Errorf("of %d bytes %d are shown, %d raw, longer %t", w.Bytes, len(w.Body), len(w.BodyStart), w.Longer)
	}
	if w = show("", nil, "\xff\x00"); w.Body != "" || string(w.BodyStart) != "\xff\x00" || w.Longer {
		t.Errorf("%+v", w)
	}
	if w = show("", nil, "cut \xc3"); w.Body != "" || string(w.BodyStart) != "cut \xc3" {
		t.Errorf("%+v", w)
	}
}
