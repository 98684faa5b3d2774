package learn

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/observe/logs"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// refused is an upstream's throttle.
type refused struct{ error }

func (refused) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown", Undone: true}
}

// logged writes weir's log of attempts while callers request more than an upstream with a known limit accepts.
func logged(t *testing.T, rate, burst float64, writers ...io.Writer) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &tank{rate: rate, burst: burst}
		var up []*weir.Upstream
		for _, w := range writers {
			log := slog.New(slog.NewJSONHandler(w, nil))
			u, err := weir.New("api", weir.Policy{Retry: retry.Config{Attempts: 1}}, weir.Options{Events: weir.Tee(logs.Events(log), logs.Attempts(log))})
			if err != nil {
				t.Fatal(err)
			}
			up = append(up, u)
		}
		r := rand.New(rand.NewPCG(1, 2))
		for i, part := range wave(rate, 2) {
			for end := time.Now().Add(time.Minute); time.Now().Before(end); {
				time.Sleep(time.Duration(r.ExpFloat64() / part * float64(time.Second)))
				at := time.Now()
				ok := b.take(at, 1)
				took := time.Duration(20+r.IntN(300)) * time.Millisecond
				go func() {
					_, _ = weir.Do(context.Background(), up[(i+int(took/time.Millisecond))%len(up)], weir.Call{Safe: true}, func(context.Context) (int, error) {
						if !ok {
							return 0, refused{errors.New("slow down")}
						}
						time.Sleep(took)
						return 0, nil
					})
				}()
			}
		}
		time.Sleep(time.Minute)
	})
}

func TestWeirsOwnLogTellsTheLimit(t *testing.T) {
	var one, two bytes.Buffer
	z := gzip.NewWriter(&two)
	logged(t, 40, 60, &one, z)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	l := New()
	read, err := l.Logs(&one, &two)
	if err != nil || read.Strange != 0 || read.Attempts < 15000 || read.Throttles == 0 {
		t.Errorf("%+v, %v", read, err)
	}
	f := only(t, l)
	if len(f.Limits) != 1 || f.Limits[0].Operation != "" || !near(f.Limits[0].Rate.PerSecond(), 40, 0.03) || !near(float64(f.Limits[0].Rate.Burst), 60, 0.15) {
		t.Errorf("%v\n%s", f.Limits, strings.Join(f.Says, "\n"))
	}
	if f.Flight < 40*0.25 || f.Flight > 40*0.5 {
		t.Errorf("%v in flight at 40/s of 0.02 to 0.32 s each", f.Flight)
	}
}

const good = `{"time":"2026-03-01T12:00:%02d.5Z","level":"INFO","msg":"attempt","upstream":"api","operation":"put","attempt":1,"class":"ok","took":0.1,"usage":{"tokens":7},"key":"tenant=a"}` + "\n"

// Lines from other programs do not affect the result.
func TestHostileLines(t *testing.T) {
	bad := []string{
		"", "null\n", "[]\n", "{\n", "{}\n", "\x00\xff\xfe\n", `"attempt"` + "\n", strings.Repeat("[", 60000) + "\n", strings.Repeat("x", 1<<20) + "\n",
		strings.Replace(fmt.Sprintf(good, 1), "0.1", "-5", 1), strings.Replace(fmt.Sprintf(good, 1), "0.1", "1e300", 1), strings.Replace(fmt.Sprintf(good, 1), "2026", "9999", 1),
		strings.Replace(fmt.Sprintf(good, 1), "2026", "0001", 1), strings.Replace(fmt.Sprintf(good, 1), `"ok"`, `"fine"`, 1), strings.Replace(fmt.Sprintf(good, 1), ":7", ":-7", 1),
		strings.Replace(fmt.Sprintf(good, 1), ":7", ":9223372036854775807", 1), strings.Replace(fmt.Sprintf(good, 1), "tenant=a", strings.Repeat("k=v,", 2000), 1),
		strings.Replace(fmt.Sprintf(good, 1), `"class":"ok",`, "", 1), strings.Replace(fmt.Sprintf(good, 1), "attempt\"", "refused\",\"suppressed\":-4", 1),
		strings.Replace(fmt.Sprintf(good, 1), "attempt\"", "refused\",\"suppressed\":9223372036854775807", 1),
		strings.Replace(fmt.Sprintf(good, 1), "attempt\"", "log lines dropped\",\"dropped\":9223372036854775807", 1),
	}
	text := fmt.Sprintf(good, 1) + strings.Join(bad, "") + fmt.Sprintf(good, 2) + `{"time":"2026-03-01T12:00:02Z","msg":"log lines dropped","dropped":17}` + "\n" +
		`{"time":"2026-03-01T12:00:02Z","msg":"refused","upstream":"api","limit":"all","suppressed":4}` + "\n" + strings.TrimSuffix(fmt.Sprintf(good, 3), "\n")
	l := New()
	read, err := l.Logs(strings.NewReader(text))
	if err != nil || read.Attempts != 3 || read.Strange < 18 || read.Long != 1 || read.Dropped != 17 {
		t.Errorf("%+v, %v", read, err)
	}
	if u := l.upstreams["api"]; u.calls.taken != 3 || u.tokens.amount != 21 || u.refused["all"] != 5 || len(l.upstreams) != 1 {
		t.Errorf("%+v", u)
	}
	for _, broken := range []string{"\x1f\x8b\x08\x00garbage", "\x1f\x8b"} {
		if _, err := New().Logs(strings.NewReader(broken)); err == nil {
			t.Errorf("%q: no error", broken)
		}
	}
}

// endless is a log of very many upstreams, operations and keys, generated while it is read.
type endless struct {
	n, most int
	left    []byte
	heap    uint64 // bytes of the heap while it was read
}

func (e *endless) Read(b []byte) (int, error) {
	if len(e.left) == 0 {
		if e.n == e.most {
			return 0, io.EOF
		}
		e.n++
		class := "ok"
		if e.n%3 == 0 {
			class = "throttled"
		}
		at := begin.Add(time.Duration(e.n) * time.Millisecond)
		e.left = fmt.Appendf(nil, `{"time":%q,"msg":"attempt","upstream":"u%d","operation":"o%d","class":%q,"took":0.01,"key":"tenant=%d,user=%d"}`+"\n", at.Format(time.RFC3339Nano), e.n%200, e.n%5000, class, e.n%70000, e.n)
		if e.n%10000 == 0 {
			runtime.GC() // the remaining memory is in use
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			e.heap = max(e.heap, m.HeapAlloc)
		}
	}
	n := copy(b, e.left)
	e.left = e.left[n:]
	return n, nil
}

func TestMemoryIsBoundedWhateverIsRead(t *testing.T) {
	e := &endless{most: 150_000}
	l := New()
	read, err := l.Logs(e)
	if err != nil || read.Attempts != 150_000 || len(l.upstreams) != mostUpstreams || l.others == 0 {
		t.Errorf("%+v, %v, %d upstreams", read, err, len(l.upstreams))
	}
	t.Logf("%d MiB at most", e.heap>>20)
	if e.heap > 128<<20 {
		t.Errorf("%d MiB were in use", e.heap>>20)
	}
	parts := 0
	for _, u := range l.upstreams {
		for _, of := range u.parts {
			parts += len(of)
		}
	}
	if parts > mostParts {
		t.Errorf("%d parts, want %d at most", parts, mostParts)
	}
}

// Logs detects a clock that was set back, and separates the data before and after.
func TestAClockThatIsSetBack(t *testing.T) {
	var b strings.Builder
	tank := &tank{rate: 50, burst: 20}
	n := 0
	simple(7, wave(50, 10), tank.take, 0).play(func(c Call) {
		n++
		at := c.At
		if n > 80000 {
			at = at.Add(-20 * time.Minute)
		}
		fmt.Fprintf(&b, `{"time":%q,"msg":"attempt","upstream":"api","class":%q,"took":0.001}`+"\n", at.Format(time.RFC3339Nano), c.Class)
	})
	l := New()
	read, err := l.Logs(strings.NewReader(b.String()))
	f := only(t, l)
	if err != nil || read.Backward != 1 || len(f.Limits) != 1 || !near(f.Limits[0].Rate.PerSecond(), 50, 0.03) || f.Limits[0].Unit != limit.Requests {
		t.Errorf("%+v %v %v\n%s", read, err, f.Limits, strings.Join(f.Says, "\n"))
	}
}
