package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/hosts"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
)

// An Access says who may come in, and which pages may use what weir adds to requests. The
// zero Access lets everyone in who is on this machine, and pages of no other site.
type Access struct {
	Hosts   []string   // names of a loopback address, besides localhost and the hosts of routes
	Origins []string   // of pages whose requests may use weir's credentials: https://app.example
	Auth    *auth.Auth // who may call; nil means everyone
	Open    bool       // lets callers from elsewhere use weir's credentials although nobody knows them

	// ConnLimit bounds the requests in flight; nil means any number.
	ConnLimit *connlimit.Limiter

	// Refused hears why a request was turned away; nil means unheard.
	Refused func(Why)
}

// A Why is why a request was turned away before anything was asked of an upstream.
type Why string

const (
	wrongForm   Why = "form"      // it is none that can be sent on
	wrongHost   Why = "host"      // it is meant for somebody else
	noCaller    Why = "caller"    // it does not say who calls
	notTheirs   Why = "upstream"  // the caller may not use the upstream
	wrongOrigin Why = "origin"    // a browser sent it for a page of another site
	elsewhere   Why = "remote"    // it came from another machine, and weir would add its credentials
	undeclared  Why = "operation" // it is of no operation that is declared, and the upstream is closed to others
)

// Whys are all of them.
var Whys = []Why{wrongForm, wrongHost, noCaller, notTheirs, wrongOrigin, elsewhere, undeclared}

// A guest is the caller of a request that was let in. What it has shown may be in the query, too: inQuery.
type guest httpx.Caller

// TokenHeader is where a caller shows its token that has another use for the headers of
// API keys.
const TokenHeader = "X-Weir-Token"

// enter says who calls, or why nobody knows.
func (d *Access) enter(r *http.Request) (g guest, f *refuse.Facts) {
	if d.Auth.Open() {
		return g, nil
	}
	if d.Auth.ClientCAs != nil {
		name, err := d.Auth.Certified(r.TLS)
		if err != nil {
			return g, &refuse.Facts{Status: http.StatusUnauthorized, Code: refuse.Unauthorized, Message: err.Error(), Final: true}
		}
		g.Name = name
	}
	if len(d.Auth.Tokens) == 0 && d.Auth.Issued == nil {
		return g, nil
	}
	var wrong error
	for place, secret := range presented(r) { // all of them: a client may show its token at several places
		name, ok := d.Auth.Whose(secret)
		if !ok && d.Auth.Issued != nil && d.Auth.Issued.Looks(secret) {
			var who auth.Identity
			who, wrong = d.Auth.Issued.Check(r.Context(), secret)
			if name, ok = auth.IssuedPrefix+who.Subject, wrong == nil; ok && len(g.Shown) == 0 { // scopes are of whose name counts
				g.Scopes = who.Scopes
			}
		}
		if !ok {
			continue
		}
		if len(g.Shown) == 0 {
			g.Name = name
		}
		g.Shown = append(g.Shown, place)
	}
	if len(g.Shown) > 0 {
		return g, nil
	}
	return g, turnedAway(wrong)
}

// stranger refuses a request of which nobody knows who sent it.
func (d *Access) stranger(w http.ResponseWriter, f *refuse.Facts) {
	if f.RetryAfter(w.Header()); f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if d.Auth.ClientCAs != nil {
		w.Header().Set("Connection", "close") // a new connection may show another certificate
	}
	d.refuse(w, noCaller, f)
}

// turnedAway is what a caller is told that has shown no token, or one that is wrong.
func turnedAway(wrong error) *refuse.Facts {
	switch {
	case errors.Is(wrong, auth.ErrUnknowable):
		return &refuse.Facts{Status: http.StatusServiceUnavailable, Code: refuse.ServiceUnavailable, Wait: 5 * time.Second, Fault: outcome.System, Message: wrong.Error()}
	case wrong != nil:
		return &refuse.Facts{Status: http.StatusUnauthorized, Code: refuse.Unauthorized, Final: true, Message: wrong.Error()}
	}
	return &refuse.Facts{Status: http.StatusUnauthorized, Code: refuse.Unauthorized, Final: true,
		Message: "the request has no valid token: send one as the API key, as the AWS access key ID, or in " + TokenHeader}
}

// inQuery is the place of a token that is the parameter key.
const inQuery = "?key"

// presented yields what could be a token, with the header or the parameter that it is in.
func presented(r *http.Request) func(yield func(place, secret string) bool) {
	return func(yield func(string, string) bool) {
		for _, name := range []string{TokenHeader, "Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
			for _, v := range r.Header[name] {
				if v != "" && !yield(name, bare(v)) {
					return
				}
			}
		}
		if !strings.Contains(r.URL.RawQuery, "=") {
			return
		}
		for _, v := range r.URL.Query()["key"] {
			if v != "" && !yield(inQuery, v) {
				return
			}
		}
	}
}

// bare is the secret in the value of a header: what follows Bearer, or the access key id of a
// signature of AWS, which cannot be checked but is as secret as a token is.
func bare(v string) string {
	scheme, rest, _ := strings.Cut(v, " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return strings.TrimSpace(rest)
	case scheme == "AWS4-HMAC-SHA256":
		_, id, _ := strings.Cut(rest, "Credential=")
		id, _, _ = strings.Cut(id, ",")
		for range 4 { // DAY/REGION/SERVICE/aws4_request
			id = id[:max(0, strings.LastIndexByte(id, '/'))]
		}
		return id
	}
	return v
}

// hide takes every token of weir's out of what is sent on.
func (g guest) hide(h http.Header, at *url.URL) {
	for _, place := range g.Shown {
		if place == inQuery {
			at.RawQuery = withoutKey(at.RawQuery)
		} else {
			h.Del(place)
		}
	}
}

// withoutKey is a raw query without the parameter key; the others stay as they are.
func withoutKey(raw string) string {
	parts := slices.DeleteFunc(strings.Split(raw, "&"), func(part string) bool {
		name, _, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		return err == nil && plain == "key"
	})
	return strings.Join(parts, "&")
}

// admit says why a guest may not use an upstream, nil if it may.
func (d *Access) admit(r *http.Request, g guest, to *target) (Why, *refuse.Facts) {
	if err := d.may(g, to.Name); err != nil {
		return notTheirs, &refuse.Facts{Status: http.StatusForbidden, Code: refuse.Forbidden, Message: err.Error(), Final: true}
	}
	if name := to.ambiguous(r); name != "" {
		return wrongForm, &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Final: true,
			Message: fmt.Sprintf("the parameter %s is in the query more than once or in another spelling, or the query is invalid: weir counts callers by it, and the upstream might read another value", doc.Quote(name)), Details: map[string]any{"field": name, "reason": "more than once"}}
	}
	if !to.Credentials {
		return "", nil
	}
	if echoes(r.Method) {
		return wrongForm, &refuse.Facts{Status: http.StatusMethodNotAllowed, Code: refuse.ValidationError, Final: true,
			Message: r.Method + " returns the request that the server received, which would contain weir's credentials"}
	}
	if hosts.Foreign(r, d.Origins) {
		return wrongOrigin, &refuse.Facts{Status: http.StatusForbidden, Code: refuse.Forbidden, Final: true,
			Message: fmt.Sprintf("a browser sent this request for a page of another site (Origin %s), and weir would add its credentials; to allow it, add the origin to origins", doc.Quote(r.Header.Get("Origin")))}
	}
	if d.Auth.Open() && !d.Open && !to.Identifies && auth.Remote(r) {
		return elsewhere, &refuse.Facts{Status: http.StatusForbidden, Code: refuse.Forbidden, Final: true,
			Message: "weir adds its credentials to these requests, so callers on other machines must authenticate: configure tokens, jwt, client_ca or callers with claims, or set open: true"}
	}
	return "", nil
}

// may says why a guest may not use an upstream, by the rights of its token.
func (d *Access) may(g guest, upstream string) error {
	if strings.HasPrefix(g.Name, auth.IssuedPrefix) {
		return d.Auth.MayBy(g.Name, g.Scopes, upstream)
	}
	return d.Auth.May(g.Name, upstream)
}

// take takes a place for the request of a guest, or says that there is none. leave gives it back.
func (d *Access) take(r *http.Request, g guest) *refuse.Facts {
	if d.ConnLimit == nil {
		return nil
	}
	why := d.ConnLimit.Enter(g.caller(r), g.Name != "", r.ProtoMajor > 1)
	if why == "" {
		return nil
	}
	return &refuse.Facts{Status: http.StatusServiceUnavailable, Code: refuse.ServiceUnavailable, Wait: time.Second,
		Message: "too many requests are in flight (" + connlimit.Field(why) + ")"}
}

func (d *Access) leave(r *http.Request, g guest) {
	if d.ConnLimit != nil {
		d.ConnLimit.Leave(g.caller(r), g.Name != "", r.ProtoMajor > 1)
	}
}

// room returns where the request waits at low priority; nil if nothing bounds that.
func (t *trip) room() *connlimit.Room {
	if c := t.table.access.ConnLimit; c != nil {
		return &connlimit.Room{Limiter: c, Caller: t.who.caller(t.came)}
	}
	return nil
}

// A waitingRoom is the room of a trip, for the upstream's calls: those that never wait allocate nothing.
type waitingRoom trip

var _ weir.WaitingRoom = (*waitingRoom)(nil)

// Enter reports whether the request may wait.
func (t *waitingRoom) Enter() bool { return (*trip)(t).room().Enter() }

// Leave ends the wait.
func (t *waitingRoom) Leave() { (*trip)(t).room().Leave() }

// caller is whose request it is: by its name, or its address if it has none.
func (g guest) caller(r *http.Request) string {
	if g.Name != "" {
		return g.Name
	}
	return connlimit.Address(r.RemoteAddr)
}

// refuse tells of a request that is turned away.
func (d *Access) refuse(w http.ResponseWriter, why Why, f *refuse.Facts) {
	d.tell(why)
	f.Write(w)
}

func (d *Access) tell(why Why) {
	if d.Refused != nil {
		d.Refused(why)
	}
}
