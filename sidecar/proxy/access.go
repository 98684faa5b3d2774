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

// An Access decides which callers are admitted, and which web pages may use the credentials that weir adds. The zero
// Access admits all callers on this machine and no pages of other sites.
type Access struct {
	Hosts   []string   // names for a loopback address, besides localhost and the hosts of routes
	Origins []string   // of pages whose requests may use weir's credentials: https://app.example
	Auth    *auth.Auth // which callers are admitted; nil means all
	Open    bool       // unauthenticated callers on other machines may use weir's credentials

	// ConnLimit limits the requests in flight. Nil means no limit.
	ConnLimit *connlimit.Limiter

	// Refused is called with the reason of each refusal. It may be nil.
	Refused func(Why)

	// LacksKey is called for each request that is refused because it has no value for a required scope of callers, with
	// its ID and the text of the refusal. It may be nil.
	LacksKey func(id, upstream, scope, text string)
}

// A Why is the reason why weir refused a request before contacting an upstream.
type Why string

const (
	wrongForm   Why = "form"      // it cannot be forwarded
	wrongHost   Why = "host"      // its host is not one of weir's
	noCaller    Why = "caller"    // it does not identify its caller
	notTheirs   Why = "upstream"  // the caller may not use the upstream
	wrongOrigin Why = "origin"    // a browser sent it for a page of another site
	elsewhere   Why = "remote"    // it came from another machine, and weir would add its credentials
	undeclared  Why = "operation" // its operation is not declared, and the upstream accepts only declared ones
	lacksKey    Why = "key"       // it has no value for a scope that callers must have
)

// Whys lists all reasons.
var Whys = []Why{wrongForm, wrongHost, noCaller, notTheirs, wrongOrigin, elsewhere, undeclared, lacksKey}

// A guest is the caller of an admitted request. Shown lists the places of its tokens, one of which may be inQuery.
type guest httpx.Caller

// TokenHeader is the header for a caller's token if the caller needs the API key headers for another key.
const TokenHeader = "X-Weir-Token"

// enter identifies the caller, or returns the refusal of an unknown one.
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
	for place, secret := range presented(r) { // check all places: a client may send its token in several places
		name, ok := d.Auth.Whose(secret)
		if !ok && d.Auth.Issued != nil && d.Auth.Issued.Looks(secret) {
			var who auth.Identity
			who, wrong = d.Auth.Issued.Check(r.Context(), secret)
			if name, ok = auth.IssuedPrefix+who.Subject, wrong == nil; ok && len(g.Shown) == 0 { // the scopes belong to the first token, as the name does
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

// stranger refuses a request of an unknown caller.
func (d *Access) stranger(w http.ResponseWriter, f *refuse.Facts) {
	if f.RetryAfter(w.Header()); f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if d.Auth.ClientCAs != nil {
		w.Header().Set("Connection", "close") // a new connection may present another certificate
	}
	d.refuse(w, noCaller, f)
}

// turnedAway returns the refusal for a request without a token, or with an invalid one.
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

// inQuery is the place of a token in the query parameter key.
const inQuery = "?key"

// presented yields possible tokens, each with its header or parameter.
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

// bare returns the secret in a header value: the part after Bearer, or the access key ID of an AWS signature. weir
// cannot check the signature, but treats the ID as a secret token.
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

// hide removes weir's tokens from an outgoing request.
func (g guest) hide(h http.Header, at *url.URL) {
	for _, place := range g.Shown {
		if place == inQuery {
			at.RawQuery = withoutKey(at.RawQuery)
		} else {
			h.Del(place)
		}
	}
}

// withoutKey removes the parameter key from a raw query. Other parameters are unchanged.
func withoutKey(raw string) string {
	parts := slices.DeleteFunc(strings.Split(raw, "&"), func(part string) bool {
		name, _, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		return err == nil && plain == "key"
	})
	return strings.Join(parts, "&")
}

// admit returns why a guest may not use an upstream, or nil if it may.
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
			Message: "weir adds its credentials to these requests, so callers on other machines must authenticate: configure tokens, jwt or client_ca, or set open: true"}
	}
	return "", nil
}

// may returns an error if the rights of the guest's token do not include the upstream.
func (d *Access) may(g guest, upstream string) error {
	if strings.HasPrefix(g.Name, auth.IssuedPrefix) {
		return d.Auth.MayBy(g.Name, g.Scopes, upstream)
	}
	return d.Auth.May(g.Name, upstream)
}

// take reserves a slot for a guest's request, or returns a refusal. leave releases the slot.
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

// room returns where a low-priority request waits, or nil if there is no limit.
func (t *trip) room() *connlimit.Room {
	if c := t.table.access.ConnLimit; c != nil {
		return &connlimit.Room{Limiter: c, Caller: t.who.caller(t.came)}
	}
	return nil
}

// A waitingRoom is a trip as a weir.WaitingRoom. It allocates its room only when a call waits.
type waitingRoom trip

var _ weir.WaitingRoom = (*waitingRoom)(nil)

// Enter reports whether the request may wait.
func (t *waitingRoom) Enter() bool { return (*trip)(t).room().Enter() }

// Leave ends the wait.
func (t *waitingRoom) Leave() { (*trip)(t).room().Leave() }

// caller returns the guest's name, or its address if it has no name.
func (g guest) caller(r *http.Request) string {
	if g.Name != "" {
		return g.Name
	}
	return connlimit.Address(r.RemoteAddr)
}

// refuse reports and answers a refused request.
func (d *Access) refuse(w http.ResponseWriter, why Why, f *refuse.Facts) {
	d.tell(why)
	f.Write(w)
}

func (d *Access) tell(why Why) {
	if d.Refused != nil {
		d.Refused(why)
	}
}
