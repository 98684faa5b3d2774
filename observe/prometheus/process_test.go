package weirprom

import (
	"crypto/x509"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

func processEverything(reg prometheus.Registerer) *Process {
	return NewProcess(reg, "v1.2.3", func() map[string]int { return map[string]int{"": 0, "s3": 1} },
		func() *x509.Certificate {
			return &x509.Certificate{NotBefore: time.Unix(1000, 0), NotAfter: time.Unix(2000, 0)}
		})
}

func TestAReloadThatFailsIsSeenUntilOneSucceeds(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	p := processEverything(reg)
	check(t, reg, 1, "weir_config_reload_successful")
	p.Reloaded(errors.New("a mistake"))
	check(t, reg, 0, "weir_config_reload_successful")
	p.Reloaded(nil)
	check(t, reg, 1, "weir_config_reload_successful")
	check(t, reg, 2000, "weir_certificate_not_after_timestamp_seconds")
	check(t, reg, 1, "weir_problems", "s3")
	check(t, reg, 0, "weir_problems", "")
}

// An alert cannot see the increase of a counter that first appears with 1.
func TestWhatAlertsReadIsThereBeforeItHappens(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	put := perSecond("put", "", 10)
	put.Operations = []string{"put"}
	day := limit.Limit{Name: "day", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 3}, Every: bucket.Day}
	m.Watch(newUpstream(t, "s3", weir.Policy{Limits: []limit.Limit{put, day}}, weir.Options{Events: m.Events()}))
	check(t, reg, 0, "weir_violations_total", "put", "put", "s3")
	check(t, reg, 0, "weir_calls_given_up_total", "put", "budget", "s3")
	check(t, reg, 0, "weir_calls_total", "default", "failed", "s3")
	check(t, reg, 0, "weir_attempts_total", "throttled", "put", "s3")
	check(t, reg, 0, "weir_decisions_total", "rate_limited", "put", "put", "s3")
	check(t, reg, 0, "weir_decisions_total", "circuit_open", "", "put", "s3")
	check(t, reg, 10, "weir_wait_max_seconds", "s3")
	check(t, reg, 0, "weir_quota_used_ratio", "day", "s3")
}

// Of many upstreams, those without calls have few series while nothing holds their calls back.
func TestManyUpstreamsWithoutCallsHaveFewSeries(t *testing.T) {
	const n = completeUpstreams + 1
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	var all []*weir.Upstream
	for i := range n {
		u := newUpstream(t, fmt.Sprint(i), weir.Policy{Limits: []limit.Limit{perSecond("put", "", 10)}}, weir.Options{Events: m.Events()})
		m.Watch(u)
		all = append(all, u)
	}
	if got, err := testutil.GatherAndCount(reg); err != nil || got > 4*n {
		t.Errorf("%d series, %v", got, err)
	}
	p, _ := try(all[0], weir.Call{})
	p.Report(outcome.Outcome{Class: outcome.OK})
	all[1].Breaker("").ForceOpen(clock.System.Now(), time.Minute)
	check(t, reg, 1, "weir_attempts_total", "ok", "default", "0")
	check(t, reg, 0, "weir_calls_total", "default", "failed", "0")
	check(t, reg, 1, "weir_breakers", "open", "1")
	check(t, reg, 10, "weir_limit_configured_rate", "put", "1")
	check(t, reg, -1, "weir_limit_configured_rate", "put", "2")
}
