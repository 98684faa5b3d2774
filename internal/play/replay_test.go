package play_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/play"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/retry"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// weirLog returns a log of weir: an attempt of 50 ms of a tenant at each time.
func weirLog(tenant, class string, at ...time.Duration) string {
	var b strings.Builder
	for _, d := range at {
		fmt.Fprintf(&b, `{"time":%q,"level":"INFO","msg":"attempt","upstream":"api","operation":"default","attempt":1,"class":%q,"took":0.05,"key":"tenant=%s"}`+"\n",
			noon.Add(d+50*time.Millisecond).Format(time.RFC3339Nano), class, tenant)
	}
	return b.String()
}

// every returns times at a fixed distance.
func every(d, from, to time.Duration) (all []time.Duration) {
	for ; from < to; from += d {
		all = append(all, from)
	}
	return all
}

func way(name string, p weir.Policy) play.ReplayWay {
	return play.ReplayWay{Name: name, Targets: []play.Target{{Name: "api", Policy: p}}}
}

func replay(t *testing.T, log string, ways ...play.ReplayWay) *play.Replayed {
	t.Helper()
	x, err := tryReplay(t.Context(), log, ways...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func tryReplay(ctx context.Context, log string, ways ...play.ReplayWay) (*play.Replayed, error) {
	rec, err := play.NewRecording("log", strings.NewReader(log), 1)
	if err != nil {
		return nil, err
	}
	rec.Route = func(host, path string) (string, string, bool) {
		rest, ok := strings.CutPrefix(path, "/api")
		return "api", rest, ok
	}
	return (&play.Replay{Seed: 1, Ways: ways}).Play(ctx, rec)
}

// figures formats the figures of a flow without its waits.
func figures(f *play.Flow) string {
	return fmt.Sprintf("%d calls, %d answered, %d sent, %d refused, %d throttled, %d failed", f.Calls, f.Answered, f.Sent, f.Refused, f.Throttled, f.Failed)
}

func TestReplayCountsPerTenantWhatEachConfigurationDoes(t *testing.T) {
	t.Parallel()
	log := weirLog("loud", "ok", every(100*time.Millisecond, 0, 20*time.Second)...) + weirLog("quiet", "ok", every(time.Second, 0, 20*time.Second)...)
	limits := []limit.Limit{{Name: "tenant", Scope: "tenant", Rate: bucket.Rate{Amount: 5, Per: time.Second, Burst: 5}}}
	refuses, waits := way("refuses", weir.Policy{Limits: limits, MaxWait: -1}), way("waits", weir.Policy{Limits: limits, MaxWait: time.Minute})
	x := replay(t, log, refuses, waits)
	u := x.Upstreams[0]
	if len(x.Upstreams) != 1 || len(u.Clients) != 2 || x.Calls != 220 || x.Lines != 220 || x.From != "2026-11-30 12:00:00" {
		t.Fatalf("got %+v", x)
	}
	for i, want := range []string{
		"200 calls, 200 answered, 200 sent, 0 refused, 0 throttled, 0 failed",
		"200 calls, 104 answered, 104 sent, 96 refused, 0 throttled, 0 failed", // a burst of 5, then one each 200 ms
		"200 calls, 200 answered, 200 sent, 0 refused, 0 throttled, 0 failed",
	} {
		if got := figures(u.Clients[0].Flows[i]); u.Clients[0].Client != "tenant=loud" || got != want {
			t.Errorf("%s, %s: got %s\nwant %s", u.Clients[0].Client, u.Clients[0].Flows[i].Way, got, want)
		}
	}
	loud, quiet := u.Clients[0].Flows, u.Clients[1].Flows
	// The last of 200 calls has its turn after (200-5)/5 s, and was made after 19.9 s.
	if p50, p99 := *loud[2].WaitP50, *loud[2].WaitP99; *loud[1].WaitP99 != 0 || p50 < 9000 || p50 > 10_500 || p99 < 18_500 || p99 > 20_000 {
		t.Errorf("waits %v, %v and %v", *loud[1].WaitP99, p50, p99)
	}
	if *quiet[1].WaitP99+*quiet[2].WaitP99 != 0 || quiet[1].Refused+quiet[2].Refused != 0 || quiet[0].WaitP50 != nil {
		t.Errorf("the quiet tenant: %+v, %+v", quiet[1], quiet[2])
	}
	alone := replay(t, log, waits)
	if a, b := asJSON(t, alone.Upstreams[0].Total.Flows[1]), asJSON(t, u.Total.Flows[2]); a != b {
		t.Errorf("with another configuration beside it the result is\n%s\nalone\n%s", b, a)
	}
	if a, b := asJSON(t, replay(t, log, refuses, waits)), asJSON(t, x); a != b {
		t.Errorf("the same seed gives\n%s\n%s", a, b)
	}
}

func asJSON(t *testing.T, x any) string {
	t.Helper()
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// An upstream that throttled half of the attempts of each second throttles none of a configuration with that rate.
func TestReplayThrottlesAsRecorded(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for s := range 20 {
		at := every(50*time.Millisecond, time.Duration(s)*time.Second, time.Duration(s+1)*time.Second)
		log.WriteString(weirLog("a", "ok", at[:10]...) + weirLog("a", "throttled", at[10:]...))
	}
	none := weir.Policy{Retry: retry.Config{Attempts: 1}}
	shaped := none
	shaped.Limits, shaped.MaxWait = rate(10, 1), time.Minute
	x := replay(t, log.String(), way("none", none), way("shaped", shaped))
	for i, want := range []string{
		"400 calls, 200 answered, 400 sent, 0 refused, 200 throttled, 0 failed",
		"400 calls, 200 answered, 400 sent, 0 refused, 200 throttled, 0 failed",
		"400 calls, 400 answered, 400 sent, 0 refused, 0 throttled, 0 failed",
	} {
		if got := figures(x.Upstreams[0].Total.Flows[i]); got != want {
			t.Errorf("%s: got %s\nwant %s", x.Upstreams[0].Total.Flows[i].Way, got, want)
		}
	}
}

// A breaker sends little to an upstream that failed for half a minute.
func TestReplayFailsAsRecorded(t *testing.T) {
	t.Parallel()
	log := weirLog("a", "ok", every(50*time.Millisecond, 0, 10*time.Second)...) +
		weirLog("a", "failed", every(50*time.Millisecond, 10*time.Second, 40*time.Second)...) +
		weirLog("a", "ok", every(50*time.Millisecond, 40*time.Second, 60*time.Second)...)
	plain := weir.Policy{Retry: retry.Config{Attempts: 1}}
	plain.Breaker.Off = true
	x := replay(t, log, way("plain", plain), way("default", weir.Policy{}))
	f := x.Upstreams[0].Total.Flows
	if got, want := figures(f[1]), "1200 calls, 600 answered, 1200 sent, 0 refused, 0 throttled, 600 failed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if f[2].Failed > 150 || f[2].Refused < 400 || f[2].Answered < 400 {
		t.Errorf("with a breaker: %s", figures(f[2]))
	}
}

// Calls happen at their own wall clock, so a daily limit begins at midnight. Hours without calls cost nothing.
func TestReplayKeepsTheCalendarAndSkipsHoles(t *testing.T) {
	t.Parallel()
	const midnight = 12 * time.Hour
	log := weirLog("a", "ok", midnight-2*time.Second, midnight-time.Second, midnight+time.Second, midnight+24*time.Hour, midnight+40*24*time.Hour)
	daily := []limit.Limit{{Name: "daily", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1}, Every: bucket.Day}}
	x := replay(t, log, way("daily", weir.Policy{Limits: daily, MaxWait: -1}))
	if got, want := figures(x.Upstreams[0].Total.Flows[1]), "5 calls, 4 answered, 4 sent, 1 refused, 0 throttled, 0 failed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A call that waited in weir begins before its attempt. A call that weir refused is played again, but not the retry of
// a call that was sent.
func TestReplayPlaysCallsThatWaitedOrWereRefused(t *testing.T) {
	t.Parallel()
	line := func(at time.Duration, rest string) string {
		return fmt.Sprintf(`{"time":%q,"upstream":"api",%s}`+"\n", noon.Add(at).Format(time.RFC3339Nano), rest)
	}
	log := line(10*time.Second, `"msg":"attempt","class":"ok","attempt":1,"waited":9,"took":1,"key":"tenant=a","id":"1"`) +
		line(11*time.Second, `"msg":"refused","limit":"tenant","key":"a","waited":5,"id":"2"`) +
		line(12*time.Second, `"msg":"attempt","class":"failed","attempt":1,"key":"tenant=a","id":"3"`) +
		line(13*time.Second, `"msg":"attempt","class":"failed","attempt":2,"key":"tenant=a","id":"3"`) +
		line(13*time.Second, `"msg":"refused","limit":"tenant","key":"a","id":"3","suppressed":4`) +
		line(14*time.Second, `"msg":"breaker opened"`) + line(14*time.Second, `"msg":"log lines dropped","dropped":3`)
	tenant := []limit.Limit{{Name: "tenant", Scope: "tenant", Rate: bucket.Rate{Amount: 1, Per: 4 * time.Second, Burst: 1}}}
	x := replay(t, log, way("file", weir.Policy{Limits: tenant, MaxWait: -1, Retry: retry.Config{Attempts: 1}}))
	u := x.Upstreams[0]
	if x.From != "2026-11-30 12:00:00" || x.Suppressed != 7 || len(u.Clients) != 1 || u.Clients[0].Client != "tenant=a" {
		t.Errorf("got %s", asJSON(t, x))
	}
	if got, want := figures(u.Total.Flows[0]), "3 calls, 1 answered, 3 sent, 1 refused, 0 throttled, 2 failed"; got != want {
		t.Errorf("recorded: got %s, want %s", got, want)
	}
	if got, want := figures(u.Total.Flows[1]), "3 calls, 2 answered, 3 sent, 0 refused, 0 throttled, 1 failed"; got != want { // after 0, 6 and 12 s
		t.Errorf("got %s, want %s", got, want)
	}
}

// The cost of answers is reported in dollars, for each tenant and configuration. Refused calls cost nothing.
func TestReplayReportsDollarsPaid(t *testing.T) {
	t.Parallel()
	priced := func(tenant, class string, at ...time.Duration) string {
		return strings.ReplaceAll(weirLog(tenant, class, at...), `"key"`, `"usage":{"usd":250000},"key"`)
	}
	seconds := every(time.Second, 0, 10*time.Second)
	log := priced("a", "ok", seconds...) + priced("b", "ok", seconds[0]) + weirLog("b", "ok", seconds[1]) + priced("b", "rejected", seconds[2])
	budget := []limit.Limit{{Name: "day", Shape: limit.Calendar, Unit: limit.USD, Rate: bucket.Rate{Amount: 1_000_000}, Every: bucket.Day, Scope: "tenant"}}
	x := replay(t, log, way("free", weir.Policy{}), way("budget", weir.Policy{Limits: budget, MaxWait: -1}))
	u := x.Upstreams[0]
	for i, want := range []string{"2.75 2.75 1.25", "2.50 2.50 1.00", "0.2500 0.2500 0.2500"} {
		f := append([]*play.Row{u.Total}, u.Clients...)[i].Flows
		got := fmt.Sprintf("%v %v %v", *f[0].PaidUSD, *f[1].PaidUSD, *f[2].PaidUSD)
		for _, text := range strings.Fields(want) {
			if !strings.Contains(x.Text(), " "+text+"\n") {
				t.Errorf("%s is missing in %s", text, x.Text())
			}
		}
		if want = strings.NewReplacer("50 ", "5 ", "1.00", "1", "0.2500", "0.25", "2.50", "2.5").Replace(want); got != want {
			t.Errorf("row %d: got %s, want %s", i, got, want)
		}
	}
	for line := range strings.Lines(x.Text()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if x := replay(t, weirLog("a", "ok", 0), way("file", weir.Policy{})); strings.Contains(x.Text()+asJSON(t, x), "paid") {
		t.Errorf("a recording without costs: %s", x.Text())
	}
}

func TestReplayShowsLongWaitsInSeconds(t *testing.T) {
	t.Parallel()
	slow := []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1, Per: 2000 * time.Second, Burst: 1}}}
	x := replay(t, weirLog("a", "ok", 0, 0), way("slow", weir.Policy{Limits: slow, MaxWait: time.Hour, Timeouts: weir.Timeouts{Call: 2 * time.Hour}}))
	if text := x.Text(); !strings.Contains(text, " 2013 s\n") {
		t.Errorf("want a wait of 2000 s, in steps of the histogram: %s", text)
	}
}

// At most 100,000 calls may be in progress, of all configurations together.
func TestReplayBoundsCallsInProgress(t *testing.T) {
	log := strings.ReplaceAll(weirLog("a", "ok", every(100*time.Microsecond, 0, 5010*time.Millisecond)...), `"took":0.05`, `"took":9`)
	x, err := tryReplay(t.Context(), log, way("one", weir.Policy{}), way("two", weir.Policy{}))
	const want = "log:50001: more than 100000 calls wait at the same time, at 2026-11-30 11:59:56: "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, %v\nwant %q", x, err, want)
	}
}

func access(before string, at time.Duration, request string, status int) string {
	return fmt.Sprintf("%s - - [%s] \"%s\" %d 5 \"-\" \"curl/8 \\\"x\\\"\"\n", before, noon.Add(at).Format("02/Jan/2006:15:04:05 -0700"), request, status)
}

func TestReplayReadsAccessLogs(t *testing.T) {
	t.Parallel()
	log := access("10.0.0.1", 0, "GET /api/list?token=secret HTTP/1.1", 200) + access("host:80 10.0.0.1", 0, "POST /api/put HTTP/1.1", 404) +
		access("10.0.0.2", time.Second, "GET http://host/api/list HTTP/1.1", 429) + access("10.0.0.2", time.Second, "GET /api/x HTTP/1.1", 503) +
		access("10.0.0.1", time.Second, "GET /nowhere/secret HTTP/1.1", 200) + access("10.0.0.1", time.Second, `\x16\x03`, 400) + "\n" +
		strings.Replace(access("10.0.0.9", 2*time.Second, "GET /api/x HTTP/1.1", 200), "- -", "- anna", 1)
	p := weir.Policy{
		Operations: []weir.Operation{{Name: "list", Path: "/list"}}, MaxWait: -1,
		Limits: []limit.Limit{{Name: "list", Operations: []string{"list"}, Scope: "tenant", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}}},
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(log + strings.Repeat(access("10.0.0.1", 3*time.Second, "GET /api/list HTTP/1.0", 200), 2)))
	_ = z.Close()
	x := replay(t, packed.String(), way("file", p))
	u := x.Upstreams[0]
	if x.Calls != 7 || x.Skipped != 1 || x.FirstSkipped != 6 || x.Unknown["/nowhere"] != 1 || len(u.Clients) != 3 {
		t.Errorf("got %s", asJSON(t, x))
	}
	if got, want := figures(u.Total.Flows[0]), "7 calls, 5 answered, 7 sent, 0 refused, 1 throttled, 1 failed"; got != want {
		t.Errorf("recorded: got %s, want %s", got, want)
	}
	if got := u.Total.Flows[1].Refused; got != 2 {
		t.Errorf("refused %d calls of operation list, want 2", got)
	}
	if text := x.Text() + asJSON(t, x); strings.Contains(text, "secret") || strings.Contains(text, "10.0.0") || strings.Contains(text, "anna") {
		t.Errorf("a query, a path or a client is shown: %s", text)
	}
}

// Wrong recordings give an error with the number of the line. Lines that cannot be played are counted.
func TestReplayRefusesWrongRecordings(t *testing.T) {
	t.Parallel()
	ok := weirLog("a", "ok", 0)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(strings.Repeat(ok, 1000)))
	_ = z.Close()
	for name, c := range map[string]struct{ log, want string }{
		"empty":          {"", "log: is empty"},
		"blank":          {"\n \n", "log: is empty"},
		"another format": {"\nhello\nworld\n", "log:2: unknown format: want weir's log as JSON, or an access log"},
		"large":          {strings.Repeat("hello\n", 100_000), "log:1: unknown format: want"},
		"other JSON":     {`{"a":1}`, "log:1: unknown format: want"},
		"no attempts":    {`{"time":"2026-11-30T12:00:00Z","msg":"serving"}`, "log: has no attempts in 1 lines: set log: attempts in weir.yaml"},
		"no upstream":    {strings.ReplaceAll(ok, `"api"`, `"else"`), "log: has no call to an upstream in file; its calls go to else (1)"},
		"broken gzip":    {"\x1f\x8bxxxxxxxxxxx", "log: decompress: "},
		"cut gzip":       {packed.String()[:packed.Len()-20], "unexpected EOF"},
		"not sorted":     {weirLog("a", "ok", every(time.Millisecond, time.Hour, time.Hour+70*time.Second)...) + ok, "log:70001: 2026-11-30 12:00:00 is earlier than a line more than 65536 lines before it: sort the file by time"},
		"one second":     {strings.Repeat(ok, 100_001), "log:100001: more than 100000 attempts begin in the second"},
	} {
		x, err := tryReplay(t.Context(), c.log, way("file", weir.Policy{}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v\nwant %q", name, x, err, c.want)
		}
	}
	log := weirLog("a", "ok", time.Second, 0) + strings.Repeat("x", 1<<17) + "\n" + "{\"msg\":\n" +
		strings.Replace(ok, "2026-", "1926-", 1) + strings.Replace(ok, "0.05", "-1", 1) + strings.Replace(ok, "0.05", "1e300", 1) + strings.Replace(ok, `"ok"`, `"fine"`, 1)
	if x := replay(t, log, way("file", weir.Policy{})); x.Calls != 2 || x.Skipped != 6 || x.FirstSkipped != 3 || x.Lines != 8 {
		t.Errorf("got %s", asJSON(t, x))
	}
}

func TestReplayStopsWhenInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	rec, err := play.NewRecording("log", strings.NewReader(weirLog("a", "ok", every(time.Millisecond, 0, 120*time.Second)...)), 1)
	if err != nil {
		t.Fatal(err)
	}
	rec.Progress = func(int64) { cancel() }
	x, err := (&play.Replay{Ways: []play.ReplayWay{way("file", weir.Policy{})}}).Play(ctx, rec)
	if err != nil || !x.Interrupted || x.Calls == 0 || x.Calls >= 100_000 || !strings.Contains(x.Text(), "interrupted") {
		t.Errorf("got %v, %v", x, err)
	}
}

// FuzzReplay plays any text as a recording.
func FuzzReplay(f *testing.F) {
	f.Add(weirLog("a", "throttled", 0, time.Second))
	f.Add(access("10.0.0.1", 0, "GET /api/list HTTP/1.1", 200))
	f.Add(access("", 0, `GET \" /`, -1))
	f.Fuzz(func(t *testing.T, log string) {
		x, err := tryReplay(t.Context(), log, way("file", weir.Policy{Limits: rate(1, 1), MaxWait: time.Second}))
		if err == nil && x.Text() == "" {
			t.Error("no text")
		}
	})
}
