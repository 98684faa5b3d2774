package config

import (
	"log/slog"
	"strings"
	"testing"
)

func TestVariablesOfTheProcess(t *testing.T) {
	f := parse(t, "listen: nonsense\nupstreams: {a: {url: https://h}}",
		"WEIR_LISTEN", ":9000", "WEIR_ADMIN", "off", "WEIR_LOG", "warn")
	if f.Listen != ":9000" || f.Admin != "" || f.Log != slog.LevelWarn {
		t.Errorf("got %+v", f)
	}
}

func TestThrottleDisabled(t *testing.T) {
	for value, off := range map[string]bool{"false": true, "off": true, "0": true, "1": false, "true": false, "": false} {
		u := parse(t, "upstreams: {a: {url: https://h, preset: s3}}", "THROTTLE_ENABLED", value).Upstreams[0]
		if (len(u.Policy.Limits) == 0) != off {
			t.Errorf("%q: limits %v", value, u.Policy.Limits)
		}
		if u.Policy.Breaker.Off || u.Policy.Retry.Attempts != 8 || len(u.Policy.Operations) != 3 {
			t.Errorf("%q: %+v", value, u.Policy)
		}
	}
}

// The limits of callers are limits, too.
func TestThrottleDisabledIsForCallers(t *testing.T) {
	const file = "callers: true\nupstreams: {a: {url: https://h, preset: openai}}"
	for value, off := range map[string]bool{"false": true, "true": false, "": false} {
		c := parse(t, file, "THROTTLE_ENABLED", value).Callers
		if c == nil || len(c.Keys) == 0 || (len(c.Policy.Limits) == 0) != off {
			t.Errorf("%q: %+v", value, c)
		}
	}
}

func TestThrottleRatesAreNeverExceeded(t *testing.T) {
	p := policy(t, "preset: s3", "THROTTLE_PUT_RATE", "100", "THROTTLE_GET_RATE", "20/min", "THROTTLE_DELETE_RATE", "9000/s burst 5")
	for _, c := range []struct {
		name      string
		perSecond float64
		burst     int64
	}{{"put", 100, 100}, {"get", 20.0 / 60, 1}, {"delete", 9000, 5}} {
		l := limitOf(t, p, c.name)
		a := l.Adaptive.WithDefaults(l.PerSecond())
		if l.PerSecond() != c.perSecond || a.Start != c.perSecond || a.Max != c.perSecond || l.Full() != c.burst {
			t.Errorf("%s: got %v burst %d, from %v to %v; want %v burst %d", c.name, l.PerSecond(), l.Full(), a.Start, a.Max, c.perSecond, c.burst)
		}
	}
}

func TestThrottleRateFitsWhateverLimitItMeets(t *testing.T) {
	for _, l := range []string{
		"5/min", "{rate: 5/s, burst: 900}", "{rate: 5/min, shape: rolling}",
		"{rate: 100/s, adaptive: {start: 50/s, min: 40/s, max: 90/s}}",
	} {
		for _, rate := range []string{"1", "1/h", "7/s burst 3", "3000000"} {
			text := "upstreams: {a: {url: https://h, limits: {put: " + l + "}}}"
			if strings.Contains(l, "rolling") && strings.Contains(rate, "burst") {
				continue // an error, and reported as one
			}
			accepted(t, parse(t, text, "THROTTLE_PUT_RATE", rate))
		}
	}
}

func TestThrottleCircuitThreshold(t *testing.T) {
	for _, c := range []struct {
		fields                string
		failures, consecutive int
	}{{"preset: s3", 0, 9}, {"preset: http", 0, 9}, {"breaker: {failures: 3, consecutive: 4}", 9, 9}, {"max_wait: 1s", 0, 9}, {"breaker: five-a-minute", 9, 0}, {"breaker: off", 0, 0}} {
		b := policy(t, c.fields, "THROTTLE_CIRCUIT_THRESHOLD", "9").Breaker
		if b.Failures != c.failures || b.Consecutive != c.consecutive {
			t.Errorf("%s: got %+v", c.fields, b)
		}
	}
}

func TestBadVariablesAreNamed(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"WEIR_LISTEN", "here", `environment: WEIR_LISTEN: "here": want host:port; write 127.0.0.1:8080, or :8080 for every address`},
		{"WEIR_ADMIN", ":9", `environment: WEIR_ADMIN: ":9": would show upstreams, limits and keys to anyone who reaches it; use 127.0.0.1, or set admin_open: true`},
		{"WEIR_LOG", "loud", `environment: WEIR_LOG: "loud": want debug, info, warn or error`},
		{"THROTTLE_ENABLED", "perhaps", `environment: THROTTLE_ENABLED: "perhaps": want true or false`},
		{"THROTTLE_PUT_RATE", "-5", `environment: THROTTLE_PUT_RATE: "-5": must be at least 1; to stop all calls, open the breaker or remove the upstream`},
		{"THROTTLE_GET_RATE", "many", `environment: THROTTLE_GET_RATE: "many": want a whole number per second, or a rate such as 30/min`},
		{"THROTTLE_DELETE_RATE", "0", `environment: THROTTLE_DELETE_RATE: "0": must be at least 1; to stop all calls, open the breaker or remove the upstream`},
		{"THROTTLE_CIRCUIT_THRESHOLD", "0", `environment: THROTTLE_CIRCUIT_THRESHOLD: "0": must be at least 1`},
	} {
		_, err := Parse("weir.yaml", []byte("upstreams: {a: {url: https://h, preset: s3}}"), setting([]string{c.name, c.value}))
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestEveryVariableIsListed(t *testing.T) {
	var names []string
	for _, v := range variables {
		names = append(names, v.Name)
	}
	const want = "WEIR_LISTEN WEIR_ADMIN WEIR_LOG THROTTLE_ENABLED THROTTLE_PUT_RATE THROTTLE_GET_RATE THROTTLE_DELETE_RATE THROTTLE_CIRCUIT_THRESHOLD"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
