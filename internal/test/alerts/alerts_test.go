//go:build unix

package alerts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
	"github.com/seed1158cd35/weir/observe/metric"
	"github.com/seed1158cd35/weir/observe/rules"
	"github.com/seed1158cd35/weir/sidecar/config"
)

func TestMain(m *testing.M) {
	watchdog.Start()
	code := m.Run()
	served.Clean()
	os.Exit(code)
}

// notDown excludes WeirDown, which may fire if the machine is too slow for a scrape.
const notDown = `ALERTS{alertname!="WeirDown"}`

var selectors = regexp.MustCompile(`\bweir_[a-z_]+(?:\{[^}]*\})?`)

// Every series that an alert reads exists when weir starts, before any event, with counters at 0.
func TestWhatAlertsReadIsThereFromTheStart(t *testing.T) {
	t.Parallel()
	w := newWhole(t)
	p := newWatch(t, w.Serve.Admin, "", rules.Prometheus(rules.Options{Cost: 1}))
	kinds := make(map[string]metric.Kind)
	for _, m := range metric.All() {
		kinds[m.Name] = m.Kind
	}
	of := make(map[string]string) // series and the alert that reads it
	for _, r := range rules.Records() {
		for _, s := range selectors.FindAllString(r.Expr, -1) {
			of[s] = r.Name
		}
	}
	for _, a := range rules.Alerts(rules.Options{Cost: 1}) {
		for _, s := range selectors.FindAllString(a.Expr, -1) {
			of[s] = a.Name
		}
	}
	if len(of) < 20 {
		t.Errorf("alerts read %d things", len(of))
	}
	for s, alert := range of {
		series := p.query(s)
		if len(series) == 0 {
			t.Errorf("%s, which %s reads, is not there", s, alert)
		}
		name, _, _ := strings.Cut(s, "{")
		if kinds[name] != metric.Counter {
			continue
		}
		for _, v := range series {
			if v.Value[1] != "0" {
				t.Errorf("%s%v is %v, though nothing has happened", s, v.Metric, v.Value[1])
			}
		}
	}
	p.until("alerts were looked at", func() bool { return len(p.query("count_over_time(weir:calls:increase5m[1m]) > 2")) == 4 })
	for _, a := range p.query(notDown) {
		t.Errorf("a weir that has just begun: %v", a.Metric)
	}
	for _, upstream := range []string{"api", "box", "chat", "talk"} { // each has separate metrics
		for _, name := range []string{"weir_calls_total", "weir_decisions_total", "weir_breakers", "weir_calls_given_up_total", "weir_delivery_dead_letters_total", "weir_problems"} {
			if len(p.query(fmt.Sprintf("%s{upstream=%q}", name, upstream))) == 0 {
				t.Errorf("%s of %s is not there", name, upstream)
			}
		}
	}
}

// Every panel's query returns series of a live weir.
func TestPanelsShowSomething(t *testing.T) {
	t.Parallel()
	w := newWhole(t)
	p := newWatch(t, w.Serve.Admin, "", rules.Prometheus(rules.Options{}))
	var queries []string
	for _, r := range rules.Rows() {
		for _, panel := range r.Panels {
			for _, l := range panel.Lines {
				queries = append(queries, strings.NewReplacer("$__rate_interval", "1m", "$upstream", ".*", "$job", ".*").Replace(l.Expr))
			}
		}
	}
	i := 0
	empty := func() (all []string) {
		i++
		w.status.Store([]int32{200, 200, 503}[i%3])
		w.everything(i)
		for _, q := range queries {
			if !slices.ContainsFunc(p.query(q), func(s sample) bool { return s.Value[1] != "NaN" }) {
				all = append(all, q)
			}
		}
		return all
	}
	last := empty()
	// A single caller never waits. So this makes more simultaneous calls than the burst.
	for end := time.Now().Add(2 * served.Patience); len(last) > 0 && time.Now().Before(end); last = empty() {
		w.call(1200, "GET", "/api/wait", "")
	}
	for _, q := range last {
		t.Errorf("nothing comes of %s", q)
	}
	if len(queries) < 40 {
		t.Errorf("%d queries were tried", len(queries))
	}
}

var lengths = regexp.MustCompile(`(\[|for: |: )(\d+)(m|h)\b`)

// faster shortens a minute in the rules to a second.
func faster(text []byte) []byte {
	return lengths.ReplaceAllFunc(text, func(l []byte) []byte {
		return []byte(strings.NewReplacer("m", "s", "h", "m").Replace(string(l)))
	})
}

// No preset alerts at rest: a weir with an upstream of each preset stays idle until all delays of alerts have passed. A minute
// of the rules is a second.
func TestNoPresetAlertsAtRest(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(up.Close)
	text := "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n"
	presets := config.Presets()
	for _, name := range presets {
		text += fmt.Sprintf("  %s: {url: %q, preset: %s}\n", name, up.URL, name)
	}
	if len(presets) < 10 {
		t.Fatalf("presets are %q", presets)
	}
	w := served.Start(t, text, "AWS_ACCESS_KEY_ID=AKIA", "AWS_SECRET_ACCESS_KEY=x", "AWS_REGION=eu-west-1")
	p := newWatch(t, w.Serve.Admin, "", faster(rules.Prometheus(rules.Options{Cost: 1})))
	begin := time.Now()
	p.until("fifteen minutes have passed", func() bool { return time.Since(begin) > 15*time.Second })
	if n := p.query("count(weir_breakers)"); len(n) != 1 || n[0].Value[1] != fmt.Sprint(3*len(presets)) {
		t.Errorf("upstreams were not seen: %v", n)
	}
	for _, a := range p.query(notDown) {
		t.Errorf("%v", a.Metric)
	}
}

// A hook receives Alertmanager's notifications.
type hook struct {
	mu    sync.Mutex
	heard map[string]told // by alert
}

type told struct {
	Status      string
	Labels      map[string]string
	Annotations map[string]string
	StartsAt    time.Time
	at          time.Time
}

func (h *hook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var m struct{ Alerts []told }
	_ = json.NewDecoder(r.Body).Decode(&m)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range m.Alerts {
		if name := a.Labels["alertname"]; a.Status == "firing" && h.heard[name].at.IsZero() {
			a.at = time.Now()
			h.heard[name] = a
		}
	}
}

func (h *hook) of(name string) told {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heard[name]
}

// A fault of the upstream reaches a webhook through Prometheus and Alertmanager with the released rules. The notification has
// the runbook's URL. Alerts that follow from an open breaker are inhibited. A minute of the rules is a second. promtool tests
// the original times (observe/rules).
func TestAFaultReachesTheWebhook(t *testing.T) {
	t.Parallel()
	h := &hook{heard: make(map[string]told)}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	w := newWhole(t)
	dir, manager := t.TempDir(), address(t)
	file := strings.NewReplacer("http://127.0.0.1:9095/", web.URL, "group_wait: 10s", "group_wait: 0s", "group_interval: 1m", "group_interval: 1s").Replace(string(rules.Alertmanager()))
	if err := os.WriteFile(filepath.Join(dir, "alertmanager.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	background(t, dir, "prometheus-alertmanager", "--config.file=alertmanager.yaml", "--storage.path=data", "--cluster.listen-address=", "--web.listen-address="+manager)
	p := newWatch(t, w.Serve.Admin, manager, faster(rules.Prometheus(rules.Options{})))
	p.until("Alertmanager is ready", func() bool { var all []any; return get("http://"+manager+"/api/v2/alerts", &all) })
	for i := range 3 {
		w.everything(i)
	}
	w.status.Store(503)
	begin := time.Now()
	p.until("WeirBreakerOpen is heard of", func() bool {
		w.call(10, "GET", "/api/list", "")
		return !h.of("WeirBreakerOpen").at.IsZero()
	})
	open := h.of("WeirBreakerOpen")
	if want := "https://github.com/seed1158cd35/weir/blob/main/docs/runbooks/breaker-open.md"; open.Annotations["runbook_url"] != want || open.Labels["upstream"] == "" || open.Labels["severity"] != "page" {
		t.Errorf("heard %+v, want the page %s", open, want)
	}
	t.Logf("the fault to the webhook: %v, of which 1 s not closed and 5 s for; Prometheus says since %v", open.at.Sub(begin), open.StartsAt.Sub(begin))
	p.until("what follows is kept back", func() bool {
		var all []struct {
			Labels map[string]string
			Status struct{ State string }
		}
		get("http://"+manager+"/api/v2/alerts?filter=upstream%3D%22api%22", &all)
		failing := false
		for _, a := range all {
			failing = failing || a.Labels["alertname"] == "WeirUpstreamFailing" && a.Status.State == "suppressed"
		}
		w.call(10, "GET", "/api/list", "")
		return failing
	})
}

// A delivery that waits fires WeirDeliveriesWaiting for its upstream and no other. An hour is five
// seconds here, and a minute of the rules a second.
func TestWaitingDeliveryFiresAlert(t *testing.T) {
	t.Parallel()
	w := newWhole(t)
	w.status.Store(503)
	w.call(1, "POST", "/box/x", "hello")
	const hour = "weir_delivery_waiting_oldest_seconds) > 3600"
	text := string(rules.Prometheus(rules.Options{}))
	if strings.Count(text, hour) != 1 {
		t.Fatalf("the rules do not contain %q", hour)
	}
	p := newWatch(t, w.Serve.Admin, "", faster([]byte(strings.Replace(text, hour, strings.Replace(hour, "3600", "5", 1), 1))))
	const firing = `ALERTS{alertname="WeirDeliveriesWaiting",alertstate="firing"}`
	p.until("WeirDeliveriesWaiting fires", func() bool { return len(p.query(firing)) > 0 })
	if all := p.query(firing); len(all) != 1 || all[0].Metric["upstream"] != "box" {
		t.Errorf("%v, want the upstream box", all)
	}
	if oldest := p.query(`weir_delivery_waiting_oldest_seconds{upstream="box"} > 5`); len(oldest) != 1 {
		t.Errorf("it fires before the delivery has waited for 5 s: %v", p.query("weir_delivery_waiting_oldest_seconds"))
	}
}
