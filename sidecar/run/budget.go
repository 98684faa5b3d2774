package run

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
)

// runScope is the scope of limits that apply to each run.
const runScope = "run"

// runHeader contains the name of a run, if no file names another header. weir replaces what the command sends, so the
// command cannot use the budget of another run.
const runHeader = "X-Agent-Run"

// A budget is the largest amount of each unit that a run may use in 24 hours. Zero amounts are not limited.
type budget struct {
	calls, tokens int64
	dollars       string // a decimal number; "" means no limit
}

// budgetPart is an amount and its unit.
var budgetPart = regexp.MustCompile(`^(\d+(?:\.\d{1,6})?) ?([A-Za-z]+)$`)

// parseBudget reads a budget such as "5 USD, 500 calls".
func parseBudget(text string) (b budget, err error) {
	bad := func(part, why string) (budget, error) {
		return budget{}, fmt.Errorf("budget %q: %s: write amounts with their units, such as --budget \"5 USD, 500 calls, 2000000 tokens\"", part, why)
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		m := budgetPart.FindStringSubmatch(part)
		if m == nil {
			return bad(part, "is not an amount with a unit")
		}
		amount, unit := m[1], strings.ToLower(m[2])
		if strings.Trim(amount, "0.") == "" {
			return bad(part, "is zero")
		}
		to := &b.calls
		switch strings.TrimSuffix(unit, "s") {
		case "usd":
			if b.dollars != "" {
				return bad(part, "repeats a unit")
			}
			b.dollars = amount
			continue
		case "call":
		case "token":
			to = &b.tokens
		default:
			return bad(part, "has an unknown unit")
		}
		if *to != 0 {
			return bad(part, "repeats a unit")
		}
		if *to, err = strconv.ParseInt(amount, 10, 64); err != nil || *to > mostAmount {
			return bad(part, fmt.Sprintf("is not a whole number up to %d", int64(mostAmount)))
		}
	}
	return b, nil
}

// mostAmount is the largest amount of calls and tokens.
const mostAmount = 1_000_000_000_000

// write writes the limits of the budget as the callers section of a configuration.
func (b budget) write(to *strings.Builder) {
	fmt.Fprintf(to, "callers:\n  keys: {run: \"header:%s\"}\n  max_wait: 1m\n  limits:\n    global: off\n    user: off\n    user-day: off\n", runHeader)
	if b.dollars != "" {
		fmt.Fprintf(to, "    run-money: {amount: %s, window: 24h, unit: usd, scope: run}\n", b.dollars)
	}
	if b.calls > 0 {
		fmt.Fprintf(to, "    run-calls: {rate: %d/24h, shape: rolling, scope: run}\n", b.calls)
	}
	if b.tokens > 0 {
		fmt.Fprintf(to, "    run-tokens: {rate: %d/24h, shape: rolling, unit: tokens, scope: run}\n", b.tokens)
	}
}

// runName is what a name of a run may contain: it becomes a header and a key.
var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// name checks the name of the run, or chooses a random one.
func (o *Options) name() error {
	if o.Run == "" {
		o.Run = "run-" + strings.ToLower(rand.Text()[:12])
	}
	if !runName.MatchString(o.Run) {
		return fmt.Errorf("run %q: a name has up to 64 letters, digits, dots, hyphens and underscores, and starts with a letter or a digit", o.Run)
	}
	return nil
}

// used returns what the run has used of its limits, such as "0.84 of 5.00 USD".
func used(limits []weir.LimitView) (parts []string) {
	for _, v := range limits {
		l := v.Level
		spent := l.Full - l.Left - l.Held
		of := ""
		if scopes.Several(v.Limit.Scope) {
			of = " for " + v.Key
		}
		if v.Limit.IsBudget() {
			parts = append(parts, fmt.Sprintf("%s of %s USD%s", limit.Dollars(spent), limit.Dollars(l.Full), of))
			continue
		}
		unit := v.Limit.UnitName()
		if unit == limit.Requests {
			unit = "calls"
		}
		parts = append(parts, fmt.Sprintf("%d of %d %s%s", spent, l.Full, unit, of))
	}
	return parts
}
