// Package board is weir's status page for browsers: the state of all upstreams, the worst first, and the controls for
// operators. It works without JavaScript. With it, the page is updated each second. It loads nothing from other
// hosts, and no limit applies to it.
package board

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/webpage"
	"github.com/seed1158cd35/weir/sidecar/status"
)

//go:embed live.js
var script string

// A Board serves the page. Create it with New.
type Board struct {
	Page *status.Page // the data and actions of the page; set it before Handler is used
	Log  *slog.Logger // records operators' actions with names and reasons

	histories histories
	secret    []byte // key of the form tokens

	sight   sight
	letters tally

	mu      sync.Mutex
	streams map[string]*stream // by filter; only streams with viewers
	eyes    int                // viewers of live pages
	ended   atomic.Bool        // there will be no more frames
}

// New returns a board. Upstreams must be created with its Events to appear in its plots.
func New(log *slog.Logger) *Board {
	b := &Board{Log: log, secret: make([]byte, 32), streams: make(map[string]*stream), letters: tally{counting: make(chan struct{}, 1)}}
	_, _ = rand.Read(b.secret) // never fails
	return b
}

// Events returns the events with which the board's upstreams must be created.
func (b *Board) Events() weir.Events {
	return weir.Events{Counts: b.histories.counts, Breaker: b.histories.changed, Paused: b.histories.paused, Resumed: b.histories.paused}
}

// Run samples the upstreams, and updates live pages, until ctx ends.
func (b *Board) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { b.renew(ctx) })
	all.Go(func() { b.count(ctx) })
	t := time.NewTicker(step)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			b.histories.sample(b.Page.Upstreams())
		}
	}
}

// Handler serves the page at "/" and its files.
func (b *Board) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", b.front)
	mux.HandleFunc("GET /live", b.live)
	mux.HandleFunc("GET /row", b.inner)
	mux.HandleFunc("GET /v1/overview", b.view)
	mux.HandleFunc("GET /v1/board", b.view) // the name before 0.1.0, kept until 0.2.0
	mux.HandleFunc("GET /config", b.config)
	mux.HandleFunc("GET /dead", b.dead)
	mux.HandleFunc("GET /why", b.why)
	mux.HandleFunc("GET /style.css", file(webpage.Style, "text/css; charset=utf-8"))
	mux.HandleFunc("GET /live.js", file(script, "text/javascript; charset=utf-8"))
	mux.HandleFunc("POST /act", b.act)
	return headed(mux)
}

// headed sets security headers on each response: browsers may only show it, call this host, and send its forms here.
func headed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heads(w.Header().Set)
		h.ServeHTTP(w, r)
	})
}

func heads(set func(name, value string)) {
	set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	set("X-Content-Type-Options", "nosniff")
	set("Referrer-Policy", "same-origin") // with no-referrer, browsers send forms without an origin
	set("Cache-Control", "no-store")
}

// SignIn writes the page that asks for a token.
func (b *Board) SignIn(w http.ResponseWriter, code int, wrong string) {
	var p page
	p.signIn(wrong)
	heads(w.Header().Set)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(p.Bytes())
}

// send writes a complete response, compressed if the client accepts that.
func send(w http.ResponseWriter, r *http.Request, code int, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Vary", "Accept-Encoding")
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(code)
		_, _ = w.Write(text)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(code)
	z := gzip.NewWriter(w)
	_, _ = z.Write(text)
	_ = z.Close()
}

// sendJSON writes a JSON response.
func sendJSON(w http.ResponseWriter, r *http.Request, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, r, http.StatusOK, "application/json", text)
}

func file(text, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { send(w, r, http.StatusOK, kind, []byte(text)) }
}

// front serves the complete page.
func (b *Board) front(w http.ResponseWriter, r *http.Request) {
	open := r.URL.Query().Get("open")
	b.show(w, r, http.StatusOK, func(p *page) { p.whole(b.fresh(r.Context()).only(filterOf(r), open), open) })
}

// inner serves the content of an opened row.
func (b *Board) inner(w http.ResponseWriter, r *http.Request) {
	u := b.Page.Upstreams()[r.URL.Query().Get("name")]
	if u == nil {
		http.Error(w, "no upstream has this name", http.StatusNotFound)
		return
	}
	b.show(w, r, http.StatusOK, func(p *page) { p.inner(b.row(u, time.Now())) })
}

// filterOf returns the viewer's filter: a part of a name, or a state.
func filterOf(r *http.Request) string {
	q := r.URL.Query().Get("q")
	return q[:min(len(q), 100)]
}

// show writes a page.
func (b *Board) show(w http.ResponseWriter, r *http.Request, code int, write func(*page)) {
	p := page{token: b.token(time.Now()), signed: b.Page.Session(r)}
	write(&p)
	send(w, r, code, "text/html; charset=utf-8", p.Bytes())
}
