package config

import (
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

var retryFields = []field[retry.Config]{
	{"schedule", "a name", "none", "Schedule that the other fields modify.", func(*decoder, *node, *retry.Config) {}},
	one("attempts", count[int](1), func(c *retry.Config) *int { return &c.Attempts }, "3", "Attempts, including the first. 1 turns retries off."),
	one("base", duration, func(c *retry.Config) *time.Duration { return &c.Base }, "100ms", "Upper bound of the first delay; doubles with each attempt."),
	one("throttle_base", duration, func(c *retry.Config) *time.Duration { return &c.ThrottleBase }, "`base`", ""),
	one("cap", duration, func(c *retry.Config) *time.Duration { return &c.Cap }, "20s", "Longest delay before jitter."),
	one("jitter", named[retry.Jitter](jitters), func(c *retry.Config) *retry.Jitter { return &c.Jitter }, "full", "Kind of randomness in delays."),
	one("low", number, func(c *retry.Config) *float64 { return &c.Low }, "0.5", ""),
	one("high", number, func(c *retry.Config) *float64 { return &c.High }, "1.5", ""),
	one("added", duration, func(c *retry.Config) *time.Duration { return &c.Added }, "500ms", ""),
	one("max_hint", duration, func(c *retry.Config) *time.Duration { return &c.MaxHint }, "60s", ""),
	one("hint_slack", orOff(duration, 0), func(c *retry.Config) *time.Duration { return &c.HintSlack }, "off", ""),
	one("retry_on", listOf(outcomeClass), func(c *retry.Config) *[]outcome.Class { return &c.RetryOn }, "throttled, failed, unknown", ""),
	one("codes", listOf(code), func(c *retry.Config) *[]string { return &c.Codes }, "none", "Codes to retry regardless of class."),
	one("not_codes", listOf(code), func(c *retry.Config) *[]string { return &c.NotCodes }, "none", ""),
}

const jitters = "full, none, equal, decorrelated, range or added"

var outcomeClass = form[outcome.Class]{"classes", named[outcome.Class]("throttled, failed, unknown or rejected").read}

func readRetry(d *decoder, n *node, u *site) { u.Policy.Retry = d.retry(n) }

func readAskAgain(d *decoder, n *node, u *site) {
	if !isOff(n) {
		u.Policy.AskAgain = d.retry(n).WithDefaults()
	}
}

func (d *decoder) retry(n *node) retry.Config {
	if isOff(n) {
		return retry.Config{Attempts: 1}
	}
	c := schedule(d, n, retry.Schedule, retry.Schedules())
	object(d, n, retryFields, &c)
	return c
}

// schedule returns the schedule that the field names. It returns the zero value if the field is missing.
func schedule[C any](d *decoder, n *node, named func(string) (C, bool), names []string) (c C) {
	at := n.Get("schedule")
	if at == nil {
		return c
	}
	s, ok := d.Str(at, "the name of a schedule")
	if !ok {
		return c
	}
	if c, ok = named(s); !ok {
		d.Unknown(at, "schedule", s, names)
	}
	return c
}

var budgetFields = []field[retry.BudgetConfig]{
	one("share", share, func(c *retry.BudgetConfig) *float64 { return &c.Share }, "10%", "Retries per first attempt."),
	one("floor", perSecond, func(c *retry.BudgetConfig) *float64 { return &c.Floor }, "1/s", ""),
	one("window", duration, func(c *retry.BudgetConfig) *time.Duration { return &c.Window }, "10s", ""),
	one("all", orOff(rate, bucket.Rate{}), func(c *retry.BudgetConfig) *bucket.Rate { return &c.All }, "no bound", "Rate of the retries of all processes together (with a `store`). `share` or `quota` must also allow each retry. `100/min` is a bound for any minute; `100/min burst 20` allows 20 at a time."),
}

func readBudget(d *decoder, n *node, u *site) {
	if isOff(n) {
		u.Policy.Budget.Off = true
		return
	}
	object(d, n, budgetFields, &u.Policy.Budget)
}

var quotaFields = []field[retry.QuotaConfig]{
	{"schedule", "a name", "none", "", func(*decoder, *node, *retry.QuotaConfig) {}},
	one("capacity", count[int64](1), func(c *retry.QuotaConfig) *int64 { return &c.Capacity }, "500", ""),
	one("retry", count[int64](1), func(c *retry.QuotaConfig) *int64 { return &c.Retry }, "14", ""),
	one("throttle", count[int64](1), func(c *retry.QuotaConfig) *int64 { return &c.Throttle }, "5", ""),
	one("timeout", count[int64](1), func(c *retry.QuotaConfig) *int64 { return &c.Timeout }, "as `retry`", ""),
	one("success", count[int64](1), func(c *retry.QuotaConfig) *int64 { return &c.Success }, "1", ""),
	one("timeout_codes", listOf(code), func(c *retry.QuotaConfig) *[]string { return &c.TimeoutCodes }, "RequestTimeout, RequestTimeoutException, timeout", ""),
}

func readQuota(d *decoder, n *node, u *site) {
	if isOff(n) {
		return
	}
	c := schedule(d, n, retry.QuotaSchedule, retry.QuotaSchedules())
	object(d, n, quotaFields, &c)
	c.TimeoutCodes = slices.Clone(c.TimeoutCodes)
	u.Policy.Quota = &c
}
