package proxy

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/seed1158cd35/weir/internal/hosts"
	"github.com/seed1158cd35/weir/internal/paths"
)

// The route of a request is the first in the order of precedence that matches, whatever routes there are.
func TestRouteIsTheFirstThatMatches(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	path := func() string {
		p := "/"
		for range random.IntN(4) {
			p += one("a", "b", "%61", "a%2fb", "A", "%41", "a%2Fb", "é") + "/"
		}
		return p
	}
	for range 300 {
		seen := map[string]bool{}
		var all []Upstream
		for i := range 1 + random.IntN(8) {
			u := Upstream{Name: fmt.Sprintf("u%d", i), URL: &url.URL{Scheme: "http", Host: "x"}}
			for range 1 + random.IntN(3) {
				r := Route{Host: one("", "", "h", "h2"), Path: path(), Strip: random.IntN(2) == 0}
				if key := r.Host + r.Path; !seen[key] {
					seen[key] = true
					u.Routes = append(u.Routes, r)
				}
			}
			all = append(all, u)
		}
		table, router := newProxy(t, all...).table.Load(), NewRouter(all)
		for range 50 {
			raw := one(path(), path()+"x", path()[1:], "/"+path(), "", "*", path()+"?a=/b/")
			in := &http.Request{Host: one("", "h", "h2:80", "H", "other"), RequestURI: raw}
			i := slices.IndexFunc(table.entries, func(e entry) bool {
				_, under := paths.Rest(e.Path, rawPath(in))
				return under && (e.Host == "" || e.Host == hosts.Name(in.Host))
			})
			to, path, _, by, ok := table.find(in)
			name, same, found := router.Find(in.Host, rawPath(in))
			switch {
			case found != ok || found && (name != to.Name || same != path):
				t.Fatalf("seed %d: %q of host %q: a router finds %q %q, want %+v %q", seed, raw, in.Host, name, same, to, path)
			case ok != (i >= 0):
				t.Fatalf("seed %d: %q of host %q: found %v, want %v", seed, raw, in.Host, ok, i >= 0)
			case ok && (to != table.entries[i].target || *by != table.entries[i].Route):
				t.Fatalf("seed %d: %q of host %q goes to %+v, want %+v", seed, raw, in.Host, *by, table.entries[i].Route)
			}
		}
	}
}

// The time to find a route does not grow with the number of routes.
func BenchmarkFindRoute(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		t := &table{targets: map[string]*target{}}
		for i := range n {
			t.entries = append(t.entries, entry{Route{Path: fmt.Sprintf("/u%d/", i), Strip: true}, nil})
		}
		t.index()
		in := &http.Request{Host: "localhost:9100", RequestURI: fmt.Sprintf("/u%d/x", n/2)}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, _, _, ok := t.find(in); !ok {
					b.Fatal("not found")
				}
			}
		})
	}
}
