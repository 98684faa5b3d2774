package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/retry"
)

func calls(n int64, per time.Duration) []limit.Limit {
	return []limit.Limit{{Name: "calls", Rate: bucket.Rate{Amount: n, Per: per}}}
}

func TestSetUnderLoadDropsNothing(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer s.Close()
	a, b := up(s.URL, brisk()), up(s.URL, brisk())
	a.Policy.Limits, b.Policy.Limits = calls(1_000_000, time.Second), calls(2_000_000, time.Second)
	b.Policy.Timeouts.Headers = time.Minute // a setting that requires another transport
	other := up(s.URL, brisk())
	other.Name, other.Routes = "other", nil
	p := newProxy(t, a)
	address := "http://" + listen(t, p)
	stop := make(chan bool)
	var done turns
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			client := &http.Client{Timeout: patience}
			defer client.CloseIdleConnections()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := exchange(client, address, fmt.Sprint(i, n)); err != nil {
					t.Error(err)
					return
				}
				done.next()
			}
		})
	}
	for i := range 200 {
		next := []Upstream{a}
		if i%2 == 0 {
			next = []Upstream{b, other}
		}
		if err := p.Set(next); err != nil {
			t.Error(err)
		}
		for before := done.n.Load(); done.n.Load() < before+3 && !t.Failed(); { // some calls in each phase
			if err := exchange(http.DefaultClient, address, "x"); err != nil {
				t.Error(err)
			}
		}
	}
	close(stop)
	wg.Wait()
	t.Logf("%d calls over 200 changes", done.n.Load())
}

func exchange(client *http.Client, address, body string) error {
	resp, err := client.Post(address, "text/plain", strings.NewReader(body))
	if err != nil {
		return err
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || string(b) != body || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("got %s %q, %v; want %q", resp.Status, b, err, body)
	}
	return nil
}

// A request in flight keeps its configuration, even if its upstream is removed.
func TestSetLeavesRequestsUnderWayAlone(t *testing.T) {
	arrived, release := make(chan bool), make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- true
		<-release
		fmt.Fprint(w, "done")
	}))
	defer s.Close()
	p := newProxy(t, up(s.URL, brisk()))
	address := "http://" + listen(t, p)
	answer := make(chan string, 1)
	go func() { answer <- text(t, do(t, "GET", address, "")) }()
	wait(t, "the request", arrived)
	gone := up("http://127.0.0.1:1", brisk())
	gone.Name = "gone"
	if err := p.Set([]Upstream{gone}); err != nil {
		t.Error(err)
	}
	close(release)
	if got := wait(t, "the answer", answer); got != "done" {
		t.Errorf("answered %q", got)
	}
}

func TestSetKeepsWhatWasTaken(t *testing.T) {
	w := newWire(t)
	u := up(w.url, brisk())
	u.Policy.Limits, u.Policy.MaxWait = calls(1, time.Hour), -1
	p := newProxy(t, u)
	address := "http://" + listen(t, p)
	do(t, "GET", address, "")
	for range 3 {
		if err := p.Set([]Upstream{u}); err != nil {
			t.Fatal(err)
		}
		if resp := do(t, "GET", address, ""); resp.StatusCode != http.StatusTooManyRequests {
			t.Errorf("after a reload: %s, want 429: the limit was spent", resp.Status)
		}
	}
}

// Another path or spelling of the URL is the same API and keeps its state. Another host is a different API.
func TestAnotherPathIsNotAnotherAPI(t *testing.T) {
	w := newWire(t)
	u := up(w.url, brisk())
	u.Policy.Limits, u.Policy.MaxWait = calls(1, time.Hour), -1
	p := newProxy(t, u)
	before := p.Upstreams()["up"]
	address := "http://" + listen(t, p)
	do(t, "GET", address, "")
	for i, path := range []string{"/", "", "/v2", "/v2/"} {
		u.URL = up(w.url+path, brisk()).URL
		if err := p.Set([]Upstream{u}); err != nil {
			t.Fatal(err)
		}
		if resp := do(t, "GET", address, ""); resp.StatusCode != http.StatusTooManyRequests || p.Upstreams()["up"] != before {
			t.Errorf("with path %q, change %d: %s, want 429: the limit was spent", path, i, resp.Status)
		}
	}
	for url, same := range map[string]bool{
		"http://API.example.com": true, "http://api.example.com:80/x": true, "https://api.example.com": false,
		"http://api.example.com:8080": false, "http://other.example.com": false,
	} {
		if got := origin(up(url, brisk()).URL) == origin(up("http://api.example.com", brisk()).URL); got != same {
			t.Errorf("%s is the same API: %v", url, got)
		}
	}
}

func TestBadSetChangesNothingAndSaysWhy(t *testing.T) {
	w := newWire(t)
	good := up(w.url, brisk())
	good.Policy.Limits = calls(5, time.Hour)
	p := newProxy(t, good)
	address := "http://" + listen(t, p)
	change := func(f func(*Upstream)) Upstream {
		u := up(w.url, brisk())
		u.Policy.Limits = calls(1000, time.Second)
		f(&u)
		return u
	}
	better := change(func(u *Upstream) {})
	for name, c := range map[string]struct {
		set  []Upstream
		says string
	}{
		"negative rate":   {[]Upstream{better, change(func(u *Upstream) { u.Name, u.Routes, u.Policy.Limits = "b", nil, calls(-1, 1) })}, "amount -1"},
		"no url":          {[]Upstream{change(func(u *Upstream) { u.URL = nil })}, "url"},
		"no host":         {[]Upstream{change(func(u *Upstream) { u.URL = &url.URL{Scheme: "http", Path: "/"} })}, "host"},
		"another scheme":  {[]Upstream{change(func(u *Upstream) { u.URL = &url.URL{Scheme: "ftp", Host: "a"} })}, "ftp"},
		"no name":         {[]Upstream{change(func(u *Upstream) { u.Name = "" })}, "name"},
		"one name twice":  {[]Upstream{better, change(func(u *Upstream) { u.Routes = nil })}, "name"},
		"no operation":    {[]Upstream{change(func(u *Upstream) { u.Own = map[string]Own{"o": {}} })}, `operation "o": is not declared`},
		"routes clash":    {[]Upstream{better, change(func(u *Upstream) { u.Name = "b" })}, `route "": upstream "up" already has it`},
		"routes clash /":  {[]Upstream{change(func(u *Upstream) { u.Routes = []Route{{Path: "/a"}, {Path: "/a/", Strip: true}} })}, `route "/a/"`},
		"hosts clash":     {[]Upstream{change(func(u *Upstream) { u.Routes = []Route{{Host: "a"}, {Host: "A"}} })}, `route "A"`},
		"path, no slash":  {[]Upstream{change(func(u *Upstream) { u.Routes = []Route{{Path: "a"}} })}, "slash"},
		"several at once": {[]Upstream{change(func(u *Upstream) { u.URL, u.Policy.Retry = nil, retry.Config{Attempts: -1} })}, "attempts -1"},
	} {
		err := p.Set(c.set)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.says)
		}
		us := p.Upstreams()
		if rule := us["up"].Look(0).Limits[0].Limit.Rate; len(us) != 1 || rule.Amount != 5 {
			t.Errorf("%s: changed %d upstreams to %v", name, len(us), rule)
		}
	}
	if resp := do(t, "GET", address, ""); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %s", resp.Status)
	}
	if _, err := New([]Upstream{{Name: "a"}}, weir.Options{}); err == nil {
		t.Error("New took an upstream without a host")
	}
}

// An operator's pause stays in force if the host in the file changes: operators pause before a move.
func TestAPauseByHandOutlivesAnotherURL(t *testing.T) {
	w := newWire(t)
	u := up("http://127.0.0.1:1", brisk())
	u.Policy.Limits, u.Policy.MaxWait = calls(10, time.Hour), -1
	p := newProxy(t, u)
	address := "http://" + listen(t, p)
	if err := p.Upstreams()["up"].Pause(pause.All(), 0, false); err != nil {
		t.Fatal(err)
	}
	u.URL = up(w.url, brisk()).URL
	if err := p.Set([]Upstream{u}); err != nil {
		t.Fatal(err)
	}
	if resp := do(t, "GET", address, ""); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%s after the reload, want 429: a person has paused it", resp.Status)
	}
	if n, err := p.Upstreams()["up"].Resume(pause.All(), false); n != 1 || err != nil {
		t.Errorf("%d lifted, %v", n, err)
	}
	if resp := do(t, "GET", address, ""); resp.StatusCode != http.StatusOK {
		t.Errorf("%s when it was resumed", resp.Status)
	}
}
