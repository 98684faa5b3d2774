// Package status shows a running weir to its operators: health, the state of limits and breakers as JSON, metrics,
// and manual controls. It is served by the admin listener, which is on loopback by default.
package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/runs"
)

// A Report is the state of a running weir.
type Report struct {
	Version    string      `json:"version"`
	Started    time.Time   `json:"started"`
	Draining   bool        `json:"draining"`
	Config     *Config     `json:"config,omitempty"`     // nil if there is no file
	Fleet      *Fleet      `json:"fleet,omitempty"`      // nil if nothing is shared
	Deliveries *Deliveries `json:"deliveries,omitempty"` // nil if deliveries are not configured
	Troubles   []Trouble   `json:"troubles,omitempty"`
	Upstreams  []Upstream  `json:"upstreams"`
}

// A Trouble is a condition that prevents weir from following its configuration.
type Trouble struct {
	With     string `json:"with"`
	Upstream string `json:"upstream,omitempty"` // the upstream that cannot be called; "" if all can be called
	Error    string `json:"error"`
	Help     string `json:"help"`

	Since time.Time `json:"since,omitzero"` // zero if unknown
}

// WithDeliveries is the subject of the problem report about the deliveries' store.
const WithDeliveries = "deliveries"

// An Upstream is the state of one upstream. Times are in milliseconds.
type Upstream struct {
	Name        string    `json:"name"`
	Limits      []Limit   `json:"limits"`
	Shadow      []Trial   `json:"shadow,omitempty"` // what limits with shadow would have done
	Breakers    []Breaker `json:"breakers"`
	RetriesLeft int64     `json:"retries_left"`
	Retries     *Retries  `json:"retries,omitempty"`      // nil if there were no retries, no failures and no open breakers
	Pauses      []Pause   `json:"pauses,omitempty"`       // the longest first
	PausesInAll int       `json:"pauses_known,omitempty"` // total number
	Flights     []Flight  `json:"in_flight,omitempty"`
	Model       *Model    `json:"model,omitempty"` // nil unless it is a language model
}

// A Breaker is the state of one breaker.
type Breaker struct {
	Key      string `json:"key,omitempty"`
	State    string `json:"state"`
	Why      string `json:"why,omitempty"`
	Failures int    `json:"failures"`
	WaitMS   int64  `json:"wait_ms"` // until a call may be tried; -1 if an operator must close it
	Forced   bool   `json:"forced,omitempty"`
}

// keysShown bounds how many keys of a limit are listed.
const keysShown = 20

// endless is longer than any breaker stays open by itself.
const endless = 10 * 366 * 24 * time.Hour

// stateOf returns the present state of an upstream.
func stateOf(u *weir.Upstream) Upstream {
	v := u.Look(keysShown)
	s := Upstream{Name: v.Name, RetriesLeft: v.RetriesLeft, Limits: []Limit{}, Breakers: []Breaker{}, Shadow: trialsOf(u)}
	for _, l := range v.Limits {
		s.Limits = append(s.Limits, limitOf(l))
	}
	slices.SortFunc(v.Breakers, func(a, b breaker.View) int { return strings.Compare(a.Key, b.Key) })
	for _, b := range v.Breakers {
		out := Breaker{Key: b.Key, State: b.Phase.String(), Failures: b.Failed, WaitMS: b.Wait.Milliseconds(), Forced: b.Held}
		if b.Wait > endless {
			out.WaitMS = -1
		}
		if b.Why != breaker.Unset {
			out.Why = b.Why.String()
		}
		s.Breakers = append(s.Breakers, out)
	}
	for _, f := range v.Flights {
		s.Flights = append(s.Flights, flightOf(f))
	}
	s.PausesInAll = v.Paused
	for i := range v.Pauses {
		s.Pauses = append(s.Pauses, pauseOf(&v.Pauses[i]))
	}
	return s
}

// A Page serves the admin API.
type Page struct {
	Version    string
	Started    time.Time
	Upstreams  func() map[string]*weir.Upstream
	Called     func() map[string]*weir.Upstream                // the upstreams that are really called, and do not only represent callers; nil means all
	Deliveries http.Handler                                    // serves operators' requests about deliveries; nil if deliveries are not configured
	Counts     func(context.Context) ([]delivery.Count, error) // the numbers of deliveries by upstream; nil if deliveries are not configured
	Letters    Kept                                            // the queue, for handling dead letters manually; nil likewise
	Why        Stories                                         // records of calls; nil means none
	Metrics    http.Handler
	Board      http.Handler                 // the page for browsers; nil means none
	Fleet      func() *Fleet                // nil if nothing is shared
	Models     func(upstream string) *Model // nil, or returns nil for an upstream that is not a language model
	Troubles   func() []Trouble             // nil if there are none
	Config     func() *Config               // nil, or returns nil if there is no file
	Settings   func() []doc.Setting         // the settings of the file in force; nil if there is none
	Runs       *runs.Table                  // nil, or what each run has used
	Log        *slog.Logger                 // of operators' actions; nil means none
	Draining   atomic.Bool                  // set when the program shuts down: it is then not ready

	Reload func(ctx context.Context, by string) error // reloads the file; nil if there is none

	// Hosts returns the additional names of a loopback address. Requests to a loopback address must name one of them,
	// localhost or an address.
	Hosts func() []string

	// Name converts a key of a scope to its stored form; nil means unchanged.
	Name func(scope, key string) string

	Auth    func() *auth.Auth // allowed senders; nil means everyone on this machine
	AuthAll bool              // for metrics and health too

	// SignIn writes the form that asks a browser for a token, and the problem with the last one. nil means that there
	// is no page for browsers.
	SignIn   func(w http.ResponseWriter, code int, wrong string)
	sessions sessions

	Refused func(why string) // is called with the reason for each refused request; may be nil
}

// Handler serves the page for browsers and the admin API: /livez (and /healthz), /readyz, /metrics, /v1/status,
// /v1/limits of one key, /v1/runs, /v1/breaker to open, close or reset a breaker, /v1/pause to pause and resume calls,
// /v1/budget to give units of a budget back, and /v1/reload to reload the file. The guard applies to all of them.
func (p *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	alive := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }
	mux.HandleFunc("GET /livez", alive)
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("GET /readyz", p.ready)
	mux.HandleFunc("GET /v1/status", p.status)
	mux.HandleFunc("GET /v1/limits", p.limits)
	mux.HandleFunc("GET /v1/runs", p.runs)
	mux.HandleFunc("GET /v1/why/{id}", p.why)
	if p.Board != nil {
		mux.Handle("/", p.Board)
	}
	mux.HandleFunc("POST /v1/breaker", p.breaker)
	mux.HandleFunc("POST /v1/pause", p.pause)
	mux.HandleFunc("POST /v1/budget", p.budget)
	if p.Reload != nil {
		mux.HandleFunc("POST /v1/reload", p.reload)
	}
	mux.HandleFunc("POST /logout", p.logout)
	letters := p.Deliveries
	if letters == nil {
		letters = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			problem(w, http.StatusNotFound, "deliveries are not configured: add deliveries to the file; see docs/reference/deliveries.md")
		})
	}
	mux.Handle("/v1/deliveries", letters)
	mux.Handle("/v1/deliveries/", letters)
	if p.Metrics != nil {
		mux.Handle("GET /metrics", p.Metrics)
	}
	return p.guard(mux)
}

func (p *Page) ready(w http.ResponseWriter, _ *http.Request) {
	if p.Draining.Load() {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	troubles := p.troubles()
	if p.stopped(troubles) { // no upstream can be called
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "not ready")
	} else {
		fmt.Fprintln(w, "ready")
	}
	for i := range troubles {
		state := ""
		if troubles[i].With == WithDeliveries {
			state = ": they are unavailable"
		}
		fmt.Fprintf(w, "problem with %s%s\n", troubles[i].With, state)
	}
}

// stopped reports whether there are upstreams to call and each of them has a trouble.
func (p *Page) stopped(troubles []Trouble) bool {
	any := false
	called := p.Called
	if called == nil {
		called = p.Upstreams
	}
	for name := range called() {
		if !slices.ContainsFunc(troubles, func(t Trouble) bool { return t.Upstream == name }) {
			return false
		}
		any = true
	}
	return any
}

func (p *Page) troubles() []Trouble {
	if p.Troubles == nil {
		return nil
	}
	return p.Troubles()
}

// Report returns the present state of everything.
func (p *Page) Report(ctx context.Context) Report {
	r := p.State()
	r.Deliveries = p.Counted(ctx)
	return r
}

// State returns the state of everything except deliveries, without waiting for a store.
func (p *Page) State() Report {
	r := p.Rest()
	for _, u := range p.Upstreams() {
		state := p.StateOf(u)
		state.Retries = RetriesOf(u, time.Now())
		r.Upstreams = append(r.Upstreams, state)
	}
	sort.Slice(r.Upstreams, func(i, j int) bool { return r.Upstreams[i].Name < r.Upstreams[j].Name })
	return r
}

// Rest returns the state of everything except upstreams and deliveries.
func (p *Page) Rest() Report {
	r := Report{Version: p.Version, Started: p.Started, Draining: p.Draining.Load(), Upstreams: []Upstream{}, Troubles: p.troubles(), Config: p.config()}
	if p.Fleet != nil {
		r.Fleet = p.Fleet()
	}
	return r
}

// StateOf returns the state of an upstream.
func (p *Page) StateOf(u *weir.Upstream) Upstream {
	s := stateOf(u)
	if p.Models != nil {
		s.Model = p.Models(s.Name)
	}
	return s
}

func (p *Page) status(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(p.Report(r.Context()))
}

// An Order is a request to change a breaker.
type Order struct {
	Upstream string `json:"upstream"`
	Key      string `json:"key"`
	Do       string `json:"do"`  // open, close or reset
	For      string `json:"for"` // how long it stays open; "" means until further notice
}

func (p *Page) breaker(w http.ResponseWriter, r *http.Request) {
	var o Order
	if !read(w, r, &o, `{"upstream":"s3","do":"open","for":"5m"}`) {
		return
	}
	u := p.named(w, o.Upstream)
	if u == nil {
		return
	}
	if err := o.carryOut(u, p.name); err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	answer(w, stateOf(u))
}

// Work changes the breakers that an order names. An error describes the mistake in the order, which then has no
// effect.
func (p *Page) Work(o Order) error {
	u := p.Upstreams()[o.Upstream]
	if u == nil {
		return unknown(o.Upstream)
	}
	return o.carryOut(u, p.name)
}

func (o *Order) carryOut(u *weir.Upstream, name namer) error {
	length, err := time.ParseDuration(o.For)
	if o.For != "" && (err != nil || length <= 0) {
		return fmt.Errorf("for %q: want a duration such as 5m", o.For)
	}
	named, wrong := breakersOf(u, o.Key, name)
	if wrong != "" {
		return errors.New(wrong)
	}
	if o.For != "" && o.Do != "open" {
		return fmt.Errorf("for %q: only \"do\": \"open\" has a duration", o.For)
	}
	work := map[string]func(*breaker.Breaker){
		"open":  func(b *breaker.Breaker) { b.ForceOpen(u.Now(), length) },
		"close": func(b *breaker.Breaker) { b.ForceClose(u.Now()) },
		"reset": func(b *breaker.Breaker) { b.Reset(u.Now()) },
	}[o.Do]
	if work == nil {
		return fmt.Errorf("do %q: want open, close or reset", o.Do)
	}
	for _, b := range named {
		work(b)
	}
	return nil
}

// unknown returns the error for an unknown upstream.
func unknown(name string) error { return fmt.Errorf("unknown upstream %q", name) }

// read reads an order, or responds with the mistake and an example.
func read(w http.ResponseWriter, r *http.Request, to any, example string) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err == nil && d.More() {
		err = errors.New("more than one JSON value")
	}
	if err != nil {
		problem(w, http.StatusBadRequest, "the body is not a command such as "+example+": "+err.Error())
	}
	return err == nil
}

// named returns the upstream of an order. If it is unknown, it responds with an error and returns nil.
func (p *Page) named(w http.ResponseWriter, name string) *weir.Upstream {
	u := p.Upstreams()[name]
	if u == nil {
		problem(w, http.StatusNotFound, unknown(name).Error())
	}
	return u
}

func answer(w http.ResponseWriter, with any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(with)
}

// breakersOf returns the breakers that an order names: the breaker of the key, or every breaker. If the key is
// impossible, wrong explains why.
func breakersOf(u *weir.Upstream, key string, name namer) (named []*breaker.Breaker, wrong string) {
	if key == "" {
		for _, b := range u.Breakers() {
			named = append(named, b)
		}
		return named, ""
	}
	switch by := u.BreakersBy(); by {
	case "":
		return nil, fmt.Sprintf("key %q: %s has one breaker for all calls; remove key", key, u.Name())
	case u.Policy().BreakerScope:
		return []*breaker.Breaker{u.Breaker(name(by, key))}, ""
	}
	var known []string
	for name, b := range u.Breakers() {
		if name == key {
			return []*breaker.Breaker{b}, ""
		}
		known = append(known, name)
	}
	slices.Sort(known)
	return nil, fmt.Sprintf("key %q: %s has no such operation; want one of %s, or no key for all breakers", key, u.Name(), strings.Join(known, ", "))
}

func problem(w http.ResponseWriter, status int, message string) {
	code := "VALIDATION_ERROR"
	switch status {
	case http.StatusNotFound:
		code = "NOT_FOUND"
	case http.StatusUnauthorized:
		code = "UNAUTHORIZED"
	case http.StatusForbidden:
		code = "FORBIDDEN"
	case http.StatusServiceUnavailable:
		code = "SERVICE_UNAVAILABLE"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"code": code, "message": message}})
}
