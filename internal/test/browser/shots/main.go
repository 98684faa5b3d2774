// Command shots takes the pictures of the status page that the README and the pages show: a real weir, in front of upstreams
// one of which has an outage that plays for some minutes, as a Chromium shows it.
//
//	shots docs/images
package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seed1158cd35/weir/internal/test/browser"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

// What plays: so long all is well, then an upstream fails, and then it is well again.
const (
	calm    = 100 * time.Second
	outage  = 60 * time.Second
	mended  = 60 * time.Second
	width   = 1280
	tallest = 1000
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: shots docs/images")
		os.Exit(2)
	}
	if err := shoot(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const yaml = `listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: {file: limits}
deliveries: {file: deliveries.db}
upstreams:
  billing: {url: URL/billing, limits: {all: {rate: 60/s, burst: 60}}, breaker: {open: 20s}}
  photos:
    url: URL/photos
    limits: {get: {rate: 40/s, burst: 10}}
    max_wait: 100ms
  search: {url: URL/search, limits: {all: {rate: 200/s, burst: 50}}}
  mail: {url: URL/mail, routes: [{path: /mail/, strip: true, deliver: always}], limits: {all: 20/s}}
  reports: {url: URL/reports, limits: {all: 5/s}}
`

// shoot plays, and takes the pictures.
func shoot(to string) error {
	var fails atomic.Bool
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(20+rand.ExpFloat64()*15) * time.Millisecond)
		switch {
		case strings.HasPrefix(r.URL.Path, "/billing") && fails.Load():
			w.WriteHeader(http.StatusInternalServerError)
		case strings.HasPrefix(r.URL.Path, "/search") && rand.IntN(60) == 0:
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer up.Close()
	dir, err := os.MkdirTemp("", "shots")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if to, err = filepath.Abs(to); err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil { // so that no picture has a path of this machine
		return err
	}
	text := strings.ReplaceAll(yaml, "URL", up.URL)
	if err := os.WriteFile("weir.yaml", []byte(text), 0o600); err != nil {
		return err
	}
	w, err := serve.Start("weir.yaml", serve.Options{Log: io.Discard, Env: func(string) (string, bool) { return "", false }, Version: "v0"})
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	ctx, end := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer end()
	for name, rate := range map[string]float64{"billing": 22, "photos": 46, "search": 30, "reports": 3, "mail": 2} {
		callers.Go(func() { calls(ctx, "http://"+w.Addr()+"/"+name+"/x", rate) })
	}
	time.Sleep(calm)
	fails.Store(true)
	time.Sleep(outage)
	if err := shots(ctx, "http://"+w.AdminAddr()+"/?open=billing", to, "page-outage"); err != nil {
		return err
	}
	fails.Store(false)
	time.Sleep(mended)
	return shots(ctx, "http://"+w.AdminAddr()+"/?open=billing", to, "page-recovery")
}

// calls makes calls at a rate that comes and goes, until ctx ends.
func calls(ctx context.Context, url string, rate float64) {
	var under sync.WaitGroup
	defer under.Wait()
	for ctx.Err() == nil {
		time.Sleep(time.Duration(rand.ExpFloat64() / rate * float64(time.Second)))
		under.Go(func() {
			if resp, err := http.Post(url, "text/plain", nil); err == nil {
				_ = resp.Body.Close()
			}
		})
	}
}

// shots takes a picture in light and one in dark colours.
func shots(ctx context.Context, address, to, name string) error {
	window, end, err := browser.Start(ctx)
	if err != nil {
		return err
	}
	defer end()
	tab, err := browser.Open(window)
	if err != nil {
		return err
	}
	defer tab.Close()
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, scheme := range []string{"light", "dark"} {
		if err := chromedp.Do(tab, chromedp.EmulateViewport(width, 300), browser.Scheme(scheme), chromedp.Navigate(address),
			chromedp.Poll[chromedp.Void](`document.getElementById("live").textContent.startsWith("Live")`)); err != nil {
			return err
		}
		height, err := chromedp.Run(tab, chromedp.Evaluate[int64](`document.documentElement.scrollHeight`))
		if err == nil {
			err = chromedp.Do(tab, chromedp.EmulateViewport(width, min(height, tallest)))
		}
		if err != nil {
			return err
		}
		png, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name+"-"+scheme+".png"), png, 0o644); err != nil {
			return err
		}
	}
	return nil
}
