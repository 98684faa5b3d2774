// Command shots takes the screenshots of the status page for the documentation. It runs real instances of weir with healthy
// upstreams, with an outage, and with two hundred upstreams. This takes some minutes.
//
//	shots docs/images
//	shots -all /tmp/shots docs/images	# and every scene at each width, in light and dark colors
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seed1158cd35/weir/internal/test/browser"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

// widths of the screens.
var widths = []int64{390, 768, 1280}

const tallest = 1100

// kept are the pictures of the documentation, by their names here.
var kept = map[string]string{
	"page-outage-1280-light": "page-outage-light", "page-outage-1280-dark": "page-outage-dark", "page-outage-390-light": "page-outage-narrow",
	"page-healthy-1280-light": "page-healthy-light", "page-many-1280-dark": "page-many-dark", "why-outage-768-light": "why-outage-light",
}

func main() {
	calm := flag.Duration("calm", 100*time.Second, "for how long all is well before the outage")
	outage := flag.Duration("outage", 60*time.Second, "for how long the outage has lasted when the pictures are taken")
	all := flag.String("all", "", "a directory for all pictures")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: shots [-all DIR] docs/images")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *all, *calm, *outage); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(to, all string, calm, outage time.Duration) error {
	for _, dir := range []*string{&to, &all} {
		if *dir == "" {
			continue
		}
		if err := os.MkdirAll(*dir, 0o755); err != nil {
			return err
		}
		var err error
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "shots")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chdir(dir); err != nil { // so that no picture contains a path of this machine
		return err
	}
	var scenes []*scene
	defer func() {
		for _, s := range scenes {
			s.close()
		}
	}()
	for _, c := range []struct {
		name, yaml string
		rates      map[string]float64
	}{
		{"healthy", few, map[string]float64{"billing": 22, "photos": 35, "search": 30, "reports": 3, "mail": 2}},
		{"outage", few, map[string]float64{"billing": 22, "photos": 46, "search": 30, "reports": 3, "mail": 2}},
		{"many", many(), manyRates()},
	} {
		s, err := start(c.name, c.yaml, c.rates)
		if err != nil {
			return err
		}
		scenes = append(scenes, s)
	}
	time.Sleep(calm)
	for _, s := range scenes[1:] {
		s.fails.Store(true)
	}
	time.Sleep(outage)
	take := func(name string, picture []byte) error {
		picture, err := compress(picture)
		if file, keep := kept[name]; err == nil && keep {
			err = os.WriteFile(filepath.Join(to, file+".png"), picture, 0o644)
		}
		if err == nil && all != "" {
			err = os.WriteFile(filepath.Join(all, name+".png"), picture, 0o644)
		}
		return err
	}
	for _, s := range scenes {
		for _, page := range s.pages() {
			if err := shots(page.address, page.name, take); err != nil {
				return err
			}
		}
	}
	return nil
}

const few = `listen: 127.0.0.1:0
admin: 127.0.0.1:0
deliveries: {file: deliveries.NAME.db}
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

// many is a configuration of two hundred upstreams.
func many() string {
	var b strings.Builder
	b.WriteString("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n")
	for i := range 200 {
		fmt.Fprintf(&b, "  %s: {url: URL/%s, limits: {all: {rate: 5/s, burst: 3}}, max_wait: 200ms}\n", nameOf(i), nameOf(i))
	}
	return b.String()
}

func nameOf(i int) string {
	return fmt.Sprintf("%s-%03d", []string{"billing", "photos", "search", "mail", "reports-of-the-european-region"}[i%5], i)
}

func manyRates() map[string]float64 {
	rates := make(map[string]float64)
	for i := range 60 {
		rates[nameOf(i)] = 1 + float64(i%7)
	}
	return rates
}

// A scene is a weir with calls through it.
type scene struct {
	name   string
	fails  atomic.Bool
	failed atomic.Value // ID of a failed call

	weir    *serve.Running
	up      *httptest.Server
	end     context.CancelFunc
	callers sync.WaitGroup
}

func start(name, yaml string, rates map[string]float64) (*scene, error) {
	s := &scene{name: name}
	s.up = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(20+rand.ExpFloat64()*15) * time.Millisecond)
		switch {
		case s.fails.Load() && (strings.HasPrefix(r.URL.Path, "/billing/") || strings.HasPrefix(r.URL.Path, "/billing-0")):
			w.WriteHeader(http.StatusInternalServerError)
		case s.fails.Load() && strings.HasPrefix(r.URL.Path, "/search") && rand.IntN(10) == 0:
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	text := strings.NewReplacer("URL", s.up.URL, "NAME", name).Replace(yaml)
	var err error
	file := filepath.Join(name, "weir.yaml")
	if err = os.MkdirAll(name, 0o700); err == nil {
		if err = os.WriteFile(file, []byte(text), 0o600); err == nil {
			s.weir, err = serve.Start(file, serve.Options{Log: io.Discard, Env: func(string) (string, bool) { return "", false }, Version: "0.1.0"})
		}
	}
	if err != nil {
		s.up.Close()
		return nil, err
	}
	var ctx context.Context
	ctx, s.end = context.WithCancel(context.Background())
	for upstream, rate := range rates {
		s.callers.Go(func() { s.calls(ctx, "http://"+s.weir.Addr()+"/"+upstream+"/x", rate) })
	}
	return s, nil
}

func (s *scene) close() {
	s.end()
	s.callers.Wait()
	_ = s.weir.Close()
	s.up.Close()
}

// calls makes calls at a varying rate until ctx ends.
func (s *scene) calls(ctx context.Context, url string, rate float64) {
	var under sync.WaitGroup
	defer under.Wait()
	for ctx.Err() == nil {
		time.Sleep(time.Duration(rand.ExpFloat64() / rate * float64(time.Second)))
		under.Go(func() {
			resp, err := http.Post(url, "text/plain", nil)
			if err != nil {
				return
			}
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusInternalServerError {
				s.failed.Store(resp.Header.Get("X-Correlation-Id"))
			}
		})
	}
}

// A view is a page to take pictures of.
type view struct{ name, address string }

func (s *scene) pages() []view {
	home := "http://" + s.weir.AdminAddr() + "/"
	pages := []view{{"page-" + s.name, home}}
	if s.name == "outage" {
		pages = append(pages, view{"open-outage", home + "?open=billing"})
		if id, _ := s.failed.Load().(string); id != "" {
			pages = append(pages, view{"why-outage", home + "why?id=" + id})
		}
	}
	return pages
}

// shots takes pictures of a page at each width, in light and in dark colors.
func shots(address, name string, take func(name string, picture []byte) error) error {
	window, end, err := browser.Start(context.Background())
	if err != nil {
		return err
	}
	defer end()
	tab, err := browser.Open(window)
	if err != nil {
		return err
	}
	defer tab.Close()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range widths {
			if err := chromedp.Do(tab, chromedp.EmulateViewport(width, 300), browser.Scheme(scheme), chromedp.Navigate(address), chromedp.WaitReady(chromedp.CSS("main")),
				chromedp.Poll[chromedp.Void](`(l => !l || l.textContent.startsWith("Live"))(document.getElementById("live"))`)); err != nil {
				return err
			}
			height, err := chromedp.Run(tab, chromedp.Evaluate[int64](`document.documentElement.scrollHeight`))
			if err == nil {
				err = chromedp.Do(tab, chromedp.EmulateViewport(width, min(height, tallest)))
			}
			if err != nil {
				return err
			}
			picture, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
			if err != nil {
				return err
			}
			if err := take(fmt.Sprintf("%s-%d-%s", name, width, scheme), picture); err != nil {
				return err
			}
		}
	}
	return nil
}

// compress reduces a picture to its 256 most frequent colors. The pages have few colors.
func compress(picture []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	counts := make(map[color.RGBA]int)
	bounds := from.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	if len(counts) == 0 {
		return nil, errors.New("the picture is empty")
	}
	colors := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		colors = append(colors, c)
	}
	slices.SortFunc(colors, func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range colors[:min(len(colors), 256)] {
		palette = append(palette, c)
	}
	to := image.NewPaletted(bounds, palette)
	draw.Draw(to, bounds, from, bounds.Min, draw.Src)
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, to)
	return b.Bytes(), err
}
