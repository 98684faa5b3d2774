package e2e

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gauges are metrics of the Go runtime and the process that must not grow.
var gauges = []string{"process_resident_memory_bytes", "go_goroutines", "process_open_fds"}

// Under steady calls no gauge of a sidecar grows. The duration is WEIR_SOAK (30m in scripts/soak, at 1,000 calls a second). By
// default it is three seconds, and the test only checks that calls are answered.
func TestNothingGrows(t *testing.T) {
	length, rate := 3*time.Second, 200
	if s := os.Getenv("WEIR_SOAK"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
		rate = 1000
	}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "answer")
	}))
	defer up.Close()
	w := start(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  up: {url: %q, keys: {tenant: \"header:X-Tenant\"}, limits: {each: {rate: 100000/s, scope: tenant}}}\n", up.URL))
	var good, bad atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	const callers = 20
	for i := range callers {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
			defer client.CloseIdleConnections()
			tick := time.NewTicker(time.Second * callers / time.Duration(rate))
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				r, _ := http.NewRequest("POST", "http://"+w.Serve.Listen+"/up/x", strings.NewReader("question"))
				r.Header.Set("X-Tenant", strconv.Itoa((n*callers+i)%5000))
				resp, err := client.Do(r)
				if err != nil || resp.StatusCode != http.StatusOK {
					bad.Add(1)
				} else {
					good.Add(1)
				}
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}
		})
	}
	seen := make(map[string][]float64)
	begin := time.Now()
	for time.Since(begin) < length {
		time.Sleep(min(length/100, 10*time.Second))
		if time.Since(begin) < length/3 {
			continue // its tables fill first
		}
		for name, v := range scrape(t, w.Serve.Admin) {
			seen[name] = append(seen[name], v)
		}
	}
	close(stop)
	wg.Wait()
	if good.Load() == 0 || bad.Load() > 0 {
		t.Errorf("%d calls were answered, %d not", good.Load(), bad.Load())
	}
	for _, name := range gauges {
		grows, share := slope(seen[name])
		t.Logf("%s: %.3g at the end of %d looks, %+.1f%% of its mean by its slope, %.1f standard errors from 0", name, seen[name][len(seen[name])-1], len(seen[name]), 100*share, grows)
		if rate == 1000 && grows > 4 && share > 0.05 {
			t.Errorf("%s grows", name)
		}
	}
}

func scrape(t *testing.T, admin string) map[string]float64 {
	t.Helper()
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, name := range gauges {
		_, rest, ok := strings.Cut(string(b), "\n"+name+" ")
		text, _, _ := strings.Cut(rest, "\n")
		v, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil {
			t.Fatalf("there is no %s", name)
		}
		all[name] = v
	}
	return all
}

// slope fits a line through equidistant values. It returns the slope in standard errors, and the increase over all values as a
// share of their mean.
func slope(all []float64) (errors, share float64) {
	n := float64(len(all))
	var x, y float64
	for i, v := range all {
		x, y = x+float64(i)/n, y+v/n
	}
	var xx, xy, rest float64
	for i, v := range all {
		xx, xy = xx+(float64(i)-x)*(float64(i)-x), xy+(float64(i)-x)*(v-y)
	}
	k := xy / xx
	for i, v := range all {
		d := v - y - k*(float64(i)-x)
		rest += d * d
	}
	if err := math.Sqrt(rest / (n - 2) / xx); err > 0 {
		errors = k / err
	} else if k > 0 {
		errors = math.Inf(1)
	}
	return errors, k * n / y
}

func TestASlopeIsToldFromNoise(t *testing.T) {
	flat, rising := make([]float64, 60), make([]float64, 60)
	for i := range flat {
		noise := 100 * math.Sin(float64(i*i))
		flat[i], rising[i] = 1000+noise, 1000+noise+10*float64(i)
	}
	if by, share := slope(flat); by > 4 || share > 0.05 {
		t.Errorf("what stays rises by %.1f standard errors, %.2f", by, share)
	}
	if by, share := slope(rising); by < 4 || share < 0.05 {
		t.Errorf("what rises does by %.1f standard errors, %.2f", by, share)
	}
	if by, _ := slope([]float64{7, 7, 7, 7}); by != 0 {
		t.Errorf("what is the same rises by %.1f", by)
	}
}
