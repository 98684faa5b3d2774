package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/auth"
)

// A checker accepts tokens of the form eyJ.SUBJECT.SCOPE.
type checker struct{}

func (checker) Looks(token string) bool { return strings.HasPrefix(token, "eyJ.") }

func (checker) Check(_ context.Context, token string) (auth.Identity, error) {
	switch who := strings.Split(token, "."); who[1] {
	case "away":
		return auth.Identity{}, fmt.Errorf("the token cannot be checked: %w", auth.ErrUnknowable)
	case "bad":
		return auth.Identity{}, errors.New("the token is not valid")
	default:
		return auth.Identity{Subject: who[1], Scopes: who[2:]}, nil
	}
}

// An unknown caller gets 401, a forbidden one 403, and a caller that cannot be checked at the moment 503. No token is
// forwarded.
func TestTokensOfOthersToldApart(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get(TokenHeader) != "" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer api.Close()
	p := newProxy(t, up(api.URL, brisk()))
	access := Access{Auth: &auth.Auth{
		Tokens: []auth.Token{{Name: "app", SHA256: auth.Hash("0123456789abcdef")}},
		Issued: checker{}, Scopes: map[string]string{"up": "write"},
	}}
	if err := p.SetAll(access, []Upstream{up(api.URL, brisk())}); err != nil {
		t.Fatal(err)
	}
	at := "http://" + listen(t, p)
	for _, c := range []struct {
		authorization, own string
		status             int
		code, fault        string
	}{
		{"Bearer eyJ.ada.write", "", 200, "", ""},
		{"Bearer eyJ.ada.read.write", "", 200, "", ""},
		{"Bearer 0123456789abcdef", "", 200, "", ""},
		{"", "eyJ.ada.write", 200, "", ""},
		{"Bearer eyJ.ada.read", "", 403, "FORBIDDEN", "permanent"},
		{"Bearer eyJ.ada", "", 403, "FORBIDDEN", "permanent"},
		{"Bearer eyJ.eve.write", "eyJ.ada.read", 403, "FORBIDDEN", "permanent"}, // the scopes of one token do not apply to another
		{"Bearer eyJ.bad", "", 401, "UNAUTHORIZED", "permanent"},
		{"Bearer other", "", 401, "UNAUTHORIZED", "permanent"},
		{"", "", 401, "UNAUTHORIZED", "permanent"},
		{"Bearer eyJ.away", "", 503, "SERVICE_UNAVAILABLE", "system"},
	} {
		r, err := http.NewRequest(http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string]string{"Authorization": c.authorization, TokenHeader: c.own} {
			if v != "" {
				r.Header.Set(name, v)
			}
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 1000)
		n, _ := resp.Body.Read(body)
		_ = resp.Body.Close()
		asks := resp.Header.Get("Www-Authenticate") == "Bearer"
		if resp.StatusCode != c.status || !strings.Contains(string(body[:n]), c.code) || resp.Header.Get("X-Weir-Fault") != c.fault || asks != (c.status == 401) || (resp.Header.Get("Retry-After") != "") != (c.status == 503) {
			t.Errorf("%q %q: %d %s %v", c.authorization, c.own, resp.StatusCode, body[:n], resp.Header)
		}
	}
}

// nowhere is an Accepter without deliveries.
type nowhere struct{ Accepter }

// Requests about deliveries get the same responses: 503 while tokens cannot be checked.
func TestTokensOfOthersAtDeliveries(t *testing.T) {
	p := newProxy(t, up("http://127.0.0.1:1", brisk()))
	if err := p.SetAll(Access{Auth: &auth.Auth{Issued: checker{}}}, []Upstream{up("http://127.0.0.1:1", brisk())}); err != nil {
		t.Fatal(err)
	}
	p.Later(nowhere{})
	for token, status := range map[string]int{"eyJ.away": 503, "eyJ.bad": 401} {
		r := httptest.NewRequest(http.MethodGet, DeliveriesPath+"1", nil)
		r.Host = "localhost"
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		h := w.Header()
		if w.Code != status || (h.Get("Retry-After") != "") != (status == 503) || (h.Get("WWW-Authenticate") != "") != (status == 401) {
			t.Errorf("%s: %d %v", token, w.Code, h)
		}
	}
}
