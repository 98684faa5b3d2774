// Package board is weir's status page for browsers: what weir is doing, the worst first, and the switches that are
// worked by hand. It works without JavaScript; with it the page is renewed each second. It asks no other host
// for anything, and stands behind no limit.
package board

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/sidecar/status"
)

//go:embed style.css live.js
var files embed.FS

// A Board serves the page. Make it with New.
type Board struct {
	Page *status.Page // what it shows, and what it acts through; set before Handler is used
	Log  *slog.Logger // records what operators do, with their names and reasons

	histories histories
	secret    []byte // that tokens of forms are made with

	sight   sight
	letters tally

	mu      sync.Mutex
	streams map[string]*stream // by filter; only those with viewers
	eyes    int                // viewers of live pages
	ended   atomic.Bool        // there will be no more frames
}

// New makes a board. Its Events count for it.
func New(log *slog.Logger) *Board {
	b := &Board{Log: log, secret: make([]byte, 32), streams: make(map[string]*stream), letters: tally{counting: make(chan struct{}, 1)}}
	_, _ = rand.Read(b.secret) // never fails
	return b
}

// Events are what the upstreams that it shows have to be made with.
func (b *Board) Events() weir.Events {
	return weir.Events{Counts: b.histories.counts, Breaker: b.histories.changed, Paused: b.histories.paused, Resumed: b.histories.paused}
}

// Run notes what upstreams do, and renews live pages, until ctx ends.
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

// Handler serves the page at "/", and what belongs to it beside it.
func (b *Board) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", b.front)
	mux.HandleFunc("GET /live", b.live)
	mux.HandleFunc("GET /row", b.inner)
	mux.HandleFunc("GET /v1/overview", b.view)
	mux.HandleFunc("GET /v1/board", b.view) // its name before 0.1.0, until 0.2.0
	mux.HandleFunc("GET /config", b.config)
	mux.HandleFunc("GET /dead", b.dead)
	mux.HandleFunc("GET /why", b.why)
	mux.HandleFunc("GET /style.css", file("style.css", "text/css; charset=utf-8"))
	mux.HandleFunc("GET /live.js", file("live.js", "text/javascript; charset=utf-8"))
	mux.HandleFunc("POST /act", b.act)
	return headed(mux)
}

// headed says on each answer what a browser may do with it: nothing but show it, ask this host, and send its forms here.
func headed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heads(w.Header().Set)
		h.ServeHTTP(w, r)
	})
}

func heads(set func(name, value string)) {
	set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	set("X-Content-Type-Options", "nosniff")
	set("Referrer-Policy", "same-origin") // with no-referrer browsers name no origin in what forms send
	set("Cache-Control", "no-store")
}

// SignIn is the page that asks for a token.
func (b *Board) SignIn(w http.ResponseWriter, code int, wrong string) {
	var p page
	p.signIn(wrong)
	heads(w.Header().Set)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(p.Bytes())
}

// send writes a whole answer, packed for who can unpack it.
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

// sendJSON writes an answer for programs.
func sendJSON(w http.ResponseWriter, r *http.Request, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, r, http.StatusOK, "application/json", text)
}

func file(name, kind string) http.HandlerFunc {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is part of the program
	}
	return func(w http.ResponseWriter, r *http.Request) { send(w, r, http.StatusOK, kind, text) }
}

// front is the whole page.
func (b *Board) front(w http.ResponseWriter, r *http.Request) {
	open := r.URL.Query().Get("open")
	b.show(w, r, http.StatusOK, func(p *page) { p.whole(b.fresh(r.Context()).only(filterOf(r), open), open) })
}

// inner is what a row opens to.
func (b *Board) inner(w http.ResponseWriter, r *http.Request) {
	u := b.Page.Upstreams()[r.URL.Query().Get("name")]
	if u == nil {
		http.Error(w, "no upstream has this name", http.StatusNotFound)
		return
	}
	b.show(w, r, http.StatusOK, func(p *page) { p.inner(b.row(u, time.Now())) })
}

// filterOf is what a viewer asks for: a part of a name, or a state.
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
